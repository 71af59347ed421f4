"""Merges several logs line by line in time order, each line with its replica."""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from operator import itemgetter

from paceline.presentation.log_lines import NEVER, Moment, in_micros, moment_at, moment_of, without_stamp
from paceline.sdk.follow import Logged
from paceline.sdk.logs.sources import LogOptions

Stamped = tuple[Moment, bytes, Logged]

# How many logs are read in parallel, to limit the number of open connections to the cluster.
MOST = 200
# Consecutive lines of one replica are combined up to this size.
PIECE = 64 * 1024


def in_time_order(streams: Iterable[Iterator[Logged]], *, keeps_stamps: bool) -> Iterator[Logged]:
    """Yield the lines of timestamped logs in time order; equal times keep the order of the logs."""
    lines: list[bytes] = []
    last: Logged | None = None
    size = 0
    for _, line, source in heapq.merge(*map(_lines, streams), key=itemgetter(0)):
        text = line if keeps_stamps else without_stamp(line)
        if last is not None and (source.pod != last.pod or size > PIECE):
            yield Logged(place=last.place, pod=last.pod, text=b"".join(lines))
            lines, size = [], 0
        lines.append(text if text.endswith(b"\n") else text + b"\n")
        last, size = source, size + len(text)
    if last is not None:
        yield Logged(place=last.place, pod=last.pod, text=b"".join(lines))


def within(chunks: Iterable[bytes], ask: LogOptions) -> Iterator[bytes]:
    """Yield the lines up to `until`, limited to `tail`. Filtered here, because the log endpoint has no `until`."""
    if ask.until is None:
        yield from chunks
        return
    latest, last = moment_at(ask.until), NEVER
    selected: deque[bytes] = deque(maxlen=ask.tail)
    for chunk in chunks:
        for line in filter(None, chunk.split(b"\n")):
            # A part of a split line has no timestamp: it is treated like its beginning.
            last = max(last, in_micros(moment_of(line)))
            if last <= latest:
                selected.append(line + b"\n")
        while selected and ask.tail is None:
            yield _shown(selected.popleft(), ask)
    yield from (_shown(line, ask) for line in selected)


def _shown(line: bytes, ask: LogOptions) -> bytes:
    return line if ask.has_timestamps else without_stamp(line)


def _lines(stream: Iterator[Logged]) -> Iterator[Stamped]:
    last = NEVER
    for logged in stream:
        for line in logged.text.split(b"\n"):
            if not line:
                continue
            last = max(last, moment_of(line))
            yield last, line, logged
