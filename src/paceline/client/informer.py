"""Follow a collection: list it, watch it, list it again when history is gone, and keep what was seen."""

import asyncio
import logging
from contextlib import aclosing

from paceline.apimachinery.meta import Key, Object, key_of, labels_of, namespace_of, revision_of, uid_of
from paceline.apimachinery.selector import matches, parse_fields, parse_labels
from paceline.client.backoff import Backoff
from paceline.client.cache import Cache, Handler, is_later
from paceline.client.interface import Change, Cluster, Collection, Select, WatchEvent
from paceline.effects import Random
from paceline.errors import Expired, PacelineError

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
