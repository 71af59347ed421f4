"""Owner cleanup: what a gone object owned goes too. A real cluster has its own; the embedded one has this."""

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

from paceline.apimachinery.meta import Object, is_deleting, key_of, revision_of, uid_of
from paceline.client.event_recorder import Recorder
from paceline.client.interface import Cluster, Collection
from paceline.client.workqueue import WorkQueue, run
from paceline.controllers.gc.metadata_informers import MetadataInformers
from paceline.effects import Random
from paceline.errors import NotFound, ServiceUnavailable
from paceline.model import reasons
from paceline.plan import garbage_collection
from paceline.plan.garbage_collection import Standing, owners_of

# So many ends are remembered; who owned what longer ago is asked of the cluster.
MAX_GONE = 1000


class ObjectRef(NamedTuple):
    """One object of any kind."""

    where: Collection
    namespace: str
    name: str

    @property
    def key(self) -> tuple[str, str]:
        """Return what tells it apart from others of its kind."""
        return self.namespace, self.name

    def may_own(self, other: "ObjectRef") -> bool:
        """Return whether it is where an owner may be: beside what it owns, or in no namespace."""
        return self.namespace in {"", other.namespace}


class OwnerGraph:
    """An index of all objects that are followed. What it does not know may still be there."""

    def __init__(self) -> None:
        self._items: dict[str, ObjectRef] = {}
        # Dicts, because their order is certain.
        self._owned: dict[str, dict[ObjectRef, None]] = {}
        self._gone: dict[str, None] = {}

    def note(self, item: ObjectRef, old: Object | None, new: Object | None) -> None:
        """Take in that an object has changed, come or gone out of sight."""
        for owner in owners_of(old):
            self._untie(str(owner.get("uid")), item)
        for owner in owners_of(new):
            self._owned.setdefault(str(owner.get("uid")), {})[item] = None
        if new is not None:
            self._items[uid_of(new)] = item
        elif old is not None:
            self._items.pop(uid_of(old), None)

    def end(self, uid: str) -> None:
        """Remember that an object has gone for good."""
        self._gone[uid] = None
        if len(self._gone) > MAX_GONE:
            del self._gone[next(iter(self._gone))]

    def has_ended(self, uid: str) -> bool:
        """Return whether an object is known to have gone for good."""
        return uid in self._gone

    def find(self, uid: str) -> ObjectRef | None:
        """Return the object that has this uid, if it has been seen."""
        return self._items.get(uid)

    def owned(self, uid: str) -> tuple[ObjectRef, ...]:
        """Return the objects that name this uid as an owner."""
        return tuple(self._owned.get(uid, ()))

    def _untie(self, uid: str, item: ObjectRef) -> None:
        mates = self._owned.get(uid)
        if mates is not None:
            mates.pop(item, None)
            if not mates:
                del self._owned[uid]


WORKERS = 4


@dataclass(slots=True, kw_only=True)
class GarbageCollector:
    """Deletes what is owned only by objects that are gone; tells them apart by uid, never by name."""

    cluster: Cluster
    chance: Random
    recorder: Recorder
    queue: WorkQueue[ObjectRef] = field(init=False)
    following: MetadataInformers = field(init=False)
    _ties: OwnerGraph = field(default_factory=OwnerGraph)
    # What names an owner of a kind that nobody serves; a definition may come.
    _unclear: dict[ObjectRef, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance, name="garbage-collector")
        self.following = MetadataInformers(
            cluster=self.cluster,
            chance=self.chance,
            on_change=self._changed,
            on_lost=self._lost,
            on_kinds=self._look_again,
        )

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every kind has been read."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.following.run(synced))
            await synced.wait()
            await run(self.queue, self.reconcile, workers=WORKERS)

    async def reconcile(self, item: ObjectRef) -> None:
        """Delete one object if every owner it names is gone; if it waits for what it owns, see to that."""
        obj = self.following.get(item.where, item.key)
        if obj is None:
            return
        if garbage_collection.is_orphaning(obj):
            await self._set_free(item, obj)
        elif garbage_collection.is_draining(obj):
            await self._drain(item, obj)
        elif owners_of(obj) and not is_deleting(obj):
            await self._judge(item, obj)

    async def _judge(self, item: ObjectRef, obj: Object) -> None:
        """Do to an owned object what follows from how its owners stand."""
        standings = [await self._standing(item, owner) for owner in owners_of(obj)]
        if Standing.UNKNOWN in standings:
            self._unclear[item] = None
        dependents = [
            dependent for reference in self._dependents(item, obj) if (dependent := self._get(reference)) is not None
        ]
        step = garbage_collection.decide(
            obj,
            standings,
            has_dependents=bool(dependents),
            is_in_circle=any(garbage_collection.is_draining(dependent) for dependent in dependents),
        )
        await self._tell_astray(item, obj)
        if step.owners is not None:
            obj = await self._patch(item, obj, ownerReferences=step.owners) or obj
        if step.policy:
            await self._delete(item, obj, step.policy)

    async def _standing(self, item: ObjectRef, owner: Object) -> Standing:
        """Return the state of an owner; an unknown one is read from the API, since it may be new."""
        uid, where = str(owner.get("uid")), self._where(owner)
        if where is None:
            return Standing.GONE if self._ties.has_ended(uid) else Standing.UNKNOWN
        if where.namespaced and not item.namespace:
            # What is in no namespace cannot say where its owner is.
            return Standing.UNKNOWN
        if self._ties.has_ended(uid):
            return Standing.GONE
        reference = ObjectRef(where, item.namespace if where.namespaced else "", str(owner.get("name")))
        indexed = self._ties.find(uid)
        owner_object = self._get(indexed) if indexed is not None and _is_same(indexed, reference) else None
        if owner_object is None:
            try:
                owner_object = await self.cluster.get(where, *reference.key)
            except NotFound:
                return Standing.GONE
        return garbage_collection.standing_of(owner_object) if uid_of(owner_object) == uid else Standing.GONE

    async def _tell_astray(self, item: ObjectRef, obj: Object) -> None:
        """Warn of owners that are in another namespace, where they own nothing."""
        for owner in owners_of(obj):
            indexed, where = self._ties.find(str(owner.get("uid"))), self._where(owner)
            is_lost = where is not None and where.namespaced and not item.namespace
            if is_lost or (indexed is not None and not indexed.may_own(item)):
                owner_text = f"[{owner.get('apiVersion')}/{owner.get('kind')}, namespace: {item.namespace}"
                owner_text = f"{owner_text}, name: {owner.get('name')}, uid: {owner.get('uid')}]"
                message = f'ownerRef {owner_text} does not exist in namespace "{item.namespace}"'
                about = {**obj, **self._head(item.where)}
                await self.recorder.record(about, reasons.OWNER_REF_INVALID_NAMESPACE, message=message, is_warning=True)

    async def _drain(self, item: ObjectRef, owner: Object) -> None:
        """Have what an object owns go before it does."""
        is_blocked = False
        for dependent in self._dependents(item, owner):
            owned = self._get(dependent)
            if owned is not None:
                is_blocked |= garbage_collection.blocks(owned, owner)
                if not is_deleting(owned):
                    self.queue.add(dependent)
        # The last of them to go brings the owner back here.
        if not is_blocked:
            await self._patch(item, owner, finalizers=garbage_collection.let_go(owner))

    async def _set_free(self, item: ObjectRef, owner: Object) -> None:
        """Take an object that goes out of the owners of all it owns, then let it go."""
        if not self.following.has_seen_all:
            raise ServiceUnavailable(f"what {item.name!r} owns is not all known yet")
        for dependent in self._dependents(item, owner):
            owned = self._get(dependent)
            if owned is not None:
                await self._patch(dependent, owned, ownerReferences=garbage_collection.freed(owned, owner))
        await self._patch(item, owner, finalizers=garbage_collection.let_go(owner))

    async def _patch(self, item: ObjectRef, obj: Object, **metadata: object) -> Object | None:
        """Change metadata if the object is still as it was seen; None when it has gone."""
        guarded = {"metadata": {"resourceVersion": revision_of(obj), "uid": uid_of(obj), **metadata}}
        try:
            return await self.cluster.patch(item.where, item.key, guarded)
        except NotFound:
            return None

    async def _delete(self, item: ObjectRef, obj: Object, policy: str) -> None:
        # Also of that revision: somebody may have given it another owner meanwhile.
        preconditions = {"uid": uid_of(obj), "resourceVersion": revision_of(obj)}
        try:
            await self.cluster.delete(
                item.where, item.key, {"preconditions": preconditions, "propagationPolicy": policy}
            )
        except NotFound:
            return

    def _get(self, item: ObjectRef) -> Object | None:
        return self.following.get(item.where, item.key)

    def _where(self, owner: Object) -> Collection | None:
        return self.following.served.by_kind.get((str(owner.get("apiVersion")), str(owner.get("kind"))))

    def _head(self, where: Collection) -> Object:
        kind = self.following.served.names.get(where, "")
        return {"apiVersion": f"{where.group}/{where.version}".lstrip("/"), "kind": kind}

    def _dependents(self, item: ObjectRef, owner: Object) -> tuple[ObjectRef, ...]:
        return tuple(
            dependent for dependent in self._ties.owned(uid_of(owner)) if dependent != item and item.may_own(dependent)
        )

    def _changed(self, where: Collection, old: Object | None, new: Object | None) -> None:
        item = ObjectRef(where, *key_of(new or old or {}))
        self._ties.note(item, old, new)
        if new is None:
            self._ended(uid_of(old or {}))
        if owners_of(old) != owners_of(new):
            # An owner may have waited for this.
            self._look_at_owners(old)
            self.queue.add(item)
        elif new is not None and is_deleting(new):
            self.queue.add(item)

    def _lost(self, where: Collection, old: Object | None, new: Object | None) -> None:
        """Forget an object that is out of sight; it may still be there."""
        self._ties.note(ObjectRef(where, *key_of(old or {})), old, new)

    def _ended(self, uid: str) -> None:
        self._ties.end(uid)
        for dependent in self._ties.owned(uid):
            self.queue.add(dependent)

    def _look_at_owners(self, obj: Object | None) -> None:
        for owner in owners_of(obj):
            reference = self._ties.find(str(owner.get("uid")))
            if reference is not None:
                self.queue.add(reference)

    def _look_again(self) -> None:
        unclear, self._unclear = self._unclear, {}
        for item in unclear:
            self.queue.add(item)


def _is_same(known_reference: ObjectRef, reference: ObjectRef) -> bool:
    """Return whether two are one object; its kind may be read in another version."""
    group = (reference.where.group, reference.where.plural)
    return known_reference.key == reference.key and (known_reference.where.group, known_reference.where.plural) == group
