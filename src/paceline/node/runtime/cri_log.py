"""Write a container's output to its log in CRI format. Part of the shim: standard library only.

Every entry is a line, or a part of a long one, after a head of fixed length:
`2030-01-01T00:00:00.000000000Z stdout F `. The letter is F where an entry ends a line and P where the line continues.
"""

import errno
import os
import time
from datetime import UTC, datetime
from pathlib import Path

LINE_LIMIT = 16 * 1024
# The log of an attempt keeps this many files of this size, the newest.
FILE_BYTES, FILES = 64 * 1024 * 1024, 8


def stamp(nanoseconds: int) -> str:
    """Format a time as CRI logs and records do: RFC 3339 with nine digits."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


# The cluster's time minus the machine's uptime, in nanoseconds; None for the machine's clock.
_clock_offset: int | None = None


def set_clock(offset: int | None) -> None:
    """Use the cluster's clock from now on."""
    global _clock_offset  # noqa: PLW0603 - set once, before the first shim is forked
    _clock_offset = offset


def now_ns() -> int:
    """Return the current time in nanoseconds."""
    if _clock_offset is None:
        return time.time_ns()
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) + _clock_offset


def now() -> bytes:
    """Return the current time as in the log."""
    return stamp(now_ns()).encode()


class CriStream:
    """One of the container's two output streams."""

    def __init__(self, name: str, fd: int) -> None:
        self.fd = fd
        self.is_open = True
        self.partial = b""
        self.partial_since = 0.0
        self._full = b" " + name.encode() + b" F "
        self._part = b" " + name.encode() + b" P "

    def take(self, data: bytes, moment: bytes) -> bytes:
        """Return log entries for a chunk of output; an unfinished last line waits for its end."""
        # With `replace` on chunks: a call per line would not keep up with a busy container.
        data = self.partial + data
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
        if start or not self.partial:
            self.partial_since = time.monotonic()
        self.partial = data[start:]
        return b"".join(entries)

    def flush(self, moment: bytes) -> bytes:
        """Return an entry for the unfinished last line."""
        entry = moment + self._part + self.partial + b"\n" if self.partial else b""
        self.partial = b""
        return entry


class CriLog:
    """The container's log. Output that a full disk refuses waits in `backlog`, and no more is read until it fits.

    A full file is followed by one whose name contains its offset; the oldest is removed when there are too many.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._begins = [0]
        self._size = 0
        self._fd = _open(path)
        self.backlog = memoryview(b"")

    def write(self, data: bytes) -> None:
        """Append complete entries."""
        if self._size >= FILE_BYTES and not self.backlog:
            self._rotate()
        self.backlog = memoryview(bytes(self.backlog) + data) if self.backlog else memoryview(data)
        self.retry()

    def retry(self) -> None:
        """Write the backlog, as far as the disk takes it."""
        try:
            while self.backlog:
                written = os.write(self._fd, self.backlog)
                self._size += written
                self.backlog = self.backlog[written:]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
                raise

    def _rotate(self) -> None:
        begin = self._begins[-1] + self._size
        try:
            fd = _open(f"{self._path}.{begin:020d}")
        except OSError:
            return  # The disk is full: this file continues to grow.
        os.close(self._fd)
        self._fd, self._size = fd, 0
        self._begins.append(begin)
        if len(self._begins) > FILES:
            oldest = self._begins.pop(0)
            Path(self._path if oldest == 0 else f"{self._path}.{oldest:020d}").unlink(missing_ok=True)


def _open(path: str) -> int:
    # In the shim's working directory, and never through a link.
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
