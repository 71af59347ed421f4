"""Allocate devices, such as GPUs, to containers, and expose them as device nodes and variables.

An allocation is on disk before the container starts, so that a restarted agent does not allocate the device again.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from paceline.apimachinery.builtin.scheduling import is_extended
from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.pods import is_sidecar
from paceline.apimachinery.quantity import whole
from paceline.effects import Files
from paceline.node.host_info import CannotStart, Device, DevicePool, Folders

GPUS = "nvidia.com/gpu"
# Variables for NVIDIA GPUs; the first hides all other GPUs from CUDA, also when it is empty.
CUDA, CONTAINER_TOOLKIT = "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"
NO_DEVICE = "void"
RECORD = "devices.json"
# A kubelet's reason when the scheduler assumed more devices.
UNAVAILABLE = "UnexpectedAdmissionError"

# Container → resource → numbers of devices.
Allocation = dict[str, dict[str, tuple[int, ...]]]


@dataclass(slots=True, kw_only=True)
class Devices:
    """Allocates the devices of this node, each to one pod at a time."""

    files: Files
    folders: Folders
    pools: tuple[DevicePool, ...]
    _allocations: dict[str, Allocation] = field(init=False, default_factory=dict)

    def load(self) -> None:
        """Read all allocations; nothing was started with a record that cannot be read."""
        for uid in self.files.names(self.folders.pods):
            if allocation := _read(self.files, self._record(uid)):
                self._allocations[uid] = allocation

    def assign(self, pod: Object, container: Object) -> None:
        """Allocate and record the devices of a container, unless it has some. CannotStart when there are too few."""
        uid, name = uid_of(pod), str(container["name"])
        allocation = self._allocations.get(uid, {})
        requests = _requests(container)
        pools = {pool.resource: pool for pool in self.pools}
        for resource in requests.keys() - pools.keys():
            raise _unavailable(resource, requests[resource], 0)
        if name in allocation or not requests:
            return
        chosen = {
            resource: self._choose(pod, name, pool=pools[resource], count=count) for resource, count in requests.items()
        }
        self._allocations[uid] = {**allocation, name: chosen}
        self.files.make_folder(self.folders.pod(uid))
        self.files.write(self._record(uid), json.dumps(self._allocations[uid]).encode())

    def of(self, pod: Object, container: Object) -> tuple[tuple[DevicePool, tuple[Device, ...]], ...]:
        """Return a container's devices of every pool; CannotStart when one of them no longer exists."""
        numbers = self._allocations.get(uid_of(pod), {}).get(str(container["name"]), {})
        return tuple((pool, _numbered(pool, numbers.get(pool.resource, ()))) for pool in self.pools)

    def release(self, uid: str) -> None:
        """Release the devices of a pod in which nothing runs any more."""
        if uid in self._allocations:
            self.files.remove(self._record(uid))
            del self._allocations[uid]

    def _choose(self, pod: Object, name: str, *, pool: DevicePool, count: int) -> tuple[int, ...]:
        """Choose devices of the pod's finished init containers first: the scheduler counts these only once."""
        resource = pool.resource
        allocation = self._allocations.get(uid_of(pod), {})
        done = {init for init in _init_containers(pod) if init != name}
        reusable = _numbers(allocation, resource, done) - _numbers(allocation, resource, allocation.keys() - done)
        taken = {number for other in self._allocations.values() for number in _numbers(other, resource, other)}
        numbers = [device.number for device in pool.devices]
        free = [*(number for number in numbers if number in reusable), *(n for n in numbers if n not in taken)]
        if len(free) < count:
            raise _unavailable(resource, count, len(free))
        return tuple(sorted(free[:count]))

    def _record(self, uid: str) -> Path:
        return self.folders.pod(uid) / RECORD


def variables(allocated: Iterable[tuple[DevicePool, tuple[Device, ...]]]) -> dict[str, str]:
    """Return the variables that name a container's devices; for GPUs also when it has none."""
    env: dict[str, str] = {}
    for pool, devices in allocated:
        names = ",".join(device.name or str(device.number) for device in devices)
        if devices:
            suffix = re.sub(r"[^A-Z0-9]+", "_", pool.resource.upper())
            env[f"PACELINE_DEVICES_{suffix}"] = names
        if pool.resource == GPUS:
            env |= {CUDA: names, CONTAINER_TOOLKIT: names or NO_DEVICE}
    return env


def nodes(allocated: Iterable[tuple[DevicePool, tuple[Device, ...]]]) -> tuple[str, ...]:
    """Return the device nodes that a container sees: those of its devices, and the shared ones of their pools."""
    lists = ((pool.nodes, *(device.nodes for device in devices)) for pool, devices in allocated if devices)
    return tuple(dict.fromkeys(path for group in lists for paths in group for path in paths))


def _requests(container: Object) -> dict[str, int]:
    """Return how many devices of which resource a container requests."""
    limits = (container.get("resources") or {}).get("limits") or {}
    counts = {str(name): whole(amount) for name, amount in limits.items() if is_extended(name)}
    return {name: count for name, count in counts.items() if count}


def _unavailable(resource: str, requested: int, free: int) -> CannotStart:
    problem = f"Allocate failed due to requested number of devices unavailable for {resource}"
    return CannotStart(UNAVAILABLE, f"{problem}. Requested: {requested}, Available: {free}")


def _init_containers(pod: Object) -> Iterator[str]:
    """Yield the names of init containers that are no sidecars."""
    for container in pod["spec"].get("initContainers") or ():
        if not is_sidecar(container):
            yield str(container["name"])


def _numbers(allocation: Allocation, resource: str, names: Iterable[str]) -> set[int]:
    return {number for name in names if name in allocation for number in allocation[name].get(resource, ())}


def _numbered(pool: DevicePool, numbers: tuple[int, ...]) -> tuple[Device, ...]:
    devices = {device.number: device for device in pool.devices}
    if missing := ", ".join(str(number) for number in numbers if number not in devices):
        problem = f"{pool.resource} {missing} is allocated to this container, but no longer exists"
        raise CannotStart(UNAVAILABLE, f"{problem}; declare it again, or delete the pod")
    return tuple(devices[number] for number in numbers)


def _read(files: Files, path: Path) -> Allocation:
    try:
        record = json.loads(files.read(path))
    except (OSError, ValueError):
        return {}
    return {
        name: {resource: tuple(numbers) for resource, numbers in devices.items()} for name, devices in record.items()
    }
