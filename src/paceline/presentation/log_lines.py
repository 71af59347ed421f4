"""Lines of logs with timestamps: cut from chunks, each passed on once although a stream is read again."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache

# The timestamp that the log endpoint puts before every line.
STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) ")
STAMPS = re.compile(rb"(?m)^" + STAMP.pattern)
# A line longer than this is split instead of buffered.
MAX_HELD = 1024 * 1024

# A time in sortable form: the second in UTC, and the digits of its fraction.
Moment = tuple[str, bytes]
NEVER: Moment = ("", b"")


def moment_of(line: bytes) -> Moment:
    """Return the time of a line; NEVER if it has no timestamp. Nodes may use fewer digits or another time zone."""
    stamp = STAMP.match(line)
    if stamp is None:
        return NEVER
    text = stamp[0].strip()
    zone = b"Z" if text.endswith(b"Z") else text[-6:]
    seconds, _, fraction = text[: -len(zone)].partition(b".")
    return _utc(seconds + zone), fraction.rstrip(b"0")


@lru_cache(maxsize=1024)
def _utc(second: bytes) -> str:
    try:
        return datetime.fromisoformat(second.decode()).astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return ""


def moment_at(time: datetime) -> Moment:
    """Return a time in the same form."""
    utc = time.astimezone(UTC)
    return utc.replace(microsecond=0).isoformat(timespec="seconds"), f"{utc.microsecond:06}".rstrip("0").encode()


def in_micros(moment: Moment) -> Moment:
    """Return the time in microseconds, so that a time copied from the output includes its own line."""
    return moment[0], moment[1][:6].rstrip(b"0")


def stamped_text(line: bytes) -> tuple[float, str]:
    """Return a line's time in seconds since 1970 (0: unknown) and its text; of a progress bar, its last state."""
    second, fraction = moment_of(line)
    seconds = datetime.fromisoformat(second).timestamp() + float(b"0." + (fraction or b"0")) if second else 0.0
    return seconds, without_stamp(line).decode(errors="replace").rstrip("\r\n").rpartition("\r")[2]


def without_stamp(line: bytes) -> bytes:
    """Return a line without its timestamp."""
    stamp = STAMP.match(line)
    return line[stamp.end() :] if stamp else line


def since_second(stamp: str) -> str:
    """Return a timestamp without its fraction, for `sinceTime`: not every server accepts fractions of a second."""
    return f"{stamp[:19]}{stamp[-6:] if stamp[-6] in '+-' else 'Z'}"


class LogLines:
    """Removes timestamps from chunks and remembers the position.

    After `resume` it skips the lines returned before: older ones, and as many with the last timestamp as were returned.
    """

    def __init__(self, *, keeps_stamps: bool = False) -> None:
        self._keeps_stamps = keeps_stamps
        self._partial = b""
        # What `peek` has returned of the incomplete last line.
        self._peeked = b""
        self._last = b""
        self._count_at_last = 0
        # While resuming: how many lines with the last timestamp are still to be skipped; None if nothing is skipped.
        self._to_skip: int | None = None

    @property
    def since(self) -> str:
        """Return the time to resume the stream from; empty before the first line."""
        return self._last.decode().strip()

    def start_after(self, stamp: str, count: int) -> None:
        """Skip the lines before a timestamp, and so many with it; before the first chunk."""
        self._last = stamp.encode() + b" "
        self._count_at_last = count
        self.resume()

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

    @property
    def has_unseen(self) -> bool:
        """Return whether `peek` would return something."""
        is_new = len(self._partial) > len(self._peeked) and self._partial.startswith(self._peeked)
        return is_new and self._to_skip is None and STAMP.match(self._partial) is not None

    def peek(self) -> bytes:
        """Return what is new of the incomplete last line, which `feed` then leaves out."""
        if not self.has_unseen:
            return b""
        partial, self._peeked = self._partial[len(self._peeked) :], self._partial
        return partial

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
        if self._peeked:
            # The line may be gone meanwhile, with the file that it was in.
            lines = lines[len(self._peeked) :] if lines.startswith(self._peeked) else b"\n" + lines
            self._peeked = b""
        return lines if self._keeps_stamps else STAMPS.sub(b"", lines)

    def _skipped(self, lines: bytes) -> bytes:
        start, last = 0, moment_of(self._last)
        while start < len(lines) and self._to_skip is not None:
            stamp = STAMP.match(lines, start)
            moment = NEVER if stamp is None else moment_of(stamp[0])
            if stamp is None or moment > last:
                self._to_skip = None
                break
            if moment == last:
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
