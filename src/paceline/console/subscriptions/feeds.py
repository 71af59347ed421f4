"""Feeds: collections that a person follows. A feed keeps what is needed of an object, such as its row, and no more."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

import orjson

from paceline.apimachinery.meta import Object, labels_of, name_of, namespace_of, revision_of, uid_of
from paceline.client.informer import Informer
from paceline.client.interface import Change, Collection, Page, Select, WatchEvent
from paceline.client.rest import Verbs
from paceline.console.rows import row_of
from paceline.console.subscriptions.journal import Delta, Journal
from paceline.console.subscriptions.messages import Body
from paceline.effects import Clock, Random
from paceline.errors import Expired, NotFound, PacelineError, TooLarge
from paceline.model.well_known_labels import OWNER_NAME

PAGE_OBJECTS = 500
# Whole objects are followed only where they are few.
MAX_OBJECTS = 1000
MAX_VIEW_OBJECTS = 20_000
POLL_SECONDS = 15.0
# Encoded changes that are kept for the other tabs.
MAX_PREPARED = 16
_IDENTITY = ("namespace", "name", "uid", "resourceVersion")

# Returns what is kept of an object, or None if it is of no interest.
Reduce = Callable[[Object], Object | bytes | None]


class Form(Enum):
    """What a feed keeps of an object."""

    # The row of a job.
    ROW = "row"
    # All of it; of collections that may be large there are limits.
    OBJECT = "object"
    # Events about one object and its pods.
    EVENT = "event"
    # All of it, of objects whose owner's name begins with the name of an application.
    OWNED = "owned"
    # What a pod requests, and where it is.
    REQUESTS = "requests"
    # All of it, read again and again, because it cannot be watched.
    POLLED = "polled"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedKey:
    """What a feed follows."""

    # More than one only if all have the same form, as jobs do.
    collections: tuple[Collection, ...]
    select: Select
    form: Form
    # The name of the object that events are about, or of the application.
    about: str = ""
    # Whether a view is rendered from it, and no tab gets the objects themselves.
    is_input: bool = False


def lean(obj: Object) -> Object:
    """Return a whole object without managed fields."""
    metadata = obj.get("metadata") or {}
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def reduce_of(key: FeedKey) -> Reduce:
    """Return what a feed keeps of an object."""
    match key.form:
        case Form.ROW:
            return encoded_row
        case Form.EVENT:
            return lambda event: lean(event) if is_about(event, key.about) else None
        case Form.OWNED:
            return lambda obj: lean(obj) if is_of(labels_of(obj).get(OWNER_NAME, ""), key.about) else None
        case Form.REQUESTS:
            return requests_of
    return lean


def encoded_row(job: Object) -> bytes:
    """Return the row of a job as JSON."""
    # Copied, because the encoder's result keeps its buffer, which is ten times as large as a row.
    return bytes(memoryview(orjson.dumps(row_of(job))))


def requests_of(pod: Object) -> Object:
    """Return a pod with only its phase, its node, and the resources of its containers."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    containers = [{"resources": container.get("resources") or {}} for container in spec.get("containers") or ()]
    return {
        "metadata": {"name": name_of(pod), "namespace": namespace_of(pod)},
        "spec": {"nodeName": spec.get("nodeName") or "", "containers": containers},
        "status": {"phase": status.get("phase") or ""},
    }


def is_about(event: Object, name: str) -> bool:
    """Return whether an event is about an object or one of its pods, whose names begin with the name of the object."""
    return is_of(str((event.get("involvedObject") or {}).get("name") or ""), name)


def is_of(word: str, name: str) -> bool:
    """Return whether a word is the name of an object, or begins with it."""
    return word == name or word.startswith(f"{name}-")


class Feed:
    """A journal that follows collections while `run` runs. Listeners are called after every change."""

    def __init__(self, client: Verbs, key: FeedKey, *, clock: Clock, chance: Random) -> None:
        self.key = key
        self.journal = Journal(int(chance.fraction() * 10**6))
        self.users = 0
        self.listeners: set[Callable[[], None]] = set()
        # Since when the cluster does not answer; None while it does.
        self.stale_since: datetime | None = None
        # Why no collection can be followed; None while at least one is.
        self.error: PacelineError | None = None
        self._clock = clock
        self._chance = chance
        self._reduce = reduce_of(key)
        self._prepared: OrderedDict[tuple[int, int, int, bool], Changes] = OrderedDict()
        source = _PolledSource if key.form is Form.POLLED else _Source
        self._sources = tuple(source(self, client, collection) for collection in key.collections)

    @property
    def has_synced(self) -> bool:
        """Return whether all that exists is in the journal."""
        return all(source.has_synced for source in self._sources)

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            for source in self._sources:
                group.create_task(source.run(self._chance), name=f"follow {source.collection.plural}")

    def reduced(self, obj: Object) -> Object | None:
        """Return the identity of an object with what the feed keeps of it; None if it is of no interest."""
        reduced, metadata = self._reduce(obj), obj["metadata"]
        identity = {name: metadata[name] for name in _IDENTITY if name in metadata}
        return None if reduced is None else {"metadata": identity, "kept": reduced}

    def put(self, reduced: Object) -> None:
        """Add what is kept of an object."""
        if self.journal.put(uid_of(reduced), revision_of(reduced), reduced["kept"]):
            self._check_size()
            self._tell()

    def drop(self, reduced: Object) -> None:
        """Remove an object."""
        self.journal.drop(uid_of(reduced))
        self._tell()

    def update(self) -> None:
        """Update the state of the feed from its sources: which are disconnected, and which have failed."""
        lost = any(source.is_lost for source in self._sources)
        if lost and self.stale_since is None:
            self.stale_since = self._clock.now()
        elif not lost:
            self.stale_since = None
        errors = [source.error for source in self._sources]
        # A kind that the cluster does not have, or that the person may not list, does not affect the others.
        failures = [error for error in errors if error is not None and not isinstance(error, NotFound)]
        self.error = failures[0] if failures and all(errors) else self.error if self._is_too_large else None
        self._tell()

    @property
    def _is_too_large(self) -> bool:
        return isinstance(self.error, TooLarge)

    def _check_size(self) -> None:
        limit = MAX_VIEW_OBJECTS if self.key.is_input else MAX_OBJECTS
        if self.key.form is Form.OBJECT and len(self.journal) > limit and not self._is_too_large:
            plural = self.key.collections[0].plural
            self.error = TooLarge(f"there are more than {limit} {plural}; narrow the selection")

    @contextmanager
    def listening(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call a listener after every change, until the block ends."""
        self.listeners.add(listener)
        try:
            yield
        finally:
            self.listeners.discard(listener)

    def changes(self, last_number: int, limit: int) -> "Changes":
        """Return the changes after a number as the tail of a message, encoded once for all tabs at that number."""
        journal, has_synced = self.journal, self.has_synced
        cache_key = (last_number, limit, journal.number, has_synced)
        changes = self._prepared.get(cache_key)
        if changes is None:
            delta = journal.delta(last_number, limit)
            has_more = delta.has_more or not has_synced
            changes = Changes(
                body=Body.of(_content(self.key.form, delta, journal.token(delta.number), has_more=has_more)),
                number=delta.number,
                has_more=delta.has_more,
            )
            self._prepared[cache_key] = changes
            if len(self._prepared) > MAX_PREPARED:
                self._prepared.popitem(last=False)
        return changes

    def _tell(self) -> None:
        for listener in tuple(self.listeners):
            listener()


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes of a feed, encoded."""

    body: Body
    # The number up to which this is all, and whether there is more after it now.
    number: int
    has_more: bool


def _content(form: Form, delta: Delta, token: str, *, has_more: bool) -> bytes:
    name = b"rows" if form is Form.ROW else b"objects"
    other_fields = orjson.dumps({"deleted": delta.deleted, "revision": token, "more": has_more})
    return b'"%s":[%s],%s' % (name, b",".join(delta.values), other_fields[1:])


class _Source:
    """One collection of a feed: lists and watches for the informer, reduces objects, and records failures."""

    def __init__(self, feed: Feed, client: Verbs, collection: Collection) -> None:
        self.collection = collection
        self.has_synced = False
        self.is_lost = False
        self.error: PacelineError | None = None
        self._feed = feed
        self._client = client

    async def run(self, chance: Random) -> None:
        """Follow the collection until cancelled."""
        informer = Informer(self, self.collection, select=self._feed.key.select, chance=chance, on_change=self._changed)
        await informer.run()

    async def list(self, where: Collection, select: Select | None = None, *, limit: int = PAGE_OBJECTS) -> Page:
        """Return all objects, reduced page by page; the journal has each page as soon as it is read."""
        try:
            page = await self._pages(where, select or Select(), limit)
        except PacelineError as error:
            self._fail(error)
            raise
        self.has_synced = True
        self._succeed(page.revision)
        return page

    async def watch(
        self, where: Collection, select: Select, *, since: str, timeout_seconds: int | None = None
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield the events after a revision, reduced."""
        try:
            if self.is_lost:
                # A watch is silent until something happens: only an answer shows that the cluster is back.
                await self._client.page(where, select, limit=1)
                self._succeed("")
            events = self._client.watch(where, select, since=since, timeout_seconds=timeout_seconds)
            async with aclosing(events):
                async for event in events:
                    yield self._reduced(event)
        except PacelineError as error:
            if not isinstance(error, Expired):
                self._fail(error)
            raise

    async def _pages(self, where: Collection, select: Select, limit: int) -> Page:
        page = first = await self._client.page(where, select, limit=limit)
        items = self._take(page)
        while page.next:
            try:
                page = await self._client.page(where, select, limit=limit, after=page.next)
            except Expired:
                # Reading took longer than the server keeps history; one request for everything needs none.
                first = page = await self._client.page(where, select, limit=0)
                items = ()
            items += self._take(page)
        return Page(items=items, revision=first.revision)

    def _take(self, page: Page) -> tuple[Object, ...]:
        items = tuple(reduced for obj in page.items if (reduced := self._feed.reduced(obj)) is not None)
        for reduced in items:
            self._feed.put(reduced)
        return items

    def _reduced(self, event: WatchEvent) -> WatchEvent:
        reduced = None if event.change is Change.BOOKMARK else self._feed.reduced(event.object)
        if reduced is None:
            # The informer learns of the revision only.
            self._feed.journal.see(revision_of(event.object))
            return WatchEvent(
                change=Change.BOOKMARK, object={"metadata": {"resourceVersion": revision_of(event.object)}}
            )
        return WatchEvent(change=event.change, object=reduced)

    def _changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._feed.put(new)
        elif old is not None:
            self._feed.drop(old)

    def _succeed(self, revision: str) -> None:
        self.is_lost, self.error = False, None
        self._feed.journal.see(revision)
        self._feed.update()

    def _fail(self, error: PacelineError) -> None:
        self.is_lost = error.retry
        self.error = None if self.is_lost else error
        # A collection that cannot be read counts as synced: waiting for it would not help.
        self.has_synced = self.has_synced or self.error is not None
        self._feed.update()


class _PolledSource(_Source):
    """A collection that cannot be watched, such as metrics."""

    async def run(self, chance: Random) -> None:
        """Read the collection again and again until cancelled."""
        while True:
            try:
                page = await self._client.list(self.collection, self._feed.key.select)
            except PacelineError as error:
                self._fail(error)
            else:
                self._replace(page)
            await asyncio.sleep(POLL_SECONDS * (1 + chance.fraction()) / 2)

    def _replace(self, page: Page) -> None:
        # These objects have neither a uid nor a resource version.
        items = {name_of(obj): obj for obj in page.items}
        for name, obj in items.items():
            self._feed.put({"metadata": {"uid": name, "resourceVersion": str(obj.get("timestamp"))}, "kept": obj})
        for obj in self._feed.journal.objects():
            if name_of(obj) not in items:
                self._feed.drop({"metadata": {"uid": name_of(obj)}})
        self.has_synced = True
        self._succeed("")
