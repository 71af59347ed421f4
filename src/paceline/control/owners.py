"""Owner cleanup: what a gone object owned goes too. A real cluster has its own; the embedded one has this."""

import asyncio
import logging
from dataclasses import dataclass, field

from paceline.client.cache import Handler
from paceline.client.cluster import CLAIMS, CONFIG_MAPS, PODS, SERVICES, Change, Cluster, Collection
from paceline.client.informer import Informer
from paceline.client.queue import WorkQueue, run
from paceline.errors import Conflict, Missing
from paceline.objects.meta import Object, key_of, namespace_of, uid_of
from paceline.world import Chance

log = logging.getLogger(__name__)

# What may be owned.
DEPENDENTS = (PODS, SERVICES, CLAIMS, CONFIG_MAPS)

# (plural, namespace, name) of a dependent.
DependentKey = tuple[str, str, str]


@dataclass(slots=True, kw_only=True)
class Owners:
    """Deletes what is owned only by objects that are gone; tells them apart by uid, never by name."""

    cluster: Cluster
    chance: Chance
    # (apiVersion, kind) → where such owners lie.
    kinds: dict[tuple[str, str], Collection]
    queue: WorkQueue[DependentKey] = field(init=False)
    _dependents: dict[str, Informer] = field(init=False)
    _owners: dict[str, Informer] = field(init=False)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance)
        self._dependents = {
            where.plural: self._informer(where, self._dependent_changed(where.plural)) for where in DEPENDENTS
        }
        self._owners = {
            where.plural: self._informer(where, self._owner_changed)
            for where in self.kinds.values()
            if where.plural not in self._dependents
        }

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        informers = (*self._dependents.values(), *self._owners.values())
        async with asyncio.TaskGroup() as group:
            for informer in informers:
                group.create_task(informer.run())
            for informer in informers:
                await informer.has_synced.wait()
            synced.set()
            await run(self.queue, self.reconcile, workers=2)

    async def reconcile(self, key: DependentKey) -> None:
        """Delete one dependent if every owner it names is gone."""
        plural, namespace, name = key
        found = self._dependents[plural].cache.get((namespace, name))
        if found is None:
            return
        for owner in found["metadata"].get("ownerReferences") or ():
            if await self._is_there(owner, namespace):
                return
        where = next(each for each in DEPENDENTS if each.plural == plural)
        options = {"preconditions": {"uid": uid_of(found)}, "propagationPolicy": "Background"}
        try:
            await self.cluster.delete(where, (namespace, name), options)
        except (Missing, Conflict):
            # Gone already, or another object has the name by now: both are what was wanted.
            return

    async def _is_there(self, owner: Object, namespace: str) -> bool:
        """Ask the cluster itself, not a cache: a cache may not have heard of a new owner yet."""
        where = self.kinds.get((str(owner.get("apiVersion")), str(owner.get("kind"))))
        if where is None:
            # A kind nobody told us of: leave its dependents alone.
            return True
        try:
            found = await self.cluster.get(where, namespace if where.namespaced else "", str(owner["name"]))
        except Missing:
            return False
        return uid_of(found) == owner.get("uid")

    def _informer(self, where: Collection, changed: Handler) -> Informer:
        return Informer(self.cluster, where, chance=self.chance, on_change=changed)

    def _dependent_changed(self, plural: str) -> Handler:
        def changed(change: Change, old: Object | None, new: Object | None) -> None:
            if new is None:
                self._owner_changed(change, old, new)
            elif new["metadata"].get("ownerReferences"):
                known = old is not None and old["metadata"].get("ownerReferences") == new["metadata"]["ownerReferences"]
                if not known:
                    self.queue.add((plural, *key_of(new)))

        return changed

    def _owner_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        if new is not None or old is None:
            return
        for plural, informer in self._dependents.items():
            for dependent in informer.owned(uid_of(old)):
                self.queue.add((plural, namespace_of(dependent), key_of(dependent)[1]))
