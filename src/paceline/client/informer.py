"""Informers: list and watch a collection, and keep a cache of its objects with indexes and handlers."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

from paceline.apimachinery.meta import Key, Object, controller_of, key_of, labels_of, namespace_of, revision_of, uid_of
from paceline.apimachinery.selector import matches, parse_fields, parse_labels
from paceline.client.interface import Change, Collection, ListerWatcher, Select, WatchEvent
from paceline.client.workqueue import Backoff
from paceline.effects import Random
from paceline.errors import Expired, PacelineError, ServiceUnavailable

# Called with (change, old, new): `old` is None for ADDED, `new` for DELETED. Must not block or modify them.
Handler = Callable[[Change, Object | None, Object | None], None]
# Returns the keys of an object in an index.
IndexFunction = Callable[[Object], Iterable[Hashable]]

OWNER = "owner"


class Cache(Mapping[Key, Object]):
    """The objects of one collection. Readers get the objects themselves and must not change them."""

    def __init__(self, trim: Callable[[Object], Object] | None = None) -> None:
        # Returns the part of an object that is kept; once trimmed, an object stays as it is.
        self._trim = trim or without_managed_fields
        self._objects: dict[Key, Object] = {}
        self._index_functions: dict[str, IndexFunction] = {}
        self._indexed: dict[tuple[str, Hashable], dict[Key, Object]] = {}
        self.index(OWNER, _owner_uid)
        self._handlers: list[Handler] = []

    def __getitem__(self, key: Key) -> Object:
        return self._objects[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def owned(self, uid: str) -> tuple[Object, ...]:
        """Return the objects whose controller has this uid."""
        return self.having(OWNER, uid)

    def index(self, name: str, key_function: IndexFunction) -> None:
        """Add an index; call this before the first object is added."""
        self._index_functions[name] = key_function

    def having(self, name: str, index_key: Hashable) -> tuple[Object, ...]:
        """Return the objects with a key in an index, in no order."""
        return tuple(self._indexed.get((name, index_key), {}).values())

    def count(self, name: str, index_key: Hashable) -> int:
        """Return the number of objects with a key in an index."""
        return len(self._indexed.get((name, index_key), ()))

    def listen(self, handler: Handler) -> None:
        """Call a handler for every object in the cache, as added, and for every later change."""
        self._handlers.append(handler)
        for obj in tuple(self._objects.values()):
            handler(Change.ADDED, None, obj)

    def offer(self, obj: Object) -> None:
        """Add or update an object, unless the cache has the same or a newer revision."""
        old = self._objects.get(key_of(obj))
        if old is None or not is_known_order(obj, old) or is_later(revision_of(obj), revision_of(old)):
            self.accept(obj)

    def accept(self, obj: Object) -> None:
        """Add or replace an object; the same revision again changes nothing."""
        key, obj = key_of(obj), self._trim(obj)
        old = self._objects.get(key)
        if old is not None and uid_of(old) != uid_of(obj):
            # Another object of the same name: handlers must learn that the first one was deleted.
            self.drop(key)
            old = None
        if old is not None and revision_of(old) == revision_of(obj):
            return
        if old is not None:
            self._unindex(key, old)
        self._objects[key] = obj
        for name, key_function in self._index_functions.items():
            for index_key in key_function(obj):
                self._indexed.setdefault((name, index_key), {})[key] = obj
        self._notify(Change.MODIFIED if old is not None else Change.ADDED, old, obj)

    def drop(self, key: Key, last: Object | None = None) -> None:
        """Remove an object, if the cache has it; `last` is its last state, if known."""
        old = self._objects.pop(key, None)
        if old is None:
            return
        self._unindex(key, old)
        self._notify(Change.DELETED, last or old, None)

    def _unindex(self, key: Key, old: Object) -> None:
        for name, key_function in self._index_functions.items():
            for index_key in key_function(old):
                objects = self._indexed[name, index_key]
                del objects[key]
                if not objects:
                    del self._indexed[name, index_key]

    def _notify(self, change: Change, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            handler(change, old, new)


def _owner_uid(obj: Object) -> tuple[str, ...]:
    owner = controller_of(obj)
    return () if owner is None else (str(owner.get("uid")),)


def is_later(revision: str, than: str) -> bool:
    """Return whether a revision is later than another; revisions that are not numbers cannot be compared."""
    return revision.isdigit() and than.isdigit() and int(revision) > int(than)


def without_managed_fields(obj: Object) -> Object:
    """Return an object without managed fields, which are half of its size and not used by controllers."""
    metadata = obj.get("metadata") or {}
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def is_known_order(one: Object, other: Object) -> bool:
    """Return whether the revisions of two objects can be compared."""
    first, second = revision_of(one), revision_of(other)
    return first == second or (first.isdigit() and second.isdigit())


log = logging.getLogger(__name__)

AGAIN = Backoff(first_seconds=0.1, most_seconds=10.0)
# A watch that lasted this long resets the back-off.
STEADY_SECONDS = 10.0
# After so many failures in a row the server may have lost the revision: list again.
MAX_RESUMES = 3
LEAST_WATCH_SECONDS = 240
MOST_WATCH_SECONDS = 480


class Informer:
    """A cache that follows one collection while `run` runs."""

    def __init__(
        self,
        cluster: ListerWatcher,
        collection: Collection,
        *,
        select: Select | None = None,
        chance: Random,
        on_change: Handler | None = None,
    ) -> None:
        select = select or Select()
        self.cache = Cache(select.trim)
        # Set once the first list is in the cache.
        self.has_synced = asyncio.Event()
        self._cluster = cluster
        self._collection = collection
        self._select = replace(select, trim=select.trim or without_managed_fields)
        self._labels = parse_labels(self._select.labels)
        self._chance = chance
        # The cache includes everything up to this revision; empty when a list is needed.
        self._revision = ""
        # Our own writes during a list; None when no list is running.
        self._meanwhile: set[Key] | None = None
        if on_change is not None:
            self.cache.listen(on_change)

    def owned(self, uid: str) -> tuple[Object, ...]:
        """Return the objects whose controller has this uid."""
        return self.cache.owned(uid)

    def observe(self, obj: Object) -> None:
        """Add the response to our own write, so that the next reconcile sees it."""
        key = key_of(obj)
        if not self._selects(obj):
            return
        if key not in self.cache and self._has_passed(revision_of(obj)):
            # The watch is past this write and has no such object: it is deleted already.
            return
        if self._meanwhile is not None:
            self._meanwhile.add(key)
        self.cache.offer(obj)

    async def run(self) -> None:
        """Follow the collection until cancelled; retry after errors of the server."""
        loop = asyncio.get_running_loop()
        turns = failures = 0
        while True:
            began = loop.time()
            error = await self._list_and_watch(is_in_doubt=failures > MAX_RESUMES)
            is_steady = loop.time() - began >= STEADY_SECONDS
            turns = 1 if is_steady else turns + 1
            failures = 0 if error is None else 1 if is_steady else failures + 1
            if error is not None:
                self._log(error, failures)
            # Also after a clean close: a server that closes at once must not be called in a tight loop.
            wanted = error.retry_after if isinstance(error, ServiceUnavailable) else 0.0
            await asyncio.sleep(max(AGAIN.pause(turns, self._chance), wanted))

    async def _list_and_watch(self, *, is_in_doubt: bool) -> PacelineError | None:
        """List if needed and watch until the server ends the stream; return the error, if any."""
        try:
            if is_in_doubt or not self._revision:
                await self._relist()
            await self._follow()
        except Expired:
            self._revision = ""
        except PacelineError as error:
            return error
        return None

    async def _relist(self) -> None:
        self._meanwhile = set()
        try:
            page = await self._cluster.list(self._collection, self._select)
            meanwhile = self._meanwhile
        finally:
            self._meanwhile = None
        present = {key_of(obj) for obj in page.items}
        for key in [key for key in self.cache if key not in present]:
            is_ours = key in meanwhile and is_later(revision_of(self.cache[key]), page.revision)
            if not is_ours:
                self.cache.drop(key)
        for obj in page.items:
            # The list wins, even if it is older (a restored server), except over our own writes meanwhile.
            if key_of(obj) in meanwhile:
                self.cache.offer(obj)
            else:
                self.cache.accept(obj)
        self._revision = page.revision
        self.has_synced.set()

    async def _follow(self) -> None:
        spread = MOST_WATCH_SECONDS - LEAST_WATCH_SECONDS
        seconds = LEAST_WATCH_SECONDS + int(spread * self._chance.fraction())
        events = self._cluster.watch(self._collection, self._select, since=self._revision, timeout_seconds=seconds)
        async with aclosing(events):
            async for event in events:
                self._process(event)

    def _process(self, event: WatchEvent) -> None:
        obj = event.object
        if event.change is Change.DELETED:
            self._remove(obj)
        elif event.change is not Change.BOOKMARK:
            self.cache.offer(obj)
        self._revision = revision_of(obj) or self._revision

    def _remove(self, obj: Object) -> None:
        cached = self.cache.get(key_of(obj))
        # The deletion of an earlier object of that name: ours was created after it.
        if cached is not None and (
            uid_of(cached) == uid_of(obj) or not is_later(revision_of(cached), revision_of(obj))
        ):
            self.cache.drop(key_of(obj), obj)

    def _has_passed(self, revision: str) -> bool:
        return self._revision != "" and (revision == self._revision or is_later(self._revision, revision))

    def _selects(self, obj: Object) -> bool:
        """Return whether the selection includes an object."""
        if self._select.namespace and namespace_of(obj) != self._select.namespace:
            return False
        fields = parse_fields(self._select.fields, group=self._collection.group, kind=str(obj.get("kind")))
        return matches(self._labels, labels_of(obj)) and all(rule.holds(obj) for rule in fields)

    def _log(self, error: PacelineError, failures: int) -> None:
        details = {"collection": self._collection.plural, "reason": error.reason, "error": str(error)}
        # Warn once per outage.
        level = logging.WARNING if failures == 1 else logging.DEBUG
        log.log(level, "cannot follow a collection", extra=details)


@asynccontextmanager
async def running(
    *informers: Informer, shared: Iterable[Informer] = (), synced: asyncio.Event
) -> AsyncGenerator[asyncio.TaskGroup, None]:
    """Run informers while the block runs; it starts, and `synced` is set, once all caches are filled.

    The block gets the task group. Informers in `shared` are run by someone else, and only waited for.
    """
    async with asyncio.TaskGroup() as group:
        for informer in informers:
            group.create_task(informer.run())
        for informer in (*informers, *shared):
            await informer.has_synced.wait()
        synced.set()
        yield group
