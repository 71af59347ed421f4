"""The sources of a feed: a kind that is watched, a log that is read. Both outlive a restart of the server."""

from dataclasses import dataclass, field
from datetime import datetime

from paceline.apimachinery.meta import Object, name_of, revision_of
from paceline.apimachinery.timestamps import to_wire
from paceline.client.interface import PODS, Change, Collection, Select, WatchEvent
from paceline.errors import BadRequest, Expired, NotFound, ServiceUnavailable
from paceline.sdk.logs.event_mux import Source, SourceContext
from paceline.sdk.logs.lines import LogLines

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
DOUBLINGS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Everything that was selected, as a list read it: what is not in it is gone."""

    where: Collection
    items: tuple[Object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One object that changed after the list."""

    where: Collection
    happened: WatchEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The server does not answer; the source tries again until it does."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTry:
    """One process whose log is read: a pod, its namespace, and which restart of the container."""

    namespace: str
    pod: str
    restarts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """What of a log is wanted."""

    is_followed: bool = True
    tail: int | None = None
    since_seconds: int | None = None
    since: datetime | None = None
    # Only for logs that are not followed.
    until: datetime | None = None
    has_timestamps: bool = False
    is_previous: bool = False
    container: str = ""

    def query(self) -> dict[str, str]:
        """Spell it as the log endpoint reads it; followed lines are stamped, so that a broken stream can go on."""
        parameters = {}
        if self.is_followed:
            parameters["follow"] = "true"
        if self.is_followed or self.has_timestamps or self.until:
            parameters["timestamps"] = "true"
        if self.is_previous:
            parameters["previous"] = "true"
        if self.container:
            parameters["container"] = self.container
        # The last lines before a moment are not the last ones there are.
        if self.tail is not None and self.until is None:
            parameters["tailLines"] = str(self.tail)
        if self.since_seconds is not None:
            parameters["sinceSeconds"] = str(self.since_seconds)
        if self.since is not None:
            parameters["sinceTime"] = to_wire(self.since)
        return parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Whole lines of one log, as they were written."""

    read: LogTry
    text: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A log came to its end."""

    read: LogTry


def watching(where: Collection, select: Select) -> Source:
    """Make a source that lists once, then tells every change, and lists again when it has missed some."""

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


def apply_news(objects: dict[str, Object], item: Listed | Changed) -> dict[str, Object]:
    """Give what is there after a list or a change, by name."""
    if isinstance(item, Listed):
        return {name_of(obj): obj for obj in item.items}
    obj = item.happened.object
    if item.happened.change is Change.DELETED:
        return {name: other for name, other in objects.items() if name != name_of(obj)}
    return {**objects, name_of(obj): obj}


def reading(read: LogTry, ask: LogOptions) -> Source:
    """Make a source that reads a log to its end, each line once."""

    def source(line: SourceContext) -> None:
        lines, query, failures = LogLines(keeps_stamps=ask.has_timestamps), ask.query(), 0
        while True:
            try:
                if _read_once(line, read, lines, query):
                    break
                failures = 0
                line.pause(FIRST_PAUSE)
            except (ServiceUnavailable, BadRequest) as error:
                # BadRequest: the container is not there yet, says a kubelet that is a little behind its own status.
                failures += 1
                if failures == 1 and isinstance(error, ServiceUnavailable):
                    line.put(Lost(message=str(error)))
                line.pause(pause_after(failures))
            lines.resume()
            query = resumed(ask, lines.since)
        if text := lines.end():
            line.put(Said(read=read, text=text))
        line.put(Read(read=read))

    return source


def _read_once(line: SourceContext, read: LogTry, lines: LogLines, query: dict[str, str]) -> bool:
    """Read until the stream ends; tell whether the log does, too."""
    try:
        for chunk in line.cluster.stream(PODS.path(read.namespace, read.pod, "log"), query):
            if text := lines.feed(chunk):
                line.put(Said(read=read, text=text))
        return has_ended(line.cluster.get(PODS, read.namespace, read.pod), read.restarts)
    except NotFound:
        return True


def pause_after(failures: int) -> float:
    """Give the pause after so many failures in a row."""
    return float(min(FIRST_PAUSE * 2 ** min(failures, DOUBLINGS), LONGEST_PAUSE))


def resumed(ask: LogOptions, since: str) -> dict[str, str]:
    """Spell how to go on after the line stamped `since`; before the first line, ask for the same again."""
    query = ask.query()
    if since:
        query.pop("tailLines", None)
        query.pop("sinceSeconds", None)
        # Whole seconds are all that every server understands; what comes twice is skipped here.
        query["sinceTime"] = f"{since[:19]}{since[-6:] if since[-6] in '+-' else 'Z'}"
    return query


def has_ended(pod: Object, restarts: int) -> bool:
    """Tell whether the process behind a log is over, so that nothing more will come."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return True
    for container in (status.get("containerStatuses") or ())[:1]:
        state = container.get("state") or {}
        if int(container.get("restartCount") or 0) > restarts or state.get("terminated"):
            return True
    return False
