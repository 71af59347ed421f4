"""Watch: the changes of a collection, as lines of JSON."""

import asyncio
from collections import OrderedDict
from contextlib import closing

import orjson

from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource
from paceline.apiserver import status_errors
from paceline.apiserver.config import Server
from paceline.apiserver.encoding.negotiation import Representation, TableRenderer, partial_metadata, representation_of
from paceline.apiserver.handlers.list_options import Selection, list_options_of, selection_of
from paceline.apiserver.http_types import STALL_SECONDS, ClientStalled, HttpRequest, Write
from paceline.apiserver.object_strategy import in_version, read
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
# Size of the event cache.
CACHE_BYTES = 4 * 1024 * 1024
# Bytes sent at a time: a client that does not read costs no more memory.
CHUNK_BYTES = 16 * 1024

_CHANGES = {Op.CREATE: ADDED, Op.REPLACE: MODIFIED, Op.DELETE: DELETED}
_INITIAL_END = "k8s.io/initial-events-end"


def event_type_of(record: Record, selection: Selection) -> bytes | None:
    """Return the event type of a record for a selection (ADDED when it starts to match, DELETED when it stops)."""
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
        # After a start, the value before the oldest record is unknown: an extra DELETED is harmless, a missing one is
        # not.
        return selection.takes_key(record.key)
    return selection.takes(record.key, record.previous)


class EventCache:
    """Encoded events, shared by all watches on the same objects in the same representation."""

    def __init__(self) -> None:
        self._lines: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._bytes = 0

    def one(self, record: Record, change: bytes, *, form: Representation, resource: Resource) -> bytes:
        cache_key = (record.revision, change, form, resource.version)
        line = self._lines.get(cache_key)
        if line is None:
            line = self._keep(
                cache_key,
                write_line(change, object_for_watcher(record, change), form=form, resource=resource),
            )
        return line

    def all(self, records: tuple[Record, ...], prefix: str, *, form: Representation, resource: Resource) -> bytes:
        """Return the events of records, for a watch without selectors."""
        cache_key = (records[0].revision, records[-1].revision, len(records), prefix, form, resource.version)
        lines = self._lines.get(cache_key)
        if lines is None:
            events = [write_line(_CHANGES[record.op], record.value, form=form, resource=resource) for record in records]
            lines = self._keep(cache_key, b"".join(events))
        return lines

    def _keep(self, cache_key: tuple[object, ...], lines: bytes) -> bytes:
        self._lines[cache_key] = lines
        self._bytes += len(lines)
        while self._bytes > CACHE_BYTES:
            self._bytes -= len(self._lines.popitem(last=False)[1])
        return lines


def write_line(change: bytes, value: bytes, *, form: Representation, resource: Resource) -> bytes:
    value = in_version(resource, value)
    return _event(change, value if form is Representation.OBJECT else orjson.dumps(partial_metadata(read(value))))


def object_for_watcher(record: Record, change: bytes) -> bytes:
    """Return the object of an event; one that stopped matching has its last matching state."""
    if change != DELETED or record.op is Op.DELETE or record.previous is None:
        return record.value
    return write_object(read(record.previous), record.revision)


class StallGuard:
    """Sends chunks, and triggers a timeout if the client accepts nothing for a while.

    There is at most one timer, and none while nothing is sent: a timer per send would cost more than sending.
    """

    def __init__(self, write: Write, limit: asyncio.Timeout) -> None:
        self._write = write
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def send(self, chunk: bytes) -> None:
        self._since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_at(self._since + STALL_SECONDS, self._check)
        await self._write(chunk[:CHUNK_BYTES])
        for start in range(CHUNK_BYTES, len(chunk), CHUNK_BYTES):
            # The client has accepted something.
            self._since = self._loop.time()
            await self._write(chunk[start : start + CHUNK_BYTES])
        self._since = None

    def _check(self) -> None:
        self._timer = None
        if self._since is None:
            return
        due = self._since + STALL_SECONDS
        if self._loop.time() < due:
            self._timer = self._loop.call_at(due, self._check)
        else:
            self._limit.reschedule(self._loop.time())


class WatchStream:
    content_type = "application/json"

    def __init__(self, request: HttpRequest, server: Server, target: Target, *, cache: EventCache) -> None:
        self._server = server
        self._resource = target.resource
        self._form = representation_of(request)
        self._tables = TableRenderer(request, target.resource, server.clock)
        self._cache = cache
        self._bookmarks = request.flag("allowWatchBookmarks")
        self._options = options = list_options_of(request, watch=True)
        self._seconds = min(float(max(options.seconds or 0, 0) or DEFAULT_SECONDS), MAX_SECONDS)
        self._selection = selection_of(request, target)
        self._prefix = self._selection.prefix(target)
        # Send nothing up to this revision, which may be in the future.
        self._since = options.revision or 0
        self._last_bookmark = self._since - 1

    async def run(self, write: Write) -> None:
        """Send the initial objects if requested, then changes, until the timeout."""
        try:
            async with asyncio.timeout(None) as limit:
                with closing(StallGuard(write, limit)) as patient:
                    await self._run(patient.send)
        except TimeoutError:
            raise ClientStalled from None

    async def _run(self, send: Write) -> None:
        try:
            watch, items = self._start()
        except (Expired, status_errors.StatusError) as error:
            # Like Kubernetes: the response is 200 and its first event is the error.
            await send(_error(error))
            return
        with watch:
            await send(b"")
            await self._send_initial(items, watch.position, send)
            try:
                await self._follow(watch, send)
            except Expired as error:
                await send(_error(error))

    def _start(self) -> tuple[Watch, tuple[Stored, ...]]:
        store = self._server.store
        if not self._options.wants_initial:
            since = self._since or store.revision
            return store.watch(self._prefix, min(since, store.revision)), ()
        if self._since > store.revision:
            raise status_errors.revision_too_large(self._since, store.revision)
        self._since = store.revision
        return store.watch(self._prefix, store.revision), store.list(self._prefix)

    async def _send_initial(self, items: tuple[Stored, ...], revision: int, send: Write) -> None:
        if not self._options.wants_initial:
            return
        lines: list[bytes] = []
        size = 0
        async for some in in_slices(items, lambda stored: len(stored.value)):
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
                # Before a bookmark, which must not be ahead of the events.
                if records and (events := self._encoded(records)):
                    await send(events)
                # The timer may fire slightly early.
                now = loop.time() if records else max(loop.time(), due)
                if now >= next_bookmark:
                    await self._send_bookmark(watch, send)
                    next_bookmark = now + BOOKMARK_SECONDS
                    timer.cancel()
                    due = min(end, next_bookmark)
                    timer = loop.call_at(due, watch.nudge)
        finally:
            timer.cancel()
        await self._send_bookmark(watch, send)

    def _encoded(self, records: tuple[Record, ...]) -> bytes:
        is_plain = self._selection.is_all and self._form is not Representation.TABLE
        if is_plain and records[0].revision > self._since:
            return self._cache.all(records, self._prefix, form=self._form, resource=self._resource)
        return b"".join(
            self._line_of(record, change)
            for record in records
            if record.revision > self._since and (change := event_type_of(record, self._selection)) is not None
        )

    def _line_of(self, record: Record, change: bytes) -> bytes:
        if self._form is Representation.TABLE:
            return self._line(change, object_for_watcher(record, change))
        return self._cache.one(record, change, form=self._form, resource=self._resource)

    def _line(self, change: bytes, value: bytes) -> bytes:
        if self._form is not Representation.TABLE:
            return write_line(change, value, form=self._form, resource=self._resource)
        value = in_version(self._resource, value)
        revision = read(value)["metadata"]["resourceVersion"]
        return _event(change, self._tables.render((value,), {"resourceVersion": revision}))

    async def _send_bookmark(self, watch: Watch, send: Write) -> None:
        if self._bookmarks and watch.position > self._last_bookmark:
            await send(self._bookmark(watch.position))

    def _bookmark(self, revision: int, annotations: Object | None = None) -> bytes:
        self._last_bookmark = revision
        metadata: Object = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        mark = {"apiVersion": self._resource.api_version, "kind": self._resource.kind, "metadata": metadata}
        return self._line(BOOKMARK, orjson.dumps(mark))


def _event(change: bytes, obj: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (change, obj)


def _error(error: Expired | status_errors.StatusError) -> bytes:
    status = error.status if isinstance(error, status_errors.StatusError) else status_errors.expired(str(error)).status
    return _event(ERROR, orjson.dumps(status.to_wire()))
