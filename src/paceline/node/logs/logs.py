"""Read a container's log back: from the start, the last lines, a moment on, or as it grows.

Every entry of the log starts with a head of one length: `2030-01-01T00:00:00.000000000Z stdout F `. The letter is F
where an entry ends a line and P where the line goes on in the next.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from paceline.apimachinery.timestamps import moment_from
from paceline.effects import Files
from paceline.errors import BadRequest
from paceline.node.logs.rotated_log import RotatedLog
from paceline.node.runtime import cri_log, shim

HEAD, STAMP, TAG = 40, 30, 38
CHUNK = 256 * 1024
# How soon a follower looks for new output: at first almost at once, then ever later.
SOONEST_SECONDS, LATEST_SECONDS = 0.005, 0.05
OLDEST = datetime(1970, 1, 1, tzinfo=UTC)
# More digits than any size, count or time has.
MOST_DIGITS = 18
_FULL = re.compile(rb"\n.{38}F")
_PARTS = (b" stdout P ", b" stderr P ")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """Which part of a log is wanted, and how."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


def log_query(query: Mapping[str, str], now: datetime) -> LogQuery:
    """Read the query of a log request; BadRequest says which word of it is wrong."""
    since = None
    if "sinceTime" in query:
        try:
            since = moment_from(query["sinceTime"])
        except ValueError as error:
            raise BadRequest(f"sinceTime: {query['sinceTime']!r} is no RFC 3339 time") from error
    elif (seconds := _number(query, "sinceSeconds", least=1)) is not None:
        try:
            since = now - timedelta(seconds=seconds)
        except OverflowError as error:
            raise BadRequest(f"sinceSeconds: {seconds} leads to before the first year; give less") from error
    if since is not None:
        # No log is older, and stamps of earlier years would not sort as text.
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
    """Give a log in chunks of whole entries, with their heads taken off."""
    plain = Plain(timestamps=query.timestamps)
    left = query.limit_bytes
    async for some in entries(files, folder, _start(RotatedLog(files, folder), query), follow=query.follow):
        data = plain.take(some)
        if left is not None:
            data = data[:left]
            left -= len(data)
        if data:
            yield data
        if left == 0:
            return


class Plain:
    """Takes the heads off entries, and joins the parts of long lines."""

    def __init__(self, *, timestamps: bool) -> None:
        self._timestamps = timestamps
        self._is_new_line = True

    def take(self, entries: bytes) -> bytes:
        """Turn whole entries into what the container wrote."""
        is_simple = self._is_new_line and not any(part in entries for part in _PARTS)
        if is_simple and not self._timestamps:
            # A slice per line is all that a busy log can afford.
            return b"\n".join([entry[HEAD:] for entry in entries.split(b"\n")])
        return b"".join(self._one(entry) for entry in entries.split(b"\n") if entry)

    def _one(self, entry: bytes) -> bytes:
        stamp = entry[: STAMP + 1] if self._timestamps and self._is_new_line else b""
        self._is_new_line = entry[TAG : TAG + 1] == b"F"
        return stamp + entry[HEAD:] + b"\n" * self._is_new_line


async def entries(files: Files, folder: Path, offset: int, *, follow: bool) -> AsyncGenerator[bytes, None]:
    """Read whole entries from an offset, to the end of the log or of the container."""
    pages, pause, rest = RotatedLog(files, folder), SOONEST_SECONDS, b""
    while True:
        # Asked before reading: what a container wrote before its end is in the file by then.
        # A folder that is gone went with its pod.
        is_over = not follow or files.exists(folder / shim.EXIT) or not files.exists(folder)
        data = pages.read_range(offset, CHUNK)
        if not data and pages.skip(offset) > offset:
            # What was to be read is gone, and with it the rest of the entry before.
            offset, rest = pages.skip(offset), b""
            continue
        offset += len(data)
        whole, newline, rest = (rest + data).rpartition(b"\n")
        if newline:
            pause = SOONEST_SECONDS
            yield whole + newline
        elif not data and is_over:
            return
        elif not data:
            await asyncio.sleep(pause)
            pause = min(pause * 2, LATEST_SECONDS)


def end_of_log(pages: RotatedLog) -> int:
    """Find where the next entry will begin."""
    return _end_of_entries(pages, pages.size())


def _start(pages: RotatedLog, query: LogQuery) -> int:
    """Find where reading begins; the last lines are counted first, and of them only those from the moment on."""
    size = pages.size()
    tail = pages.begin() if query.tail is None else tail_offset(pages, size, query.tail)
    since = pages.begin() if query.since is None else since_offset(pages, size, query.since)
    return max(tail, since)


def tail_offset(pages: RotatedLog, size: int, lines: int) -> int:
    """Find where the last `lines` lines begin, reading no more than needed from the end."""
    size, first = _end_of_entries(pages, size), pages.begin()
    if lines == 0 or size == first:
        return size
    # An entry that leaves its line open is the last line, and the line before it is already complete.
    wanted = lines if _last_tag(pages, size) == b"P" else lines + 1
    end = size
    while end > first:
        begin = max(end - CHUNK, first)
        # With the newline before the first entry, and enough beyond the end to see the last entry's tag.
        data = b"\n" * (begin == first) + _whole(pages, max(begin - 1, first), end - begin + HEAD)
        found = [match.start() + begin for match in _FULL.finditer(data) if match.start() + begin < end]
        if len(found) >= wanted:
            return _after(pages, found[-wanted])
        wanted -= len(found)
        end = begin
    return first


def since_offset(pages: RotatedLog, size: int, since: datetime) -> int:
    """Find the first entry from a moment on, by halving: times in a log only grow."""
    stamp = cri_log.stamp(int(since.timestamp() * 1_000_000) * 1000).encode()
    first = low = pages.begin()
    high = size
    while low < high:
        middle = (low + high) // 2
        begin = first if middle == first else _after(pages, middle - 1)
        if begin >= high:
            high = middle
        elif _whole(pages, begin, STAMP) < stamp:
            low = _after(pages, begin)
        else:
            high = begin if begin < high else middle
    return low


def _whole(pages: RotatedLog, offset: int, limit: int) -> bytes:
    """Read a range that may lie in two files."""
    data = b""
    while len(data) < limit and (more := pages.read_range(offset + len(data), limit - len(data))):
        data += more
    return data


def _after(pages: RotatedLog, offset: int) -> int:
    """Find where the entry after the one at this offset begins; the end of the file when there is none."""
    while data := pages.read_range(offset, CHUNK):
        found = data.find(b"\n")
        if found >= 0:
            return offset + found + 1
        offset += len(data)
    return offset


def _end_of_entries(pages: RotatedLog, size: int) -> int:
    """Leave out an entry that is still being written."""
    begin = max(size - cri_log.LINE_LIMIT - 2 * HEAD, pages.begin())
    return begin + _whole(pages, begin, size - begin).rfind(b"\n") + 1


def _last_tag(pages: RotatedLog, size: int) -> bytes:
    begin = max(size - cri_log.LINE_LIMIT - 2 * HEAD, pages.begin())
    data = b"\n" * (begin == pages.begin()) + _whole(pages, begin, size - begin)
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
        raise BadRequest(f"{name}: {text!r} is not allowed; give a whole number of at least {least}")
    return int(text)
