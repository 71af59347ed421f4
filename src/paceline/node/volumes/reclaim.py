"""Folders of claims that went are removed with their volumes, where the volume's policy says so."""

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
class Reclaim:
    """The hands of our storage class on this machine."""

    cluster: Cluster
    files: Files
    blocking: Executor
    chance: Random
    volumes: Mapping[Key, Object]
    recorder: Recorder
    # Where the folders of claims lie; nothing outside of it is ever removed.
    root: Path
    queue: WorkQueue[Key] = field(init=False)

    def __post_init__(self) -> None:
        """Set up the queue; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance)

    async def run(self) -> None:
        """Work until cancelled."""
        await run(self.queue, self.reconcile, workers=1)

    def look(self, volume: Object) -> None:
        """See to a volume, if there is something to do."""
        if is_to_go(volume, self.root):
            self.queue.add(key_of(volume))

    async def reconcile(self, key: Key) -> None:
        """Remove a folder, then the volume that leads to it: a crash in between removes nothing twice."""
        volume = self.volumes.get(key)
        if volume is None or not is_to_go(volume, self.root):
            return
        # From our own root and by its name in that: whatever else the path says is not looked up.
        folder = self.root / Path(volume["spec"]["hostPath"]["path"]).name
        try:
            await self.blocking.run(functools.partial(self.files.remove, folder))
        except OSError as error:
            said = f"{folder} cannot be removed: {error.strerror or error}"
            await self.recorder.record(volume, "VolumeFailedDelete", message=said, is_warning=True)
            raise ServiceUnavailable(said) from error
        only_this = {"uid": uid_of(volume), "resourceVersion": revision_of(volume)}
        try:
            await self.cluster.delete(VOLUMES, key, {"preconditions": only_this})
        except (NotFound, Conflict):
            return  # Gone, or changed by somebody: the watch tells.


def is_to_go(volume: Object, root: Path) -> bool:
    """Tell whether a volume is a folder that our class made for it, is nobody's any more, and is not to be kept.

    One that carries our mark and is none of ours is told of by the controller, which calls it Failed.
    """
    spec, status = volume["spec"], volume.get("status") or {}
    is_ours = not removal_fault(volume, PurePosixPath(root))
    return is_ours and spec.get("persistentVolumeReclaimPolicy") == "Delete" and status.get("phase") == "Released"
