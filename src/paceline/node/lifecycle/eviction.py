"""Pods whose files outgrow what they were allowed are ended, in the words of a kubelet."""

import asyncio
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.apimachinery.meta import Key, Object, uid_of
from paceline.apimachinery.pods import containers_of, is_terminal
from paceline.apimachinery.quantity import canonical, whole
from paceline.effects import Executor, Files
from paceline.node.host_info import Folders, Host
from paceline.node.volumes.volumes import has_started

# As often a kubelet looks.
PERIOD_SECONDS = 10.0
# What such a pod's containers get once they are told to stop.
GRACE_SECONDS = 1
RECORD = "evicted"
STORAGE = "ephemeral-storage"
KIBI = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Folders that together may not grow beyond so many bytes, and what is said when they do."""

    folders: tuple[Path, ...]
    bytes: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evictions:
    """Looks at the folders of running pods again and again."""

    files: Files
    folders: Folders
    host: Host
    blocking: Executor
    pods: Mapping[Key, Object]
    on_change: Callable[[str], None]
    # What the folders say, as far as it has been read.
    _known: dict[str, str] = field(default_factory=dict)

    def why(self, uid: str) -> str:
        """Say why a pod has to go; nothing when it need not. Only this writes it, so it is read once."""
        if uid not in self._known:
            self._known[uid] = evicted(self.files, self.folders, uid)
        return self._known[uid]

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._known.pop(uid, None)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            for pod in tuple(self.pods.values()):
                if self._is_concerned(pod):
                    await self._look(pod)

    def _is_concerned(self, pod: Object) -> bool:
        is_mine = pod["spec"].get("nodeName") == self.host.name
        return is_mine and not is_terminal(pod) and has_started(pod)

    async def _look(self, pod: Object) -> None:
        uid = uid_of(pod)
        if self.why(uid):
            return
        for limit in limits_of(pod, self.folders):
            used = await self.blocking.run(functools.partial(self._used, limit.folders))
            if used > limit.bytes:
                # First on record: whichever agent looks next goes on with it.
                self.files.write(self.folders.pod(uid) / RECORD, limit.message.encode())
                self._known[uid] = limit.message
                self.on_change(uid)
                return

    def _used(self, folders: tuple[Path, ...]) -> int:
        return sum(self.files.used(each) for each in folders)


def evicted(files: Files, folders: Folders, uid: str) -> str:
    """Say why a pod has to go; nothing when it need not."""
    try:
        return files.read(folders.pod(uid) / RECORD).decode()
    except FileNotFoundError:
        return ""


def without_grace(pod: Object) -> Object:
    """Give a pod that is left no time, as it is to be ended."""
    own = pod["spec"].get("terminationGracePeriodSeconds")
    grace = GRACE_SECONDS if own is None else min(int(own), GRACE_SECONDS)
    return {**pod, "spec": {**pod["spec"], "terminationGracePeriodSeconds": grace}}


def limits_of(pod: Object, folders: Folders) -> Iterator[Limit]:
    """Give what a pod's files may not outgrow: single volumes, logs of single containers, all of it together."""
    uid, scratch = uid_of(pod), []
    for index, volume in enumerate(pod["spec"].get("volumes") or ()):
        if (wire := volume.get("emptyDir")) is None:
            continue
        is_memory = wire.get("medium") == "Memory"
        folder = folders.memory(uid, index) if is_memory else folders.volume(uid, index)
        scratch += [] if is_memory else [folder]
        if limit := wire.get("sizeLimit"):
            said = f'Usage of EmptyDir volume "{volume["name"]}" exceeds the limit "{canonical(limit)}". '
            yield Limit(folders=(folder,), bytes=whole(limit), message=said)
    logs, limits = [], []
    for container in containers_of(pod):
        name = str(container["name"])
        logs.append(folders.container(uid, name))
        if limit := _storage(container):
            limits.append(whole(limit))
            said = f'Container {name} exceeded its local ephemeral storage limit "{canonical(limit)}". '
            yield Limit(folders=(logs[-1],), bytes=limits[-1], message=said)
    if limits:
        total = _together(sum(limits))
        said = f"Pod ephemeral local storage usage exceeds the total limit of containers {total}. "
        yield Limit(folders=(*scratch, *logs), bytes=sum(limits), message=said)


def _together(number: int) -> str:
    return canonical(f"{number // KIBI}Ki" if number % KIBI == 0 else number)


def _storage(container: Mapping[str, Any]) -> Any:
    return ((container.get("resources") or {}).get("limits") or {}).get(STORAGE)
