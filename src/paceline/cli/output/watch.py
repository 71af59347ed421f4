"""A line for every change: `paceline get -w`."""

from paceline.apimachinery.meta import Object, key_of
from paceline.cli import exit_codes
from paceline.cli.output import formats
from paceline.cli.output.console import out
from paceline.cli.output.get import Listing
from paceline.cli.output.table import aligned, widest
from paceline.sdk.client import ObjectEvent, Session
from paceline.sdk.discovery import Kind


def print_changes(session: Session, kinds: tuple[Kind, ...], listing: Listing) -> int:
    """Print a line for everything that is there, and for every change, until Ctrl-C."""
    question, to = listing.question, out()
    lines = Lines(listing)
    for news in session.watch(kinds, name=question.name, everywhere=question.everywhere):
        if question.output in ("json", "yaml", "name"):
            to.document(as_text(news.kind, news.object, question.output))
        else:
            to.lines(lines.of(news, to.width))
    return exit_codes.OK


class Lines:
    """Rows one after another in columns that only grow; a change that no cell shows is not printed again."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._widths: list[int] = []
        self._last: dict[tuple[str, ...], tuple[str, ...]] = {}

    def of(self, news: ObjectEvent, width: int | None) -> list[str]:
        """Give the lines to print for one object: the header before the first, none when it looks as before."""
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
    """Write one object so that several of them one after another can be read by a program."""
    if output == "name":
        return formats.names([(kind, obj)])[0]
    return formats.as_json(obj) if output == "json" else "---\n" + formats.as_yaml(obj)
