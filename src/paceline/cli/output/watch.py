"""Output of `paceline get -w`: one line per change."""

from paceline.apimachinery.meta import Object, key_of
from paceline.cli import exit_codes
from paceline.cli.output import formats
from paceline.cli.output.console import out
from paceline.cli.output.get import Listing
from paceline.cli.output.table import aligned, widest
from paceline.sdk.client import ObjectEvent, Session
from paceline.sdk.discovery import Kind


def print_changes(session: Session, kinds: tuple[Kind, ...], listing: Listing) -> int:
    """Print a line for every object and for every change, until Ctrl-C."""
    question, to = listing.question, out()
    lines = Lines(listing)
    for news in session.watch(kinds, name=question.name, everywhere=question.everywhere):
        if question.output in ("json", "yaml", "name"):
            to.document(as_text(news.kind, news.object, question.output))
        else:
            to.lines(lines.of(news, to.width))
    return exit_codes.OK


class Lines:
    """Rows in columns that only grow; changes that no cell shows are skipped."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._widths: list[int] = []
        self._last: dict[tuple[str, ...], tuple[str, ...]] = {}

    def of(self, news: ObjectEvent, width: int | None) -> list[str]:
        """Return the lines for one object: with the header first, none if no cell changed."""
        header_and_row = self._listing.row_of(news.kind, news.object, is_gone=news.is_gone)
        if header_and_row is None:
            return []
        header, row = header_and_row
        shown = tuple(cell for name, cell in zip(header, row, strict=True) if name not in ("AGE", "LAST SEEN"))
        key = (news.kind.where.plural, *key_of(news.object))
        if self._last.get(key) == shown:
            return []
        self._last[key] = shown
        lines = [row] if self._widths else [header, row]
        if not self._widths:
            self._widths = widest([header, *self._listing.rows()])
        self._widths = [max(pair) for pair in zip(widest([row]), self._widths, strict=True)]
        return [aligned(line, self._widths, width) for line in lines]


def as_text(kind: Kind, obj: Object, output: str) -> str:
    """Format one object so that a program can read several in sequence."""
    if output == "name":
        return formats.names([(kind, obj)])[0]
    return formats.as_json(obj) if output == "json" else "---\n" + formats.as_yaml(obj)
