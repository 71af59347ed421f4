"""Binds claims of the embedded cluster to a matching volume or a new folder, or reports why they are pending."""

import asyncio
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from paceline.apimachinery.builtin.storage_annotations import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    FOLDERS,
    PROTECTION,
    PROVISIONED_BY,
    PROVISIONERS,
    UID_LETTERS,
    VOLUME_PREFIX,
    VOLUME_PROTECTION,
    WAITING,
)
from paceline.apimachinery.meta import (
    Key,
    Object,
    annotations_of,
    is_deleting,
    key_of,
    name_of,
    namespace_of,
    owned_by,
    revision_of,
    uid_of,
)
from paceline.apimachinery.pods import claims_of, is_terminal
from paceline.client.event_recorder import Recorder
from paceline.client.informer import Informer, running
from paceline.client.interface import CLAIMS, STORAGE_CLASSES, VOLUMES, Change, Cluster
from paceline.client.workqueue import WorkQueue, run
from paceline.effects import Random
from paceline.errors import AlreadyExists, NotFound
from paceline.model import reasons
from paceline.plan.job.plan import EventDraft
from paceline.plan.volume_binding import ClaimPlan, Stock, decide_claim, decide_volume


def folder_of(claim: Object) -> str:
    """Return the folder of a claim: readable, and different from that of an older claim of the same name."""
    return f"{namespace_of(claim)}-{name_of(claim)}-{uid_of(claim)[:UID_LETTERS]}"


def reference_to(claim: Object) -> Object:
    """Return the claimRef of a volume."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace_of(claim),
        "name": name_of(claim),
        "uid": uid_of(claim),
        "resourceVersion": str(claim["metadata"].get("resourceVersion") or ""),
    }


def volume_for(claim: Object, chosen: Object, root: PurePosixPath) -> Object:
    """Return a new volume for a claim: a folder, with the reclaim policy of the storage class."""
    spec = claim["spec"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{VOLUME_PREFIX}{uid_of(claim)}", "annotations": {PROVISIONED_BY: FOLDERS}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec.get("accessModes") or ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": chosen.get("reclaimPolicy") or "Delete",
            "storageClassName": name_of(chosen),
            "volumeMode": spec.get("volumeMode") or "Filesystem",
            "hostPath": {"path": str(root / folder_of(claim)), "type": "DirectoryOrCreate"},
            "claimRef": reference_to(claim),
        },
    }


def ephemeral_claims(pod: Object) -> tuple[Object, ...]:
    """Return the claims of a pod's ephemeral volumes, which the pod owns."""
    return tuple(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                **{
                    part: dict(value)
                    for part, value in (volume["ephemeral"]["volumeClaimTemplate"].get("metadata") or {}).items()
                    if part in ("labels", "annotations") and value
                },
                "name": f"{name_of(pod)}-{volume['name']}",
                "namespace": namespace_of(pod),
                "ownerReferences": [owned_by({"apiVersion": "v1", "kind": "Pod", **pod})],
            },
            "spec": dict(volume["ephemeral"]["volumeClaimTemplate"]["spec"]),
        }
        for volume in pod["spec"].get("volumes") or ()
        if (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    )


def claims_used(pod: Object) -> tuple[str, ...]:
    """Return the claims of a pod that has not ended."""
    return () if is_terminal(pod) else tuple(claim.name for claim in claims_of(pod))


def is_used(claim: Object, pod: Object) -> bool:
    """Return whether a pod protects a claim from deletion: only with a node, because it is not started otherwise."""
    if namespace_of(pod) != namespace_of(claim) or not pod["spec"].get("nodeName"):
        return False
    return name_of(claim) in claims_used(pod)


CLASS = "paceline-folder"
CLAIM, VOLUME, POD = "claim", "volume", "pod"

# Kind, namespace and name of an object.
Work = tuple[str, str, str]


@dataclass(slots=True, kw_only=True)
class VolumeBinder:
    """Reconciles claims, volumes and the claims of pods, one object at a time."""

    cluster: Cluster
    chance: Random
    recorder: Recorder
    # Shared with other controllers, which run it.
    pods: Informer
    # The parent of the folders of claims.
    root: PurePosixPath
    queue: WorkQueue[Work] = field(init=False)
    _claims: Informer = field(init=False)
    _volumes: Informer = field(init=False)
    _classes: Informer = field(init=False)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance, name="persistent-volumes")
        self._claims = Informer(self.cluster, CLAIMS, chance=self.chance, on_change=self._claim_changed)
        self._volumes = Informer(self.cluster, VOLUMES, chance=self.chance, on_change=self._volume_changed)
        self._classes = Informer(self.cluster, STORAGE_CLASSES, chance=self.chance, on_change=self._class_changed)
        self.pods.cache.listen(self._pod_changed)

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        async with running(self._volumes, self._classes, self._claims, shared=(self.pods,), synced=synced):
            # One at a time: the next decision must see what the last one took.
            await run(self.queue, self.reconcile, workers=1)

    async def reconcile(self, work: Work) -> None:
        """Take one step; every step is safe to repeat, and one whose object went meanwhile is not needed."""
        sort, *name = work
        key = (name[0], name[1])
        try:
            if sort == CLAIM:
                await self._see_to_claim(self._claims.cache.get(key))
            elif sort == VOLUME:
                await self._see_to_volume(self._volumes.cache.get(key))
            else:
                await self._see_to_pod(self.pods.cache.get(key))
        except NotFound:
            return

    async def _see_to_claim(self, claim: Object | None) -> None:
        if claim is None:
            return
        if is_deleting(claim):
            await self._let_go(claim)
            return
        stock = Stock(volumes=self._volumes.cache, classes=self._classes.cache)
        plan = decide_claim(claim, stock, has_consumer=self._is_wanted(claim))
        if plan.provision is not None:
            await self._bind(claim, await self._provision(claim, plan.provision))
        elif plan.bind is not None:
            await self._bind(claim, plan.bind)
        elif plan.grow_to:
            await self._grow(claim, plan.grow_to)
        elif plan.is_lost:
            await self._lose(claim, plan)
        elif plan.waiting:
            await self._wait(claim, plan)

    async def _provision(self, claim: Object, chosen: Object) -> Object:
        manifest = volume_for(claim, chosen, self.root)
        try:
            volume = await self.cluster.create(VOLUMES, manifest)
        except AlreadyExists:
            # Made by an earlier pass that was not heard of again.
            volume = await self.cluster.get(VOLUMES, "", name_of(manifest))
        self._volumes.observe(volume)
        message = f"Successfully provisioned volume {name_of(volume)}"
        await self.recorder.record(claim, reasons.PROVISIONING_SUCCEEDED, message=message)
        return volume

    async def _bind(self, claim: Object, volume: Object) -> None:
        """Write both halves of a binding, the volume's first: whoever has the volume's has the volume."""
        volume = await self._keep_for(volume, claim)
        volume = await self._say_phase(volume, {"phase": "Bound"})
        marks: dict[str, Any] = {BIND_COMPLETED: "yes", WAITING: None}
        if not claim["spec"].get("volumeName"):
            marks[BOUND_BY_CONTROLLER] = "yes"
        if annotations_of(volume).get(PROVISIONED_BY) == FOLDERS:
            marks |= dict.fromkeys(PROVISIONERS, FOLDERS)
        guarded = {"metadata": {"resourceVersion": revision_of(claim), "annotations": marks}}
        claim = await self.cluster.patch(CLAIMS, key_of(claim), {**guarded, "spec": {"volumeName": name_of(volume)}})
        # Last, because whoever waits for a claim to be bound may use it then.
        bound = {"phase": "Bound", "accessModes": volume["spec"]["accessModes"], "capacity": volume["spec"]["capacity"]}
        await self._say_status(claim, bound)

    async def _keep_for(self, volume: Object, claim: Object) -> Object:
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("uid") == uid_of(claim):
            return volume
        marks = {} if reference else {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
        patch = {
            "metadata": {"resourceVersion": revision_of(volume), **marks},
            "spec": {"claimRef": reference_to(claim)},
        }
        reserved = await self.cluster.patch(VOLUMES, key_of(volume), patch)
        self._volumes.observe(reserved)
        return reserved

    async def _say_phase(self, volume: Object, status: Object) -> Object:
        current = volume.get("status") or {}
        if all(current.get(name) == value for name, value in status.items()):
            return volume
        patch = {"metadata": {"resourceVersion": revision_of(volume)}, "status": status}
        written = await self.cluster.patch(VOLUMES, key_of(volume), patch, subresource="status")
        self._volumes.observe(written)
        return written

    async def _say_status(self, claim: Object, status: Object) -> None:
        patch = {"metadata": {"resourceVersion": revision_of(claim)}, "status": status}
        self._claims.observe(await self.cluster.patch(CLAIMS, key_of(claim), patch, subresource="status"))

    async def _grow(self, claim: Object, size: str) -> None:
        """Let a folder be called larger: nothing but its name has a size."""
        key = ("", str(claim["spec"]["volumeName"]))
        volume = self._volumes.cache[key]
        capacity = {"storage": size}
        patch = {"metadata": {"resourceVersion": revision_of(volume)}, "spec": {"capacity": capacity}}
        self._volumes.observe(await self.cluster.patch(VOLUMES, key, patch))
        await self._say_status(claim, {"capacity": capacity})
        message = f"ExpandVolume succeeded for volume {namespace_of(claim)}/{name_of(claim)}"
        await self.recorder.record(claim, reasons.VOLUME_RESIZE_SUCCESSFUL, message=message)

    async def _lose(self, claim: Object, plan: ClaimPlan) -> None:
        if (claim.get("status") or {}).get("phase") != "Lost":
            await self._say_status(claim, {"phase": "Lost", "accessModes": None, "capacity": None})
            await self._tell(claim, plan.event)

    async def _wait(self, claim: Object, plan: ClaimPlan) -> None:
        """Annotate a claim with why it waits; once, until the reason changes."""
        if annotations_of(claim).get(WAITING) == plan.waiting:
            return
        patch = {"metadata": {"resourceVersion": revision_of(claim), "annotations": {WAITING: plan.waiting}}}
        self._claims.observe(await self.cluster.patch(CLAIMS, key_of(claim), patch))
        await self._tell(claim, plan.event)

    async def _tell(self, about: Object, event: EventDraft | None) -> None:
        if event is not None:
            await self.recorder.record(about, event.reason, message=event.message, is_warning=event.is_warning)

    async def _let_go(self, claim: Object) -> None:
        """Let a claim go that no pod on a node uses; the end of the last of them brings it back here."""
        if not any(is_used(claim, pod) for pod in self.pods.cache.values()):
            await self._unprotect(CLAIMS, claim, PROTECTION)

    async def _unprotect(self, where: Any, obj: Object, finalizer: str) -> None:
        finalizers = obj["metadata"].get("finalizers") or []
        if finalizer in finalizers:
            others = [other for other in finalizers if other != finalizer]
            guarded = {"metadata": {"resourceVersion": revision_of(obj), "finalizers": others}}
            await self.cluster.patch(where, key_of(obj), guarded)

    async def _see_to_volume(self, volume: Object | None) -> None:
        if volume is None:
            return
        plan = decide_volume(volume, await self._claim_of(volume), self.root)
        if plan.unbind:
            marks = {"annotations": {BOUND_BY_CONTROLLER: None}}
            patch = {"metadata": {"resourceVersion": revision_of(volume), **marks}, "spec": {"claimRef": None}}
            volume = await self.cluster.patch(VOLUMES, key_of(volume), patch)
        details = {"reason": plan.reason or None, "message": plan.message or None}
        written = await self._say_phase(volume, {"phase": plan.phase, **details})
        if plan.reason and written is not volume:
            await self.recorder.record(written, plan.reason, message=plan.message, is_warning=True)
        if is_deleting(written) and plan.phase != "Bound":
            await self._unprotect(VOLUMES, written, VOLUME_PROTECTION)

    async def _claim_of(self, volume: Object) -> Object | None:
        """Find the very claim that a volume names; one that is not known yet is asked for before it is called gone."""
        reference = volume["spec"].get("claimRef") or {}
        if not reference.get("uid"):
            return None
        key = (str(reference.get("namespace")), str(reference.get("name")))
        claim = self._claims.cache.get(key)
        try:
            claim = claim or await self.cluster.get(CLAIMS, *key)
        except NotFound:
            return None
        return claim if uid_of(claim) == reference["uid"] else None

    async def _see_to_pod(self, pod: Object | None) -> None:
        """Make the claims that are to live and die with a pod."""
        for claim in ephemeral_claims(pod) if pod is not None and not is_deleting(pod) else ():
            if self._claims.cache.get(key_of(claim)) is None:
                try:
                    self._claims.observe(await self.cluster.create(CLAIMS, claim))
                except AlreadyExists:
                    continue

    def _is_wanted(self, claim: Object) -> bool:
        pods = (pod for pod in self.pods.cache.values() if namespace_of(pod) == namespace_of(claim))
        return any(name_of(claim) in claims_used(pod) for pod in pods)

    def _claim_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        claim = new or old or {}
        if new is not None:
            self.queue.add((CLAIM, *key_of(new)))
        if new is None or is_deleting(new):
            # What it leaves: its volume, and others' wish for that.
            self.queue.add((VOLUME, "", str(claim["spec"].get("volumeName") or "")))

    def _volume_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        volume = new or old or {}
        self.queue.add((VOLUME, *key_of(volume)))
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("uid"):
            self.queue.add((CLAIM, str(reference.get("namespace")), str(reference.get("name"))))
        else:
            self._look_at_waiting()

    def _class_changed(self, _change: Change, _old: Object | None, _new: Object | None) -> None:
        self._look_at_waiting()

    def _look_at_waiting(self) -> None:
        for key, claim in self._claims.cache.items():
            if (claim.get("status") or {}).get("phase") != "Bound":
                self.queue.add((CLAIM, *key))

    def _pod_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        pod: Object = new or old or {}
        if any("ephemeral" in volume for volume in pod["spec"].get("volumes") or ()):
            self.queue.add((POD, *key_of(pod)))
        for name in {*claims_used(pod), *claims_used(old or {})}:
            key: Key = (namespace_of(pod), name)
            claim = self._claims.cache.get(key)
            if claim is not None and (is_deleting(claim) or (claim.get("status") or {}).get("phase") != "Bound"):
                self.queue.add((CLAIM, *key))
