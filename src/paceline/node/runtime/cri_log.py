"""A container's output on its way into its log; part of the shim, hence stdlib only.

Every entry of the log is a line, or a part of a long one, behind a head of one length (CRI's format):
`2030-01-01T00:00:00.000000000Z stdout F `. The letter is F where an entry ends a line and P where the line goes on.
"""

import errno
import os
import time
from datetime import UTC, datetime
from pathlib import Path

LINE_LIMIT = 16 * 1024
# What is kept of one try's output: so many files of this size, the newest.
FILE_BYTES, FILES = 64 * 1024 * 1024, 8


def stamp(nanoseconds: int) -> str:
    """Write a moment as CRI logs and records do: RFC 3339 with nine digits."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


# The cluster's time minus the machine's uptime, in nanoseconds; without it the machine's clock counts.
_clock_offset: int | None = None


def set_clock(offset: int | None) -> None:
    """Have moments told by the cluster's clock."""
    global _clock_offset  # noqa: PLW0603 - set once, before the first shim is forked
    _clock_offset = offset


def now_ns() -> int:
    """Return the present moment in nanoseconds."""
    if _clock_offset is None:
        return time.time_ns()
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) + _clock_offset


def now() -> bytes:
    """Write the present moment as the log does."""
    return stamp(now_ns()).encode()


class Stream:
    """One of the container's two outputs, on its way into the log."""

    def __init__(self, name: str, fd: int) -> None:
        self.fd = fd
        self.is_open = True
        self.rest = b""
        self.rest_since = 0.0
        self._full = b" " + name.encode() + b" F "
        self._part = b" " + name.encode() + b" P "

    def take(self, data: bytes, moment: bytes) -> bytes:
        """Turn a chunk of output into log entries; an unfinished last line waits for its end."""
        # Whole chunks go through `replace`: a call per line would not keep up with a busy container.
        data = self.rest + data
        cut = data.rfind(b"\n") + 1
        full, part = moment + self._full, moment + self._part
        between = b"\n" + full
        entries: list[bytes] = []
        start = 0
        while start < cut:
            end = data.rfind(b"\n", start, start + LINE_LIMIT + 1) + 1
            if end:
                entries += (full, data[start : end - 1].replace(b"\n", between), b"\n")
            else:
                end = start + LINE_LIMIT
                entries += (part, data[start:end], b"\n")
            start = end
        while len(data) - start > LINE_LIMIT:
            entries += (part, data[start : start + LINE_LIMIT], b"\n")
            start += LINE_LIMIT
        if start or not self.rest:
            self.rest_since = time.monotonic()
        self.rest = data[start:]
        return b"".join(entries)

    def flush(self, moment: bytes) -> bytes:
        """Give up waiting for the end of the last line."""
        entry = moment + self._part + self.rest + b"\n" if self.rest else b""
        self.rest = b""
        return entry


class Log:
    """The container's log. What a full disk does not take is kept, and nothing more is read until it fits.

    A file that is full is followed by one whose name says where it begins; the oldest goes when there are too many.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._begins = [0]
        self._size = 0
        self._fd = _open(path)
        self.backlog = memoryview(b"")

    def write(self, data: bytes) -> None:
        """Append whole entries."""
        if self._size >= FILE_BYTES and not self.backlog:
            self._turn()
        self.backlog = memoryview(bytes(self.backlog) + data) if self.backlog else memoryview(data)
        self.retry()

    def retry(self) -> None:
        """Try again to write what did not fit."""
        try:
            while self.backlog:
                written = os.write(self._fd, self.backlog)
                self._size += written
                self.backlog = self.backlog[written:]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
                raise

    def _turn(self) -> None:
        """Begin the next file, and let the oldest go."""
        begin = self._begins[-1] + self._size
        try:
            fd = _open(f"{self._path}.{begin:020d}")
        except OSError:
            return  # No room for a name: this file grows on.
        os.close(self._fd)
        self._fd, self._size = fd, 0
        self._begins.append(begin)
        if len(self._begins) > FILES:
            oldest = self._begins.pop(0)
            Path(self._path if oldest == 0 else f"{self._path}.{oldest:020d}").unlink(missing_ok=True)


def _open(path: str) -> int:
    # Beside the shim, in the folder that it works in, and never through a link to a place elsewhere.
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
