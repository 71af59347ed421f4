"""Read container logs: from the start, the last lines, since a time, or followed as they grow.

Every entry starts with a header of fixed length: `2030-01-01T00:00:00.000000000Z stdout F `. The tag is F where an
entry ends a line and P where the line continues in the next entry.

A log is split into several files. The first is `log`; the name of a later one ends with the offset of its first byte.
Old files are removed when there are too many, so a log may start at an offset greater than 0.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from paceline.apimachinery.meta import Object
from paceline.apimachinery.timestamps import moment_from
from paceline.effects import Files
from paceline.errors import BadRequest
from paceline.node.lifecycle.view import ExitRecord
from paceline.node.runtime import cri_log, shim

HEAD, STAMP, TAG = 40, 30, 38
CHUNK = 256 * 1024
# The delay before a follower reads again: short after new output, doubled each time up to the longest.
SOONEST_SECONDS, LATEST_SECONDS = 0.005, 0.05
OLDEST = datetime(1970, 1, 1, tzinfo=UTC)
# More digits than any size, count or time needs.
MOST_DIGITS = 18
FROM_LOG = "FallbackToLogsOnError"
# The size of a termination message, as a kubelet limits it.
MESSAGE_LINES, MESSAGE_BYTES = 80, 2048
# How much of a log is read at most to find its last lines.
MESSAGE_READ_BYTES = 64 * 1024
_FULL = re.compile(rb"\n.{38}F")
_PARTS = (b" stdout P ", b" stderr P ")


class RotatedLog:
    """Reads a log as one range of bytes, while it may grow and lose its oldest files."""

    def __init__(self, files: Files, folder: Path) -> None:
        self._files = files
        self._folder = folder
        self._begins: tuple[int, ...] = ()
        self._list()

    def begin(self) -> int:
        """Return the offset of the oldest byte that still exists."""
        return self._begins[0] if self._begins else 0

    def size(self) -> int:
        """Return the offset of the next byte to be written."""
        self._list()
        return self._begins[-1] + self._length(self._begins[-1]) if self._begins else 0

    def stored_bytes(self) -> int:
        return self.size() - self.begin()

    def read_range(self, offset: int, limit: int) -> bytes:
        """Read from an offset, from at most one file; empty at the end, or where the bytes were removed."""
        data = self._read(offset, limit)
        if not data:
            # The end of a file is not the end of the log if a newer file exists.
            self._list()
            data = self._read(offset, limit)
        return data

    def skip(self, offset: int) -> int:
        """Return where reading continues: at the offset, or at the oldest byte if that is later."""
        return max(offset, self.begin())

    def _read(self, offset: int, limit: int) -> bytes:
        begin = max((begin for begin in self._begins if begin <= offset), default=None)
        if begin is None:
            return b""
        try:
            return self._files.read_range(self._path(begin), offset - begin, limit)
        except FileNotFoundError:
            return b""

    def _length(self, begin: int) -> int:
        try:
            return self._files.size(self._path(begin))
        except FileNotFoundError:
            return 0

    def _list(self) -> None:
        names = (name for name in self._files.names(self._folder) if is_log_file(name))
        self._begins = tuple(sorted(int(name.removeprefix(shim.LOG).removeprefix(".") or 0) for name in names))

    def _path(self, begin: int) -> Path:
        return self._folder / (shim.LOG if begin == 0 else f"{shim.LOG}.{begin:020d}")


def is_log_file(name: str) -> bool:
    return name == shim.LOG or (name.startswith(f"{shim.LOG}.") and name[len(shim.LOG) + 1 :].isdecimal())


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


def log_query(query: Mapping[str, str], now: datetime) -> LogQuery:
    """Read the query of a log request; BadRequest names the parameter that is invalid."""
    since = None
    if "sinceTime" in query:
        try:
            since = moment_from(query["sinceTime"])
        except ValueError as error:
            raise BadRequest(f"sinceTime: {query['sinceTime']!r} is not an RFC 3339 time") from error
    elif (seconds := _number(query, "sinceSeconds", least=1)) is not None:
        try:
            since = now - timedelta(seconds=seconds)
        except OverflowError as error:
            raise BadRequest(f"sinceSeconds: {seconds} is too large: the time is before the year 1") from error
    if since is not None:
        # No log is older, and time stamps of earlier years would not sort as text.
        since = max(since, OLDEST)
    return LogQuery(
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        timestamps=_flag(query, "timestamps"),
        tail=_number(query, "tailLines", least=0),
        since=since,
        limit_bytes=_number(query, "limitBytes", least=1),
    )


async def read_log(files: Files, folder: Path, query: LogQuery) -> AsyncGenerator[bytes, None]:
    """Yield a log in chunks of complete entries, without their headers."""
    decoder = EntryDecoder(timestamps=query.timestamps)
    remaining = query.limit_bytes
    async for chunk in entries(files, folder, _start(RotatedLog(files, folder), query), follow=query.follow):
        data = decoder.decode(chunk)
        if remaining is not None:
            data = data[:remaining]
            remaining -= len(data)
        if data:
            yield data
        if remaining == 0:
            return


class EntryDecoder:
    """Removes the headers of entries, and joins the parts of long lines."""

    def __init__(self, *, timestamps: bool) -> None:
        self._timestamps = timestamps
        self._is_new_line = True

    def decode(self, entries: bytes) -> bytes:
        """Return what the container wrote, from complete entries."""
        is_simple = self._is_new_line and not any(part in entries for part in _PARTS)
        if is_simple and not self._timestamps:
            # One slice per line: anything slower is too slow for a busy log.
            return b"\n".join([entry[HEAD:] for entry in entries.split(b"\n")])
        return b"".join(self._decode_entry(entry) for entry in entries.split(b"\n") if entry)

    def _decode_entry(self, entry: bytes) -> bytes:
        stamp = entry[: STAMP + 1] if self._timestamps and self._is_new_line else b""
        self._is_new_line = entry[TAG : TAG + 1] == b"F"
        return stamp + entry[HEAD:] + b"\n" * self._is_new_line


async def entries(files: Files, folder: Path, offset: int, *, follow: bool) -> AsyncGenerator[bytes, None]:
    """Yield complete entries from an offset to the end of the log, or with `follow` to the end of the container."""
    rotated, pause, partial = RotatedLog(files, folder), SOONEST_SECONDS, b""
    while True:
        # Checked before reading, so that all that the container wrote before its end is in the file.
        # A folder that no longer exists was removed with its pod.
        has_ended = not follow or files.exists(folder / shim.EXIT) or not files.exists(folder)
        data = rotated.read_range(offset, CHUNK)
        if not data and rotated.skip(offset) > offset:
            # The file was removed, and with it the remainder of the partial entry.
            offset, partial = rotated.skip(offset), b""
            continue
        offset += len(data)
        complete, newline, partial = (partial + data).rpartition(b"\n")
        if newline:
            pause = SOONEST_SECONDS
            yield complete + newline
        elif not data and has_ended:
            return
        elif not data:
            await asyncio.sleep(pause)
            pause = min(pause * 2, LATEST_SECONDS)


def end_of_log(rotated: RotatedLog) -> int:
    """Return the offset at which the next entry will start."""
    return _end_of_entries(rotated, rotated.size())


def _start(rotated: RotatedLog, query: LogQuery) -> int:
    """Return the offset at which reading starts: `tail` is applied first, then `since`."""
    size = rotated.size()
    tail = rotated.begin() if query.tail is None else tail_offset(rotated, size, query.tail)
    since = rotated.begin() if query.since is None else since_offset(rotated, size, query.since)
    return max(tail, since)


def tail_offset(rotated: RotatedLog, size: int, lines: int) -> int:
    """Return the offset of the last `lines` lines, reading backwards from the end no more than needed."""
    size, first = _end_of_entries(rotated, size), rotated.begin()
    if lines == 0 or size == first:
        return size
    # A last entry with the tag P is itself the last line, so one line end fewer has to be found.
    missing = lines if _last_tag(rotated, size) == b"P" else lines + 1
    end = size
    while end > first:
        begin = max(end - CHUNK, first)
        # With the newline before the first entry, and enough beyond the end for the last entry's tag.
        data = b"\n" * (begin == first) + _read_exactly(rotated, max(begin - 1, first), end - begin + HEAD)
        offsets = [match.start() + begin for match in _FULL.finditer(data) if match.start() + begin < end]
        if len(offsets) >= missing:
            return _next_entry(rotated, offsets[-missing])
        missing -= len(offsets)
        end = begin
    return first


def since_offset(rotated: RotatedLog, size: int, since: datetime) -> int:
    """Return the offset of the first entry since a time, by binary search: times in a log only grow."""
    stamp = cri_log.stamp(int(since.timestamp() * 1_000_000) * 1000).encode()
    first = low = rotated.begin()
    high = size
    while low < high:
        middle = (low + high) // 2
        begin = first if middle == first else _next_entry(rotated, middle - 1)
        if begin >= high:
            high = middle
        elif _read_exactly(rotated, begin, STAMP) < stamp:
            low = _next_entry(rotated, begin)
        else:
            high = begin if begin < high else middle
    return low


def _read_exactly(rotated: RotatedLog, offset: int, limit: int) -> bytes:
    """Read a range that may span several files."""
    data = b""
    while len(data) < limit and (chunk := rotated.read_range(offset + len(data), limit - len(data))):
        data += chunk
    return data


def _next_entry(rotated: RotatedLog, offset: int) -> int:
    """Return the offset of the entry after the one at this offset, or the end of the log."""
    while data := rotated.read_range(offset, CHUNK):
        newline = data.find(b"\n")
        if newline >= 0:
            return offset + newline + 1
        offset += len(data)
    return offset


def _end_of_entries(rotated: RotatedLog, size: int) -> int:
    """Return the end of the last complete entry."""
    begin = max(size - cri_log.LINE_LIMIT - 2 * HEAD, rotated.begin())
    return begin + _read_exactly(rotated, begin, size - begin).rfind(b"\n") + 1


def _last_tag(rotated: RotatedLog, size: int) -> bytes:
    begin = max(size - cri_log.LINE_LIMIT - 2 * HEAD, rotated.begin())
    data = b"\n" * (begin == rotated.begin()) + _read_exactly(rotated, begin, size - begin)
    last = data.rfind(b"\n", 0, -1) + 1
    return data[last + TAG : last + TAG + 1]


def _flag(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name, "false")
    if text not in ("true", "false", "1", "0"):
        raise BadRequest(f"{name}: {text!r} is neither true nor false")
    return text in ("true", "1")


def _number(query: Mapping[str, str], name: str, *, least: int) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS) or int(text) < least:
        raise BadRequest(f"{name}: {text!r} is not allowed; use a whole number of at least {least}")
    return int(text)


def with_message_from_log(container: Object, ended: ExitRecord, files: Files, folder: Path) -> ExitRecord:
    """Set the termination message from the end of the log, where the container's policy asks for that."""
    if container.get("terminationMessagePolicy") != FROM_LOG or ended.exit_code == 0 or ended.message:
        return ended
    return replace(ended, message=_last_lines(files, folder))


def _last_lines(files: Files, folder: Path) -> str:
    rotated = RotatedLog(files, folder)
    size = rotated.size()
    begin = tail_offset(rotated, size, MESSAGE_LINES)
    offset = max(begin, size - MESSAGE_READ_BYTES)
    data = b""
    while chunk := rotated.read_range(offset + len(data), MESSAGE_READ_BYTES):
        data += chunk
    if offset > begin:
        data = data.partition(b"\n")[2]
    complete = data[: data.rfind(b"\n") + 1]
    return EntryDecoder(timestamps=False).decode(complete)[-MESSAGE_BYTES:].decode(errors="replace")
