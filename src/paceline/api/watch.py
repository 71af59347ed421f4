"""Watch: what happens to the objects of a collection, as lines of JSON, for as long as someone listens."""

import asyncio
from collections.abc import Iterator

import orjson

from paceline.api import refusal
from paceline.api.change import read
from paceline.api.change import write as write_object
from paceline.api.exchange import Request, Write
from paceline.api.paths import Target
from paceline.api.read import number_of, revision_of
from paceline.api.render import META_API, Form, Tables, form_of, partial_of
from paceline.api.select import Selection, selection_of
from paceline.api.server import Server
from paceline.errors import Expired
from paceline.objects.meta import Object
from paceline.store.feed import Ahead, Watch
from paceline.store.log import Op, Record
from paceline.store.store import Stored

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = b"ADDED", b"MODIFIED", b"DELETED", b"BOOKMARK", b"ERROR"

DEFAULT_SECONDS = 1800.0
MAX_SECONDS = 86400.0
BOOKMARK_SECONDS = 30.0
# What one write holds at most while the objects that are there already are told.
CHUNK_BYTES = 256 * 1024

_INITIAL_END = "k8s.io/initial-events-end"


def change_of(record: Record, selection: Selection) -> bytes | None:
    """Tell what a record is to whoever follows a selection: entering it is being added, leaving it is being deleted."""
    if selection.is_fixed:
        if not selection.takes_key(record.key):
            return None
        return {Op.CREATE: ADDED, Op.REPLACE: MODIFIED, Op.DELETE: DELETED}[record.op]
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


class Changes:
    """One watch, as the stream that answers it."""

    content_type = "application/json"

    def __init__(self, request: Request, server: Server, target: Target) -> None:
        self._server = server
        self._resource = target.resource
        self._form = form_of(request)
        self._tables = Tables(request, target.resource, server.clock)
        self._bookmarks = request.flag("allowWatchBookmarks")
        self._seconds = min(float(number_of(request, "timeoutSeconds") or DEFAULT_SECONDS), MAX_SECONDS)
        self._selection = selection_of(request, target)
        self._prefix = self._selection.prefix(target)
        self._since = revision_of(request)
        self._sends_initial = self._wants_initial(request)
        self._told_bookmark = 0

    def _wants_initial(self, request: Request) -> bool:
        """Tell whether the objects that are there come first; that is what no revision, or 0, asks for."""
        said = request.query.get("sendInitialEvents")
        if said is None:
            return not self._since
        if request.query.get("resourceVersionMatch") != "NotOlderThan":
            raise refusal.bad_request(
                "sendInitialEvents: resourceVersionMatch must be NotOlderThan when it is set for a watch"
            )
        return request.flag("sendInitialEvents")

    async def run(self, write: Write) -> None:
        """Tell what is there if that was asked for, then what happens, until the time is up."""
        try:
            watch, items = self._start()
        except Expired as error:
            # As Kubernetes does: the stream begins well and its first event is the error.
            await write(_event(ERROR, orjson.dumps(refusal.expired(str(error)).status.to_wire())))
            return
        with watch:
            await write(b"")
            for chunk in self._initial(items, watch.position):
                await write(chunk)
            try:
                await self._follow(watch, write)
            except Expired as error:
                await write(_event(ERROR, orjson.dumps(refusal.expired(str(error)).status.to_wire())))

    def _start(self) -> tuple[Watch, tuple[Stored, ...]]:
        """Begin to follow, and give the objects that are there at that very moment."""
        store = self._server.store
        since = store.revision if self._sends_initial or not self._since else self._since
        if self._since and self._since > store.revision:
            raise refusal.too_new(self._since, store.revision)
        try:
            watch = store.watch(self._prefix, since)
        except Ahead as error:
            raise refusal.too_new(since, store.revision) from error
        return watch, store.list(self._prefix) if self._sends_initial else ()

    def _initial(self, items: tuple[Stored, ...], revision: int) -> Iterator[bytes]:
        if not self._sends_initial:
            return
        lines: list[bytes] = []
        size = 0
        for stored in items:
            if self._selection.takes(stored.key, stored.value):
                lines.append(self._line(ADDED, stored.value))
                size += len(lines[-1])
            if size > CHUNK_BYTES:
                yield b"".join(lines)
                lines, size = [], 0
        if self._bookmarks:
            lines.append(self._bookmark(revision, {_INITIAL_END: "true"}))
        yield b"".join(lines)

    async def _follow(self, watch: Watch, write: Write) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._seconds
        while (left := end - loop.time()) > 0:
            try:
                # Only the waiting is cut short: what was taken must be written before a bookmark passes it.
                async with asyncio.timeout(min(left, BOOKMARK_SECONDS)):
                    records = await watch.take()
            except TimeoutError:
                if self._bookmarks and watch.position > self._told_bookmark:
                    await write(self._bookmark(watch.position))
                continue
            if not records:
                return
            lines = [
                self._line(change, _last(record) if change == DELETED else record.value)
                for record in records
                if (change := change_of(record, self._selection)) is not None
            ]
            if lines:
                await write(b"".join(lines))

    def _line(self, change: bytes, value: bytes) -> bytes:
        match self._form:
            case Form.OBJECT:
                return _event(change, value)
            case Form.METADATA:
                return _event(change, orjson.dumps(partial_of(read(value))))
            case Form.TABLE:
                revision = read(value)["metadata"]["resourceVersion"]
                return _event(change, self._tables.of((value,), {"resourceVersion": revision}))

    def _bookmark(self, revision: int, annotations: Object | None = None) -> bytes:
        self._told_bookmark = revision
        metadata: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        mark = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        if self._form is not Form.OBJECT:
            mark |= {"kind": Form.METADATA.value, "apiVersion": META_API}
        return _event(BOOKMARK, orjson.dumps(mark))


def _event(change: bytes, obj: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (change, obj)


def _last(record: Record) -> bytes:
    """Give what a watcher is told of an object that is gone for it: as it last knew it, at the revision of the end."""
    if record.op is Op.DELETE or record.previous is None:
        return record.value
    return write_object(read(record.previous), record.revision)
