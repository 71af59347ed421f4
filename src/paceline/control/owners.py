"""Owner cleanup: what a gone object owned goes too. A real cluster has its own; the embedded one has this."""

import asyncio
from dataclasses import dataclass, field

from paceline.client.cache import Handler
from paceline.client.cluster import CLAIMS, CONFIG_MAPS, PODS, SECRETS, SERVICES, Change, Cluster, Collection
from paceline.client.informer import Informer
from paceline.client.queue import WorkQueue, run
from paceline.errors import Conflict, Missing
from paceline.objects.meta import Object, is_deleting, key_of, namespace_of, revision_of, uid_of
from paceline.world import Chance

# What may be owned.
DEPENDENTS = (PODS, SERVICES, CLAIMS, CONFIG_MAPS, SECRETS)
# An object deleted with `--cascade=foreground` or `--cascade=orphan` waits with one of these.
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"

# (plural, namespace, name) of any object that is followed here.
OwnedKey = tuple[str, str, str]


@dataclass(slots=True, kw_only=True)
class Owners:
    """Deletes what is owned only by objects that are gone; tells them apart by uid, never by name."""

    cluster: Cluster
    chance: Chance
    # (apiVersion, kind) → where such owners lie.
    kinds: dict[tuple[str, str], Collection]
    queue: WorkQueue[OwnedKey] = field(init=False)
    _where: dict[str, Collection] = field(init=False)
    _informers: dict[str, Informer] = field(init=False)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance)
        self._where = {where.plural: where for where in (*DEPENDENTS, *self.kinds.values())}
        self._informers = {
            plural: Informer(self.cluster, where, chance=self.chance, on_change=self._changed(plural))
            for plural, where in self._where.items()
        }

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers.values():
                group.create_task(informer.run())
            for informer in self._informers.values():
                await informer.has_synced.wait()
            synced.set()
            await run(self.queue, self.reconcile, workers=2)

    async def reconcile(self, key: OwnedKey) -> None:
        """Delete one object if every owner it names is gone; if it waits for what it owns, see to that."""
        plural, namespace, name = key
        found = self._informers[plural].cache.get((namespace, name))
        if found is None:
            return
        if is_deleting(found) and _waits_with(found, FOREGROUND, ORPHAN):
            await self._drain(plural, found)
        owners = found["metadata"].get("ownerReferences") or ()
        if not owners:
            return
        for owner in owners:
            if await self._is_there(owner, namespace):
                return
        await self._delete(plural, found)

    async def _drain(self, plural: str, owner: Object) -> None:
        """Delete what a foreground-deleted object owns, or set it free; then let the object go."""
        owned = [(where.plural, each) for where in DEPENDENTS for each in self._owned(where, owner)]
        if _waits_with(owner, ORPHAN):
            for its_plural, each in owned:
                await self._set_free(its_plural, each, uid_of(owner))
        elif owned:
            for its_plural, each in owned:
                if not is_deleting(each):
                    await self._delete(its_plural, each)
            # The last of them to go brings the owner back here.
            return
        kept = [name for name in owner["metadata"]["finalizers"] if name not in (FOREGROUND, ORPHAN)]
        await self._patch(plural, owner, {"finalizers": kept})

    def _owned(self, where: Collection, owner: Object) -> tuple[Object, ...]:
        return self._informers[where.plural].owned(uid_of(owner))

    async def _set_free(self, plural: str, owned: Object, uid: str) -> None:
        others = [each for each in owned["metadata"]["ownerReferences"] if each.get("uid") != uid]
        await self._patch(plural, owned, {"ownerReferences": others})

    async def _patch(self, plural: str, obj: Object, metadata: dict[str, object]) -> None:
        guarded = {"metadata": {"resourceVersion": revision_of(obj), **metadata}}
        try:
            await self.cluster.patch(self._where[plural], key_of(obj), guarded)
        except Missing:
            return

    async def _delete(self, plural: str, obj: Object) -> None:
        options = {"preconditions": {"uid": uid_of(obj)}, "propagationPolicy": "Background"}
        try:
            await self.cluster.delete(self._where[plural], key_of(obj), options)
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

    def _changed(self, plural: str) -> Handler:
        def changed(_change: Change, old: Object | None, new: Object | None) -> None:
            if new is None:
                self._gone(old or {})
            elif is_deleting(new) or _owners_of(new) != _owners_of(old):
                self.queue.add((plural, *key_of(new)))

        return changed

    def _gone(self, old: Object) -> None:
        """Look at what a gone object owned, and at owners that may have waited for it to go."""
        for where in DEPENDENTS:
            for dependent in self._owned(where, old):
                self.queue.add((where.plural, *key_of(dependent)))
        for owner in _owners_of(old):
            its = self.kinds.get((str(owner.get("apiVersion")), str(owner.get("kind"))))
            if its is not None:
                self.queue.add((its.plural, namespace_of(old), str(owner["name"])))


def _owners_of(obj: Object | None) -> list[Object]:
    return list(((obj or {}).get("metadata") or {}).get("ownerReferences") or ())


def _waits_with(obj: Object, *finalizers: str) -> bool:
    return any(name in finalizers for name in obj["metadata"].get("finalizers") or ())
