"""Splits a log stream into complete lines, each exactly once even if the stream is interrupted and resumed."""

import re
from collections.abc import Iterable, Iterator

# The timestamp that the log endpoint puts before every line.
STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) ")
STAMPS = re.compile(rb"(?m)^" + STAMP.pattern)
# A line longer than this is split instead of buffered.
MAX_HELD = 1024 * 1024


class LogLines:
    """Removes timestamps from chunks and remembers the position.

    After `resume` it skips the lines returned before: older ones, and as many with the last timestamp as were returned.
    """

    def __init__(self, *, keeps_stamps: bool = False) -> None:
        self._keeps_stamps = keeps_stamps
        self._partial = b""
        self._last = b""
        self._count_at_last = 0
        # While resuming: how many lines with the last timestamp are still to be skipped; None if nothing is skipped.
        self._to_skip: int | None = None

    @property
    def since(self) -> str:
        """Return the time to resume the stream from; empty before the first line."""
        return self._last.decode().strip()

    def feed(self, chunk: bytes) -> bytes:
        """Return the lines that `chunk` completes."""
        complete, newline, partial = (self._partial + chunk).rpartition(b"\n")
        if not newline and len(partial) > MAX_HELD:
            complete, partial = partial, b""
        self._partial = partial
        return self._pass_on(complete + newline)

    def end(self) -> bytes:
        """Return the incomplete last line at the end of the stream."""
        partial, self._partial = self._partial, b""
        return self._pass_on(partial)

    def resume(self) -> None:
        """Prepare to read the same log again from `since`."""
        self._partial = b""
        self._to_skip = self._count_at_last if self._last else None

    def _pass_on(self, lines: bytes) -> bytes:
        if self._to_skip is not None:
            lines = self._skipped(lines)
        if not lines:
            return lines
        self._remember(lines)
        return lines if self._keeps_stamps else STAMPS.sub(b"", lines)

    def _skipped(self, lines: bytes) -> bytes:
        start = 0
        while start < len(lines) and self._to_skip is not None:
            stamp = STAMP.match(lines, start)
            if stamp is None or _moment(stamp[0]) > _moment(self._last):
                self._to_skip = None
                break
            if stamp[0] == self._last:
                if self._to_skip == 0:
                    self._to_skip = None
                    break
                self._to_skip -= 1
            end = lines.find(b"\n", start)
            start = len(lines) if end < 0 else end + 1
        return lines[start:]

    def _remember(self, lines: bytes) -> None:
        start = lines.rfind(b"\n", 0, len(lines) - 1) + 1
        stamp = STAMP.match(lines, start)
        if stamp is None:
            return
        is_new = stamp[0] != self._last
        self._last = stamp[0]
        count = lines.count(b"\n" + self._last) + lines.startswith(self._last)
        self._count_at_last = count if is_new else self._count_at_last + count


def whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield chunks that end at a line break, except for the last one."""
    partial = b""
    for chunk in chunks:
        complete, newline, partial = (partial + chunk).rpartition(b"\n")
        if newline:
            yield complete + newline
        elif len(partial) > MAX_HELD:
            yield partial
            partial = b""
    if partial:
        yield partial


def _moment(stamp: bytes) -> tuple[bytes, bytes]:
    """Return a timestamp in sortable form; the fraction may have fewer digits before the Z."""
    seconds, _, fraction = stamp.strip().rstrip(b"Z").partition(b".")
    return seconds, fraction
