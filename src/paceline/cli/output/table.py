"""Tables as plain aligned text, the way kubectl prints them."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
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


MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400
UNKNOWN = "<unknown>"
# The format of C's ctime(), which Helm prints.
CTIME = "%a %b %e %H:%M:%S %Y"


def age(moment: datetime | None, now: datetime) -> str:
    """Format how long ago something happened."""
    return UNKNOWN if moment is None else short(now - moment)


def short(span: timedelta) -> str:
    """Format a duration in one or two units, as kubectl does: 45s, 3m20s, 2h5m, 4d."""
    seconds = max(int(span.total_seconds()), 0)
    if seconds < 2 * MINUTE:
        return f"{seconds}s"
    if seconds < 10 * MINUTE:
        return _two(seconds, MINUTE, "m", 1, "s")
    if seconds < 3 * HOUR:
        return f"{seconds // MINUTE}m"
    if seconds < 8 * HOUR:
        return _two(seconds, HOUR, "h", MINUTE, "m")
    if seconds < 2 * DAY:
        return f"{seconds // HOUR}h"
    if seconds < 8 * DAY:
        return _two(seconds, DAY, "d", HOUR, "h")
    if seconds < 2 * YEAR:
        return f"{seconds // DAY}d"
    return _two(seconds, YEAR, "y", DAY, "d")


def stopwatch(seconds: float) -> str:
    """Format a running time as a stopwatch: 0:07, 12:30, 1:02:03."""
    total = max(int(seconds), 0)
    hours, remainder = divmod(total, HOUR)
    minutes, last = divmod(remainder, MINUTE)
    return f"{hours}:{minutes:02}:{last:02}" if hours else f"{minutes}:{last:02}"


def seconds_of(text: str) -> int:
    """Parse a duration such as 30s, 5m, 1h30m or 2d; raise ValueError if it is none."""
    units = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY}
    total, digits = 0, ""
    for char in text:
        if char.isdigit():
            digits += char
        elif char in units and digits:
            total, digits = total + int(digits) * units[char], ""
        else:
            raise ValueError(text)
    if digits or not text:
        raise ValueError(text)
    return total


def _two(seconds: int, big: int, big_name: str, small: int, small_name: str) -> str:
    small_count = seconds % big // small
    return f"{seconds // big}{big_name}" + (f"{small_count}{small_name}" if small_count else "")


KIBI = 1024
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int) -> str:
    """Format a number of bytes in binary units."""
    amount, unit = float(count), 0
    while amount >= KIBI and unit < len(UNITS) - 1:
        amount, unit = amount / KIBI, unit + 1
    return f"{amount:.1f} {UNITS[unit]}" if unit else f"{count} B"


def share(part: int, total: int) -> str:
    """Format a part as a percentage of the total; empty if the total is 0."""
    return f"{100 * part // total}%" if total else ""
