"""A line for every change: `paceline get -w`."""

from paceline.cli import failures, show
from paceline.cli.listing import Listing
from paceline.cli.output import out
from paceline.cli.table import aligned, widest
from paceline.objects.meta import Object
from paceline.sdk.discovery import Kind
from paceline.sdk.session import Session


def print_changes(session: Session, kinds: tuple[Kind, ...], listing: Listing) -> int:
    """Print a line for everything that is there, and for every change, until Ctrl-C."""
    question, to = listing.question, out()
    widths: list[int] = []
    for news in session.watch(kinds, name=question.name, everywhere=question.everywhere):
        if question.output in ("json", "yaml", "name"):
            to.document(as_text(news.kind, news.object, question.output))
            continue
        found = listing.row_of(news.kind, news.object, is_gone=news.is_gone)
        if found is None:
            continue
        header, row = found
        lines = [row] if widths else [header, row]
        # Columns grow with what has been seen; what is printed already stays.
        widths = [max(pair) for pair in zip(widest([header, row]), widths or [0] * len(row), strict=True)]
        to.lines(aligned(line, widths, to.width) for line in lines)
    return failures.OK


def as_text(kind: Kind, obj: Object, output: str) -> str:
    """Write one object so that several of them one after another can be read by a program."""
    if output == "name":
        return show.names([(kind, obj)])[0]
    return show.as_json(obj) if output == "json" else "---\n" + show.as_yaml(obj)
