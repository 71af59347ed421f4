"""Times and durations in kubectl's short format."""

from datetime import datetime, timedelta

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400
UNKNOWN = "<unknown>"


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
