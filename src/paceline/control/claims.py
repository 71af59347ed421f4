"""Claims of the embedded cluster: every claim gets a volume, and a volume is a folder."""

import asyncio
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from paceline.client.cluster import CLAIMS, PODS, VOLUMES, Change, Cluster, Select
from paceline.client.informer import Informer
from paceline.client.queue import WorkQueue, run
from paceline.errors import Exists, Missing
from paceline.objects.builtin.storage import PROTECTION
from paceline.objects.meta import Key, Object, is_deleting, key_of, name_of, namespace_of, revision_of, uid_of
from paceline.world import Chance

CLASS = "paceline-folder"
# A claim that pods still use is looked at again and again: rarer than following all pods for it.
AGAIN_SECONDS = 1.0


def folder_of(claim: Object) -> str:
    """Name the folder of a claim: readable for people, and never that of an older claim of the same name."""
    return f"{namespace_of(claim)}-{name_of(claim)}-{uid_of(claim)[:8]}"


def volume_for(claim: Object, root: PurePosixPath) -> Object:
    """Spell the volume that a claim is given: a folder, kept when the claim goes."""
    spec = claim["spec"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pvc-{uid_of(claim)}"},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec.get("accessModes") or ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": spec.get("storageClassName") or CLASS,
            "hostPath": {"path": str(root / folder_of(claim)), "type": "DirectoryOrCreate"},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": namespace_of(claim),
                "name": name_of(claim),
                "uid": uid_of(claim),
            },
        },
    }


@dataclass(slots=True, kw_only=True)
class Claims:
    """Binds each claim to a volume of its own."""

    cluster: Cluster
    chance: Chance
    root: PurePosixPath
    queue: WorkQueue[Key] = field(init=False)
    _claims: Informer = field(init=False)

    def __post_init__(self) -> None:
        """Set up the cache; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance)
        self._claims = Informer(self.cluster, CLAIMS, chance=self.chance, on_change=self._changed)

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once the cache has been filled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claims.run())
            await self._claims.has_synced.wait()
            synced.set()
            await run(self.queue, self.reconcile, workers=1)

    async def reconcile(self, key: Key) -> None:
        """Give one claim its volume, or let it go; every step is safe to repeat."""
        claim = self._claims.cache.get(key)
        if claim is not None and is_deleting(claim):
            await self._let_go(claim)
            return
        if claim is None or (claim.get("status") or {}).get("phase") == "Bound":
            return
        try:
            volume = await self.cluster.create(VOLUMES, volume_for(claim, self.root))
        except Exists:
            volume = await self.cluster.get(VOLUMES, "", f"pvc-{uid_of(claim)}")
        try:
            await self._bind(claim, volume)
        except Missing:
            # The claim went meanwhile; its empty volume stays for whoever looks for it.
            return

    async def _let_go(self, claim: Object) -> None:
        """Let a claim go that no pod uses; look again while one does."""
        finalizers = claim["metadata"].get("finalizers") or []
        if PROTECTION not in finalizers:
            return
        pods = await self.cluster.list(PODS, Select(namespace=namespace_of(claim)))
        if any(_uses(pod, name_of(claim)) for pod in pods.items):
            self.queue.add_after(key_of(claim), AGAIN_SECONDS)
            return
        others = [each for each in finalizers if each != PROTECTION]
        guarded = {"metadata": {"resourceVersion": revision_of(claim), "finalizers": others}}
        try:
            await self.cluster.patch(CLAIMS, key_of(claim), guarded)
        except Missing:
            return

    async def _bind(self, claim: Object, volume: Object) -> None:
        name = name_of(volume)
        if not claim["spec"].get("volumeName"):
            guarded = {"metadata": {"resourceVersion": claim["metadata"]["resourceVersion"]}}
            claim = await self.cluster.patch(CLAIMS, key_of(claim), {**guarded, "spec": {"volumeName": name}})
        await self.cluster.patch(VOLUMES, ("", name), {"status": {"phase": "Bound"}}, subresource="status")
        # Last, because a claim that says so is not looked at again.
        bound = {"phase": "Bound", "accessModes": volume["spec"]["accessModes"], "capacity": volume["spec"]["capacity"]}
        await self.cluster.patch(CLAIMS, key_of(claim), {"status": bound}, subresource="status")

    def _changed(self, _change: Change, _old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.queue.add(key_of(new))


def _uses(pod: Object, claim: str) -> bool:
    """Tell whether a pod that has not ended mounts a claim."""
    if (pod.get("status") or {}).get("phase") in {"Failed", "Succeeded"}:
        return False
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return any((each.get("persistentVolumeClaim") or {}).get("claimName") == claim for each in volumes)
