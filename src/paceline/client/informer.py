"""Follow a collection: list it, watch it, list it again when history is gone, and keep what was seen."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager

from paceline.apimachinery.meta import Key, Object, controller_of, key_of, labels_of, namespace_of, revision_of, uid_of
from paceline.apimachinery.selector import matches, parse_fields, parse_labels
from paceline.client.interface import Change, Cluster, Collection, Select, WatchEvent
from paceline.client.workqueue import Backoff
from paceline.effects import Random
from paceline.errors import Expired, PacelineError

# Told (change, old, new): `old` is None for ADDED, `new` is None for DELETED. Must not block or change either.
Handler = Callable[[Change, Object | None, Object | None], None]
# The words under which an object is found in an index.
Words = Callable[[Object], Iterable[Hashable]]

OWNER = "owner"


class Cache(Mapping[Key, Object]):
    """The objects of one collection. Readers get the objects themselves and must not change them."""

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}
        self._words: dict[str, Words] = {}
        self._found: dict[tuple[str, Hashable], dict[Key, Object]] = {}
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

    def index(self, name: str, key_function: Words) -> None:
        """Have objects found by words of theirs, in no order; asked for before the first object comes in."""
        self._words[name] = key_function

    def having(self, name: str, word: Hashable) -> tuple[Object, ...]:
        """Return the objects that an index has under a word."""
        return tuple(self._found.get((name, word), {}).values())

    def count(self, name: str, word: Hashable) -> int:
        """Count the objects that an index has under a word."""
        return len(self._found.get((name, word), ()))

    def listen(self, handler: Handler) -> None:
        """Tell a handler of every later change; what is there already is told at once, as added."""
        self._handlers.append(handler)
        for obj in tuple(self._objects.values()):
            handler(Change.ADDED, None, obj)

    def offer(self, obj: Object) -> None:
        """Take an object in unless what is there is as new or newer."""
        old = self._objects.get(key_of(obj))
        if old is None or not is_known_order(obj, old) or is_later(revision_of(obj), revision_of(old)):
            self.accept(obj)

    def accept(self, obj: Object) -> None:
        """Take an object in, whatever was there; the very same one again changes nothing."""
        key, obj = key_of(obj), _lean(obj)
        old = self._objects.get(key)
        if old is not None and uid_of(old) != uid_of(obj):
            # Another object by the same name: whoever cared for the first must learn that it went.
            self.drop(key)
            old = None
        if old is not None and revision_of(old) == revision_of(obj):
            return
        if old is not None:
            self._unindex(key, old)
        self._objects[key] = obj
        for name, key_function in self._words.items():
            for word in key_function(obj):
                self._found.setdefault((name, word), {})[key] = obj
        self._tell(Change.MODIFIED if old is not None else Change.ADDED, old, obj)

    def drop(self, key: Key, last: Object | None = None) -> None:
        """Take an object out, if it is there; `last` is its last form, where that is known."""
        old = self._objects.pop(key, None)
        if old is None:
            return
        self._unindex(key, old)
        self._tell(Change.DELETED, last or old, None)

    def _unindex(self, key: Key, old: Object) -> None:
        for name, key_function in self._words.items():
            for word in key_function(old):
                mates = self._found[name, word]
                del mates[key]
                if not mates:
                    del self._found[name, word]

    def _tell(self, change: Change, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            handler(change, old, new)


def _owner_uid(obj: Object) -> tuple[str, ...]:
    owner = controller_of(obj)
    return () if owner is None else (str(owner.get("uid")),)


def is_later(revision: str, than: str) -> bool:
    """Return whether a revision is known to come after another; revisions that are no numbers cannot be told."""
    return revision.isdigit() and than.isdigit() and int(revision) > int(than)


def _lean(obj: Object) -> Object:
    """Leave out who owns which field: it is half of an object, and nobody here asks."""
    metadata = obj.get("metadata") or {}
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def is_known_order(one: Object, other: Object) -> bool:
    """Return whether it can be said which of two forms of an object is newer."""
    first, second = revision_of(one), revision_of(other)
    return first == second or (first.isdigit() and second.isdigit())


log = logging.getLogger(__name__)

AGAIN = Backoff(first_seconds=0.1, most_seconds=10.0)
# A watch that held this long was a good one: the next pause is the first again.
STEADY_SECONDS = 10.0
# After so much trouble in a row the revision itself is in doubt: the server may have lost it.
MAX_RESUMES = 3
LEAST_WATCH_SECONDS = 240
MOST_WATCH_SECONDS = 480


class Informer:
    """A cache that follows one collection while `run` runs."""

    def __init__(
        self,
        cluster: Cluster,
        collection: Collection,
        *,
        select: Select | None = None,
        chance: Random,
        on_change: Handler | None = None,
    ) -> None:
        self.cache = Cache()
        # Set once the first list is in the cache.
        self.has_synced = asyncio.Event()
        self._cluster = cluster
        self._collection = collection
        self._select = select or Select()
        self._labels = parse_labels(self._select.labels)
        self._chance = chance
        # Everything up to this revision has been seen; empty when a list is needed.
        self._revision = ""
        # Our own writes that came in while a list was being read; None while none is.
        self._meanwhile: set[Key] | None = None
        if on_change is not None:
            self.cache.listen(on_change)

    def owned(self, uid: str) -> tuple[Object, ...]:
        """Return the objects whose controller has this uid."""
        return self.cache.owned(uid)

    def observe(self, obj: Object) -> None:
        """Take in the answer to a write of our own, so that the next look sees it."""
        key = key_of(obj)
        if not self._selects(obj):
            return
        if key not in self.cache and self._has_passed(revision_of(obj)):
            # The watch has been beyond this write and does not have it: it is gone already.
            return
        if self._meanwhile is not None:
            self._meanwhile.add(key)
        self.cache.offer(obj)

    async def run(self) -> None:
        """Follow the collection until cancelled; trouble with the server is waited out."""
        loop = asyncio.get_running_loop()
        turns = troubles = 0
        while True:
            began = loop.time()
            error = await self._turn(is_in_doubt=troubles > MAX_RESUMES)
            is_steady = loop.time() - began >= STEADY_SECONDS
            turns = 1 if is_steady else turns + 1
            troubles = 0 if error is None else 1 if is_steady else troubles + 1
            if error is not None:
                self._say(error, troubles)
            # Also after a clean close: a server that hangs up at once must not be called in a tight loop.
            await asyncio.sleep(AGAIN.pause(turns, self._chance))

    async def _turn(self, *, is_in_doubt: bool) -> PacelineError | None:
        """List if need be and watch until the server ends it; give the trouble there was, if any."""
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
            # The list is the truth, even where it is older (a restored server), but for what we wrote meanwhile.
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
                self._take_in(event)

    def _take_in(self, event: WatchEvent) -> None:
        obj = event.object
        if event.change is Change.DELETED:
            self._lose(obj)
        elif event.change is not Change.BOOKMARK:
            self.cache.offer(obj)
        self._revision = revision_of(obj) or self._revision

    def _lose(self, obj: Object) -> None:
        cached = self.cache.get(key_of(obj))
        # An older end of another object by that name: ours was made after it.
        if cached is not None and (
            uid_of(cached) == uid_of(obj) or not is_later(revision_of(cached), revision_of(obj))
        ):
            self.cache.drop(key_of(obj), obj)

    def _has_passed(self, revision: str) -> bool:
        return self._revision != "" and (revision == self._revision or is_later(self._revision, revision))

    def _selects(self, obj: Object) -> bool:
        """Return whether an object is in the selection, as the server would."""
        if self._select.namespace and namespace_of(obj) != self._select.namespace:
            return False
        fields = parse_fields(self._select.fields, group=self._collection.group, kind=str(obj.get("kind")))
        return matches(self._labels, labels_of(obj)) and all(rule.holds(obj) for rule in fields)

    def _say(self, error: PacelineError, troubles: int) -> None:
        details = {"collection": self._collection.plural, "reason": error.reason, "error": str(error)}
        # Once per spell of trouble; the rest would only repeat it.
        level = logging.WARNING if troubles == 1 else logging.DEBUG
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
