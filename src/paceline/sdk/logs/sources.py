"""Sources of a feed: watches and logs. Both survive a restart of the API server."""

from dataclasses import dataclass, field
from datetime import datetime

from paceline.apimachinery.meta import Object, name_of, revision_of
from paceline.apimachinery.pods import is_terminal
from paceline.apimachinery.timestamps import to_wire
from paceline.client.interface import PODS, Change, Collection, Select, WatchEvent
from paceline.errors import BadRequest, Expired, NotFound, ServiceUnavailable
from paceline.presentation.log_lines import LogLines, since_second
from paceline.sdk.logs.event_mux import Source, SourceContext

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
        # Duplicate lines are skipped by LogLines.
        query["sinceTime"] = since_second(since)
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
