"""Folders of claims that went are removed with their volumes, where the volume's policy says so."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paceline.client.cluster import VOLUMES, Cluster
from paceline.client.queue import WorkQueue, run
from paceline.errors import Conflict, Missing
from paceline.objects.builtin.storage import FOLDERS, PROVISIONED_BY
from paceline.objects.meta import Key, Object, annotations_of, key_of, revision_of, uid_of
from paceline.world import Blocking, Chance, Files


@dataclass(slots=True, kw_only=True)
class Reclaim:
    """The hands of our storage class on this machine."""

    cluster: Cluster
    files: Files
    blocking: Blocking
    chance: Chance
    volumes: Mapping[Key, Object]
    queue: WorkQueue[Key] = field(init=False)

    def __post_init__(self) -> None:
        """Set up the queue; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance)

    async def run(self) -> None:
        """Work until cancelled."""
        await run(self.queue, self.reconcile, workers=1)

    def look(self, volume: Object) -> None:
        """See to a volume, if there is something to do."""
        if is_to_go(volume):
            self.queue.add(key_of(volume))

    async def reconcile(self, key: Key) -> None:
        """Remove a folder, then the volume that leads to it: a crash in between removes nothing twice."""
        volume = self.volumes.get(key)
        if volume is None or not is_to_go(volume):
            return
        folder = Path(volume["spec"]["hostPath"]["path"])
        await self.blocking.run(functools.partial(self.files.remove, folder))
        only_this = {"uid": uid_of(volume), "resourceVersion": revision_of(volume)}
        try:
            await self.cluster.delete(VOLUMES, key, {"preconditions": only_this})
        except (Missing, Conflict):
            return  # Gone, or changed by somebody: the watch tells.


def is_to_go(volume: Object) -> bool:
    """Tell whether a volume is a folder that our class made, is nobody's any more, and is not to be kept."""
    spec, status = volume["spec"], volume.get("status") or {}
    is_ours = annotations_of(volume).get(PROVISIONED_BY) == FOLDERS and "hostPath" in spec
    return is_ours and spec.get("persistentVolumeReclaimPolicy") == "Delete" and status.get("phase") == "Released"
