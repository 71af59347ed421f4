"""Remove the folders of released PersistentVolumes whose reclaim policy is Delete."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from paceline.apimachinery.builtin.storage_annotations import removal_fault
from paceline.apimachinery.meta import Key, Object, key_of, revision_of, uid_of
from paceline.client.event_recorder import Recorder
from paceline.client.interface import VOLUMES, Cluster
from paceline.client.workqueue import WorkQueue, run
from paceline.effects import Executor, Files, Random
from paceline.errors import Conflict, NotFound, ServiceUnavailable


@dataclass(slots=True, kw_only=True)
class VolumeReclaimer:
    """Reclaims the volumes that our storage class provisioned on this machine."""

    cluster: Cluster
    files: Files
    blocking: Executor
    chance: Random
    volumes: Mapping[Key, Object]
    recorder: Recorder
    # The folder of all claims; nothing outside of it is ever removed.
    root: Path
    queue: WorkQueue[Key] = field(init=False)

    def __post_init__(self) -> None:
        self.queue = WorkQueue(self.chance)

    async def run(self) -> None:
        await run(self.queue, self.reconcile, workers=1)

    def enqueue(self, volume: Object) -> None:
        if is_removable(volume, self.root):
            self.queue.add(key_of(volume))

    async def reconcile(self, key: Key) -> None:
        """Remove a folder, then its PersistentVolume: after a crash in between both steps are safe to repeat."""
        volume = self.volumes.get(key)
        if volume is None or not is_removable(volume, self.root):
            return
        # Only the last part of the path is used, below our own root: nothing else in it can be followed.
        folder = self.root / Path(volume["spec"]["hostPath"]["path"]).name
        try:
            await self.blocking.run(functools.partial(self.files.remove, folder))
        except OSError as error:
            message = f"{folder} cannot be removed: {error.strerror or error}"
            await self.recorder.record(volume, "VolumeFailedDelete", message=message, is_warning=True)
            raise ServiceUnavailable(message) from error
        preconditions = {"uid": uid_of(volume), "resourceVersion": revision_of(volume)}
        try:
            await self.cluster.delete(VOLUMES, key, {"preconditions": preconditions})
        except (NotFound, Conflict):
            return  # Deleted or changed meanwhile: the watch reports it.


def is_removable(volume: Object, root: Path) -> bool:
    """Return whether a volume is released, has the policy Delete, and is a folder that our storage class created.

    A volume that only claims to be ours is set to Failed by the controller.
    """
    spec, status = volume["spec"], volume.get("status") or {}
    is_ours = not removal_fault(volume, PurePosixPath(root))
    return is_ours and spec.get("persistentVolumeReclaimPolicy") == "Delete" and status.get("phase") == "Released"
