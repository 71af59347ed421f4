"""Tables as plain aligned text, the way kubectl prints them."""

from collections.abc import Iterable, Sequence
from unicodedata import east_asian_width

GAP = 3
# Minimum width of a last column that is cut.
MIN_LAST = 10


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, width: int | None = None) -> list[str]:
    """Return rows aligned under their header; with a width, the last column is cut to fit."""
    lines = [header, *rows]
    widths = widest(lines)
    return [aligned(line, widths, width) for line in lines]


def widest(lines: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of every column."""
    return [max(map(columns, cells)) for cells in zip(*lines, strict=True)]


def aligned(line: Sequence[str], widths: Sequence[int], width: int | None = None) -> str:
    """Return one row padded to the column widths."""
    *first, last = line
    padded = "".join(text + " " * (wide + GAP - columns(text)) for text, wide in zip(first, widths, strict=False))
    if width is not None:
        last = cut(last, max(width - columns(padded), MIN_LAST))
    return (padded + last).rstrip()


def columns(text: str) -> int:
    """Return how many terminal columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def cut(text: str, width: int) -> str:
    """Return a text cut to a number of columns, with an ellipsis."""
    if columns(text) <= width:
        return text
    characters, used = [], 1
    for char in text:
        used += columns(char)
        if used > width:
            break
        characters.append(char)
    return "".join(characters) + "…"


def pairs(facts: Iterable[tuple[str, str]], *, indent: int = 0) -> list[str]:
    """Return names and values aligned in two columns; names without a value are left out."""
    shown = [(name, value) for name, value in facts if value]
    widest = max((columns(name) for name, _ in shown), default=0) + 2
    return [f"{' ' * indent}{name}:{' ' * (widest - columns(name) - 1)}{value}" for name, value in shown]
