"""Sources of a feed: watches and logs. Both survive a restart of the API server."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from paceline.apimachinery.meta import Object, name_of, revision_of
from paceline.apimachinery.pods import is_terminal
from paceline.apimachinery.timestamps import to_wire
from paceline.client.interface import PODS, Change, Collection, Select, WatchEvent
from paceline.errors import BadRequest, Expired, NotFound, ServiceUnavailable
from paceline.sdk.logs.event_mux import Source, SourceContext

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


FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
DOUBLINGS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A complete list: objects that are not in it do not exist."""

    where: Collection
    items: tuple[Object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One change after the list."""

    where: Collection
    happened: WatchEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The server does not respond; the source retries until it does."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """A log to read: of one pod and one restart of its container."""

    namespace: str
    pod: str
    restarts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Options of a log request."""

    is_followed: bool = True
    tail: int | None = None
    since: datetime | None = None
    # Not supported for followed logs.
    until: datetime | None = None
    has_timestamps: bool = False
    is_previous: bool = False
    container: str = ""

    def query(self) -> dict[str, str]:
        """Return the query parameters. Followed logs have timestamps so that an interrupted stream can be resumed."""
        parameters = {}
        if self.is_followed:
            parameters["follow"] = "true"
        if self.is_followed or self.has_timestamps or self.until:
            parameters["timestamps"] = "true"
        if self.is_previous:
            parameters["previous"] = "true"
        if self.container:
            parameters["container"] = self.container
        # With `until`, the last lines are counted by the client, before that time.
        if self.tail is not None and self.until is None:
            parameters["tailLines"] = str(self.tail)
        if self.since is not None:
            parameters["sinceTime"] = to_wire(self.since)
        return parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """Complete lines of one log."""

    read: LogSource
    text: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The end of a log was reached."""

    read: LogSource


def watching(where: Collection, select: Select) -> Source:
    """Return a source that lists once, then sends every change, and lists again after an expired watch."""

    def source(line: SourceContext) -> None:
        since, failures = "", 0
        while True:
            try:
                if not since:
                    page = line.cluster.list(where, select)
                    since = page.revision
                    line.put(Listed(where=where, items=page.items))
                for happened in line.cluster.watch(where, select, since=since):
                    since, failures = revision_of(happened.object) or since, 0
                    if happened.change is not Change.BOOKMARK:
                        line.put(Changed(where=where, happened=happened))
                line.pause(FIRST_PAUSE)
            except Expired:
                since = ""
            except ServiceUnavailable as error:
                failures += 1
                if failures == 1:
                    line.put(Lost(message=str(error)))
                line.pause(pause_after(failures))

    return source


def apply_change(objects: dict[str, Object], item: Listed | Changed) -> dict[str, Object]:
    """Return the objects by name after a list or a change."""
    if isinstance(item, Listed):
        return {name_of(obj): obj for obj in item.items}
    obj = item.happened.object
    if item.happened.change is Change.DELETED:
        return {name: other for name, other in objects.items() if name != name_of(obj)}
    return {**objects, name_of(obj): obj}


def reading(read: LogSource, ask: LogOptions) -> Source:
    """Return a source that reads a log to its end, each line once."""

    def source(line: SourceContext) -> None:
        lines, query, failures = LogLines(keeps_stamps=ask.has_timestamps), ask.query(), 0
        while True:
            try:
                if _read_once(line, read, lines, query):
                    break
                failures = 0
                line.pause(FIRST_PAUSE)
            except (ServiceUnavailable, BadRequest) as error:
                # BadRequest: the kubelet does not know the container yet, although the pod's status names it.
                failures += 1
                if failures == 1 and isinstance(error, ServiceUnavailable):
                    line.put(Lost(message=str(error)))
                line.pause(pause_after(failures))
            lines.resume()
            query = resumed(ask, lines.since)
        if text := lines.end():
            line.put(LogChunk(read=read, text=text))
        line.put(Read(read=read))

    return source


def _read_once(line: SourceContext, read: LogSource, lines: LogLines, query: dict[str, str]) -> bool:
    """Read until the stream ends; return True if the log has ended, too."""
    try:
        for chunk in line.cluster.stream(PODS.path(read.namespace, read.pod, "log"), query):
            if text := lines.feed(chunk):
                line.put(LogChunk(read=read, text=text))
        return has_ended(line.cluster.get(PODS, read.namespace, read.pod), read.restarts)
    except NotFound:
        return True


def pause_after(failures: int) -> float:
    """Return the pause after a number of consecutive failures."""
    return float(min(FIRST_PAUSE * 2 ** min(failures, DOUBLINGS), LONGEST_PAUSE))


def resumed(ask: LogOptions, since: str) -> dict[str, str]:
    """Return the query to continue after the line with timestamp `since`, or the original one before the first line."""
    query = ask.query()
    if since:
        query.pop("tailLines", None)
        # Not every server accepts fractions of a second; duplicate lines are skipped by LogLines.
        query["sinceTime"] = f"{since[:19]}{since[-6:] if since[-6] in '+-' else 'Z'}"
    return query


def has_ended(pod: Object, restarts: int) -> bool:
    """Return True if the process of a log has ended."""
    status = pod.get("status") or {}
    if is_terminal(pod):
        return True
    for container in (status.get("containerStatuses") or ())[:1]:
        state = container.get("state") or {}
        if int(container.get("restartCount") or 0) > restarts or state.get("terminated"):
            return True
    return False
