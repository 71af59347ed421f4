"""Watch: what happens to the objects of a collection, as lines of JSON, for as long as someone listens."""

import asyncio
from collections import OrderedDict
from typing import Self

import orjson

from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource
from paceline.apiserver import status_errors
from paceline.apiserver.config import Server
from paceline.apiserver.crd.conversion import in_version
from paceline.apiserver.encoding.negotiation import Representation, TableRenderer, partial_metadata, representation_of
from paceline.apiserver.handlers.list_options import list_options_of
from paceline.apiserver.handlers.selection import Selection, selection_of
from paceline.apiserver.http_types import ClientStalled, HttpRequest, Write
from paceline.apiserver.object_strategy import read
from paceline.apiserver.object_strategy import write as write_object
from paceline.apiserver.paths import Target
from paceline.apiserver.slicing import in_slices
from paceline.errors import Expired
from paceline.store.backend import Op, Record
from paceline.store.store import Stored
from paceline.store.watch_hub import Watch

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = b"ADDED", b"MODIFIED", b"DELETED", b"BOOKMARK", b"ERROR"

DEFAULT_SECONDS = 1800.0
MAX_SECONDS = 86400.0
BOOKMARK_SECONDS = 60.0
# A client that takes nothing for so long is cut off; it lists and watches again when it is back.
STALL_SECONDS = 30.0
# Events that are kept as they were sent, for those who are to be told the same.
KEPT_BYTES = 4 * 1024 * 1024
# What is written for one client at a time, so that one that does not read costs no more than that.
CHUNK_BYTES = 16 * 1024

_CHANGES = {Op.CREATE: ADDED, Op.REPLACE: MODIFIED, Op.DELETE: DELETED}
_INITIAL_END = "k8s.io/initial-events-end"


def event_type_of(record: Record, selection: Selection) -> bytes | None:
    """Tell what a record is to whoever follows a selection: entering it is being added, leaving it is being deleted."""
    if selection.is_fixed:
        if not selection.takes_key(record.key):
            return None
        return _CHANGES[record.op]
    now = record.op is not Op.DELETE and selection.takes(record.key, record.value)
    if now:
        return MODIFIED if _was_in(record, selection) else ADDED
    return DELETED if _was_in(record, selection) else None


def _was_in(record: Record, selection: Selection) -> bool:
    if record.op is Op.CREATE:
        return False
    if record.previous is None:
        # Right after a start, what came before the kept history is not known: a DELETED too many is harmless, one too
        # few is not.
        return selection.takes_key(record.key)
    return selection.takes(record.key, record.previous)


class EventCache:
    """Events as they are sent: written once for all who follow the same objects in the same form."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._bytes = 0

    def one(self, record: Record, change: bytes, *, form: Representation, resource: Resource) -> bytes:
        """Give the line that tells a change of an object, or of its metadata."""
        known = (record.revision, change, form, resource.version)
        line = self._kept.get(known)
        if line is None:
            line = self._keep(
                known, write_line(change, object_for_watcher(record, change), form=form, resource=resource)
            )
        return line

    def all(self, records: tuple[Record, ...], prefix: str, *, form: Representation, resource: Resource) -> bytes:
        """Give the lines for one who follows all that a prefix holds: the same records, the same bytes."""
        known = (records[0].revision, records[-1].revision, len(records), prefix, form, resource.version)
        lines = self._kept.get(known)
        if lines is None:
            told = [write_line(_CHANGES[record.op], record.value, form=form, resource=resource) for record in records]
            lines = self._keep(known, b"".join(told))
        return lines

    def _keep(self, known: tuple[object, ...], lines: bytes) -> bytes:
        self._kept[known] = lines
        self._bytes += len(lines)
        while self._bytes > KEPT_BYTES:
            self._bytes -= len(self._kept.popitem(last=False)[1])
        return lines


def write_line(change: bytes, value: bytes, *, form: Representation, resource: Resource) -> bytes:
    """Write the line that tells a change of an object, or of its metadata."""
    value = in_version(resource, value)
    return _event(change, value if form is Representation.OBJECT else orjson.dumps(partial_metadata(read(value))))


def object_for_watcher(record: Record, change: bytes) -> bytes:
    """Give what a watcher is told of an object; of one that is gone for it, what it last knew, as of the end."""
    if change != DELETED or record.op is Op.DELETE or record.previous is None:
        return record.value
    return write_object(read(record.previous), record.revision)


class StallGuard:
    """Sends for as long as the client takes something now and then; else it lets a time limit strike.

    One timer at most, and none while nothing is being sent: a timer for each send costs more than sending.
    """

    def __init__(self, write: Write, limit: asyncio.Timeout) -> None:
        self._write = write
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def send(self, chunk: bytes) -> None:
        """Send, and notice when that takes too long."""
        self._since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_at(self._since + STALL_SECONDS, self._look)
        await self._write(chunk[:CHUNK_BYTES])
        for start in range(CHUNK_BYTES, len(chunk), CHUNK_BYTES):
            # Something was taken.
            self._since = self._loop.time()
            await self._write(chunk[start : start + CHUNK_BYTES])
        self._since = None

    def _look(self) -> None:
        self._timer = None
        if self._since is None:
            return
        due = self._since + STALL_SECONDS
        if self._loop.time() < due:
            self._timer = self._loop.call_at(due, self._look)
        else:
            self._limit.reschedule(self._loop.time())


class WatchStream:
    """One watch, as the stream that answers it."""

    content_type = "application/json"

    def __init__(self, request: HttpRequest, server: Server, target: Target, *, sent: EventCache) -> None:
        self._server = server
        self._resource = target.resource
        self._form = representation_of(request)
        self._tables = TableRenderer(request, target.resource, server.clock)
        self._sent = sent
        self._bookmarks = request.flag("allowWatchBookmarks")
        self._asked = asked = list_options_of(request, watch=True)
        self._seconds = min(float(max(asked.seconds or 0, 0) or DEFAULT_SECONDS), MAX_SECONDS)
        self._selection = selection_of(request, target)
        self._prefix = self._selection.prefix(target)
        # Nothing up to here is told: a client may ask for a revision that is yet to come.
        self._since = asked.revision or 0
        self._told_bookmark = self._since - 1

    async def run(self, write: Write) -> None:
        """Tell what is there if that was asked for, then what happens, until the time is up."""
        try:
            async with asyncio.timeout(None) as limit:
                with StallGuard(write, limit) as patient:
                    await self._run(patient.send)
        except TimeoutError:
            raise ClientStalled from None

    async def _run(self, send: Write) -> None:
        try:
            watch, items = self._start()
        except (Expired, status_errors.StatusError) as error:
            # As Kubernetes does: the stream begins well and its first event is the error.
            await send(_error(error))
            return
        with watch:
            await send(b"")
            await self._tell_initial(items, watch.position, send)
            try:
                await self._follow(watch, send)
            except Expired as error:
                await send(_error(error))

    def _start(self) -> tuple[Watch, tuple[Stored, ...]]:
        """Begin to follow, and give the objects that are there at that very moment."""
        store = self._server.store
        if not self._asked.wants_initial:
            since = self._since or store.revision
            return store.watch(self._prefix, min(since, store.revision)), ()
        if self._since > store.revision:
            raise status_errors.revision_too_large(self._since, store.revision)
        self._since = store.revision
        return store.watch(self._prefix, store.revision), store.list(self._prefix)

    async def _tell_initial(self, items: tuple[Stored, ...], revision: int, send: Write) -> None:
        if not self._asked.wants_initial:
            return
        lines: list[bytes] = []
        size = 0
        async for some in in_slices(items, _size_of):
            for stored in some:
                if self._selection.takes(stored.key, stored.value):
                    lines.append(self._line(ADDED, stored.value))
                    size += len(lines[-1])
                if size > CHUNK_BYTES:
                    await send(b"".join(lines))
                    lines, size = [], 0
        if self._bookmarks:
            lines.append(self._bookmark(revision, {_INITIAL_END: "true"}))
        await send(b"".join(lines))

    async def _follow(self, watch: Watch, send: Write) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        end, next_bookmark = now + self._seconds, now + BOOKMARK_SECONDS
        due = min(end, next_bookmark)
        timer = loop.call_at(due, watch.nudge)
        try:
            while now < end:
                records = await watch.take(CHUNK_BYTES)
                if not records and watch.is_over:
                    return
                # Before any bookmark, which must not pass what was taken.
                if records and (told := self._told(records)):
                    await send(told)
                # A timer may be a little early; when it has struck, it is time.
                now = loop.time() if records else max(loop.time(), due)
                if now >= next_bookmark:
                    await self._tell_bookmark(watch, send)
                    next_bookmark = now + BOOKMARK_SECONDS
                    timer.cancel()
                    due = min(end, next_bookmark)
                    timer = loop.call_at(due, watch.nudge)
        finally:
            timer.cancel()
        await self._tell_bookmark(watch, send)

    def _told(self, records: tuple[Record, ...]) -> bytes:
        """Write what the client is to be told of some records."""
        is_plain = self._selection.is_all and self._form is not Representation.TABLE
        if is_plain and records[0].revision > self._since:
            return self._sent.all(records, self._prefix, form=self._form, resource=self._resource)
        return b"".join(
            self._line_of(record, change)
            for record in records
            if record.revision > self._since and (change := event_type_of(record, self._selection)) is not None
        )

    def _line_of(self, record: Record, change: bytes) -> bytes:
        if self._form is Representation.TABLE:
            return self._line(change, object_for_watcher(record, change))
        return self._sent.one(record, change, form=self._form, resource=self._resource)

    def _line(self, change: bytes, value: bytes) -> bytes:
        if self._form is not Representation.TABLE:
            return write_line(change, value, form=self._form, resource=self._resource)
        value = in_version(self._resource, value)
        revision = read(value)["metadata"]["resourceVersion"]
        return _event(change, self._tables.of((value,), {"resourceVersion": revision}))

    async def _tell_bookmark(self, watch: Watch, send: Write) -> None:
        if self._bookmarks and watch.position > self._told_bookmark:
            await send(self._bookmark(watch.position))

    def _bookmark(self, revision: int, annotations: Object | None = None) -> bytes:
        self._told_bookmark = revision
        metadata: Object = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        mark = {"apiVersion": self._resource.api_version, "kind": self._resource.kind, "metadata": metadata}
        return self._line(BOOKMARK, orjson.dumps(mark))


def _size_of(stored: Stored) -> int:
    return len(stored.value)


def _event(change: bytes, obj: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (change, obj)


def _error(error: Expired | status_errors.StatusError) -> bytes:
    status = error.status if isinstance(error, status_errors.StatusError) else status_errors.expired(str(error)).status
    return _event(ERROR, orjson.dumps(status.to_wire()))
