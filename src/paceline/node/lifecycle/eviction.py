"""Evict pods whose files exceed their limits, with a kubelet's messages."""

import asyncio
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paceline.apimachinery.meta import Key, Object, uid_of
from paceline.apimachinery.pods import containers_of, is_terminal
from paceline.apimachinery.quantity import canonical, whole
from paceline.effects import Executor, Files
from paceline.node.host_info import Folders, Host
from paceline.node.volumes.volumes import has_started

# The period of a kubelet's eviction loop.
PERIOD_SECONDS = 10.0
# The grace period of the containers of an evicted pod.
GRACE_SECONDS = 1
RECORD = "evicted"
STORAGE = "ephemeral-storage"
KIBI = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLimit:
    """Folders that together may hold so many bytes, and the message of the eviction when they hold more."""

    folders: tuple[Path, ...]
    bytes: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evictions:
    """Measures the folders of running pods periodically."""

    files: Files
    folders: Folders
    host: Host
    blocking: Executor
    pods: Mapping[Key, Object]
    on_change: Callable[[str], None]
    # The messages by uid; only this class writes the records, so each is read once.
    _messages: dict[str, str] = field(default_factory=dict)

    def message(self, uid: str) -> str:
        """Return why a pod is evicted; empty when it is not."""
        if uid not in self._messages:
            try:
                self._messages[uid] = self.files.read(self.folders.pod(uid) / RECORD).decode()
            except FileNotFoundError:
                self._messages[uid] = ""
        return self._messages[uid]

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._messages.pop(uid, None)

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            for pod in tuple(self.pods.values()):
                is_here = pod["spec"].get("nodeName") == self.host.name
                if is_here and not is_terminal(pod) and has_started(pod):
                    await self._check(pod)

    async def _check(self, pod: Object) -> None:
        uid = uid_of(pod)
        if self.message(uid):
            return
        for limit in limits_of(pod, self.folders):
            sizes = [await self.blocking.run(functools.partial(self.files.used, folder)) for folder in limit.folders]
            if sum(sizes) > limit.bytes:
                # Recorded first, so that a restarted agent continues the eviction.
                self.files.write(self.folders.pod(uid) / RECORD, limit.message.encode())
                self._messages[uid] = limit.message
                self.on_change(uid)
                return


def without_grace(pod: Object) -> Object:
    """Return a pod with the grace period of an eviction."""
    seconds = pod["spec"].get("terminationGracePeriodSeconds")
    grace = GRACE_SECONDS if seconds is None else min(int(seconds), GRACE_SECONDS)
    return {**pod, "spec": {**pod["spec"], "terminationGracePeriodSeconds": grace}}


def limits_of(pod: Object, folders: Folders) -> Iterator[StorageLimit]:
    """Yield the storage limits of a pod: of single volumes, of single containers' logs, and of all together."""
    uid, scratch = uid_of(pod), []
    for index, volume in enumerate(pod["spec"].get("volumes") or ()):
        if (source := volume.get("emptyDir")) is None:
            continue
        is_memory = source.get("medium") == "Memory"
        folder = folders.memory(uid, index) if is_memory else folders.volume(uid, index)
        scratch += [] if is_memory else [folder]
        if limit := source.get("sizeLimit"):
            message = f'Usage of EmptyDir volume "{volume["name"]}" exceeds the limit "{canonical(limit)}". '
            yield StorageLimit(folders=(folder,), bytes=whole(limit), message=message)
    logs, limits = [], []
    for container in containers_of(pod):
        name = str(container["name"])
        logs.append(folders.container(uid, name))
        if limit := ((container.get("resources") or {}).get("limits") or {}).get(STORAGE):
            limits.append(whole(limit))
            message = f'Container {name} exceeded its local ephemeral storage limit "{canonical(limit)}". '
            yield StorageLimit(folders=(logs[-1],), bytes=limits[-1], message=message)
    if limits:
        total = sum(limits)
        text = canonical(f"{total // KIBI}Ki" if total % KIBI == 0 else total)
        message = f"Pod ephemeral local storage usage exceeds the total limit of containers {text}. "
        yield StorageLimit(folders=(*scratch, *logs), bytes=total, message=message)
