"""Devices that one container has to itself: which there are, who holds which, and how a container is told.

Who holds what is on disk before the container starts, so that no agent after this one gives it to somebody else.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paceline.apimachinery.builtin.qos import is_extended
from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.pods import is_sidecar
from paceline.apimachinery.quantity import whole
from paceline.effects import Files
from paceline.node.host_info import CannotStart, Device, Folders, Supply

GPUS = "nvidia.com/gpu"
# Variables that programs for GPUs of one maker read; the first hides all others from CUDA, also when it is empty.
CUDA, CONTAINER_TOOLKIT = "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"
NO_DEVICE = "void"
HELD = "devices.json"
# The reason of a kubelet whose devices are not what the scheduler thought.
UNAVAILABLE = "UnexpectedAdmissionError"

# Container → resource → numbers of devices.
Holding = dict[str, dict[str, tuple[int, ...]]]


@dataclass(slots=True, kw_only=True)
class Devices:
    """Gives out the devices of this machine, each to one pod at a time."""

    files: Files
    folders: Folders
    supplies: tuple[Supply, ...]
    _held: dict[str, Holding] = field(init=False, default_factory=dict)

    def load(self) -> None:
        """Read who holds what; a record that cannot be read was never finished, so nothing was started on it."""
        for uid in self.files.names(self.folders.pods):
            found = _read(self.files, self._record(uid))
            if found:
                self._held[uid] = found

    def assign(self, pod: Object, container: Object) -> None:
        """Allocate and record the devices of a container; it keeps what it has. CannotStart when there are too few."""
        uid, name = uid_of(pod), str(container["name"])
        holding = self._held.get(uid, {})
        wanted = _asked(container)
        supplies = {supply.resource: supply for supply in self.supplies}
        for resource in wanted.keys() - supplies.keys():
            raise _short(resource, wanted[resource], 0)
        if name in holding or not wanted:
            return
        chosen = {
            resource: self._choose(pod, name, supply=supplies[resource], count=count)
            for resource, count in wanted.items()
        }
        self._held[uid] = {**holding, name: chosen}
        self.files.make_folder(self.folders.pod(uid))
        self.files.write(self._record(uid), json.dumps(self._held[uid]).encode())

    def of(self, pod: Object, container: Object) -> tuple[tuple[Supply, tuple[Device, ...]], ...]:
        """Give the devices that a container holds, of every sort there is; CannotStart when one of them has gone."""
        held = self._held.get(uid_of(pod), {}).get(str(container["name"]), {})
        return tuple((supply, _numbered(supply, held.get(supply.resource, ()))) for supply in self.supplies)

    def release(self, uid: str) -> None:
        """Take back what a pod held, now that nothing of it runs."""
        if uid in self._held:
            self.files.remove(self._record(uid))
            del self._held[uid]

    def _choose(self, pod: Object, name: str, *, supply: Supply, count: int) -> tuple[int, ...]:
        """Take first what the pod's own finished first steps had: it was counted for the pod only once."""
        resource = supply.resource
        own = self._held.get(uid_of(pod), {})
        done = {each for each in _first_steps(pod) if each != name}
        left = _numbers(own, resource, done) - _numbers(own, resource, own.keys() - done)
        taken = {number for each in self._held.values() for number in _numbers(each, resource, each)}
        known = [device.number for device in supply.devices]
        free = [*(each for each in known if each in left), *(each for each in known if each not in taken)]
        if len(free) < count:
            raise _short(resource, count, len(free))
        return tuple(sorted(free[:count]))

    def _record(self, uid: str) -> Path:
        return self.folders.pod(uid) / HELD


def variables(held: Iterable[tuple[Supply, tuple[Device, ...]]]) -> dict[str, str]:
    """Tell a container which devices are its own; of GPUs also that none are."""
    env: dict[str, str] = {}
    for supply, devices in held:
        names = ",".join(device.name or str(device.number) for device in devices)
        if devices:
            env[f"PACELINE_DEVICES_{_word(supply.resource)}"] = names
        if supply.resource == GPUS:
            env |= {CUDA: names, CONTAINER_TOOLKIT: names or NO_DEVICE}
    return env


def nodes(held: Iterable[tuple[Supply, tuple[Device, ...]]]) -> tuple[str, ...]:
    """Name the device nodes that a container sees: its own, and what all who have one of a sort share."""
    found = (path for supply, devices in held if devices for path in (*supply.nodes, *_nodes(devices)))
    return tuple(dict.fromkeys(found))


def _nodes(devices: Iterable[Device]) -> Iterator[str]:
    for device in devices:
        yield from device.nodes


def _word(resource: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", resource.upper())


def _asked(container: Object) -> dict[str, int]:
    """Read how many devices of which sort a container asks for."""
    limits = (container.get("resources") or {}).get("limits") or {}
    asked = {str(name): whole(amount) for name, amount in limits.items() if is_extended(name)}
    return {name: count for name, count in asked.items() if count}


def _short(resource: str, asked: int, free: int) -> CannotStart:
    said = f"Allocate failed due to requested number of devices unavailable for {resource}"
    return CannotStart(UNAVAILABLE, f"{said}. Requested: {asked}, Available: {free}")


def _first_steps(pod: Object) -> Iterator[str]:
    """Name the containers that end before the others start."""
    for container in pod["spec"].get("initContainers") or ():
        if not is_sidecar(container):
            yield str(container["name"])


def _numbers(holding: Mapping[str, Mapping[str, tuple[int, ...]]], resource: str, names: Iterable[str]) -> set[int]:
    return {number for name in names if name in holding for number in holding[name].get(resource, ())}


def _numbered(supply: Supply, numbers: tuple[int, ...]) -> tuple[Device, ...]:
    known = {device.number: device for device in supply.devices}
    if gone := [number for number in numbers if number not in known]:
        said = f"{supply.resource} {', '.join(map(str, gone))}, which this container holds, is no longer there"
        raise CannotStart(UNAVAILABLE, f"{said}; declare it again, or delete the pod")
    return tuple(known[number] for number in numbers)


def _read(files: Files, path: Path) -> Holding:
    try:
        found = json.loads(files.read(path))
    except (OSError, ValueError):
        return {}
    return {name: {each: tuple(numbers) for each, numbers in held.items()} for name, held in found.items()}
