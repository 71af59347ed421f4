"""Log bytes as they come: whole lines only, each once, also when the stream breaks and is taken up again."""

import re
from collections.abc import Iterable, Iterator

# What the log endpoint puts before every line when asked for timestamps.
STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) ")
STAMPS = re.compile(rb"(?m)^" + STAMP.pattern)
# A line longer than this is passed on in pieces rather than kept.
MAX_HELD = 1024 * 1024


class LogLines:
    """Turns stamped chunks into plain ones and remembers how far it came.

    After `resume` it skips what was given before: older lines, and as many of the last moment as were given.
    """

    def __init__(self, *, keeps_stamps: bool = False) -> None:
        self._keeps_stamps = keeps_stamps
        self._held = b""
        self._last = b""
        self._given_at_last = 0
        # While resuming: lines of the last moment that are still to be skipped; None when nothing is skipped.
        self._to_skip: int | None = None

    @property
    def since(self) -> str:
        """Give the moment to ask for when the stream is taken up again; empty before the first line."""
        return self._last.decode().strip()

    def feed(self, chunk: bytes) -> bytes:
        """Give the whole lines that `chunk` completes."""
        complete, newline, partial = (self._held + chunk).rpartition(b"\n")
        if not newline and len(partial) > MAX_HELD:
            complete, partial = partial, b""
        self._held = partial
        return self._pass_on(complete + newline)

    def end(self) -> bytes:
        """Give what came after the last line break; the stream is over."""
        partial, self._held = self._held, b""
        return self._pass_on(partial)

    def resume(self) -> None:
        """Prepare for the same log from `since` on."""
        self._held = b""
        self._to_skip = self._given_at_last if self._last else None

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
        self._given_at_last = count if is_new else self._given_at_last + count


def whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut a log that is not followed so that no piece ends within a line, unless the log does."""
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
    """Give a stamp in a form that sorts: fractions of a second may be written with fewer digits, before a Z."""
    seconds, _, fraction = stamp.strip().rstrip(b"Z").partition(b".")
    return seconds, fraction
