"""Measure what containers, claims and the node use, and return it as a kubelet's stats summary.

CPU usage is what the processes of a container used between two measurements. Memory is what each process has for
itself, plus the largest share of shared memory of one of them, so that shared memory counts once.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from paceline.apimachinery.meta import Key, Object, key_of, name_of, namespace_of, uid_of
from paceline.apimachinery.pods import claims_of
from paceline.apimachinery.quantity import whole
from paceline.apimachinery.timestamps import to_wire
from paceline.effects import Clock, Effects, Executor, Files, ProcessHandle
from paceline.node.host_info import Folders, Host
from paceline.node.lifecycle.state_files import running_shims

PERIOD_SECONDS = 5.0
# Usage is computed between the oldest and the newest sample: about fifteen seconds.
SAMPLES = 4
NANO = 1_000_000_000
VOLUME_PERIOD_SECONDS = 15.0
# The share of the time that measuring a folder may take: one with millions of files is measured seldom.
VOLUME_TIME_SHARE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class _FolderUsage:
    used: int
    at: datetime
    # When it is measured again, on the monotonic clock.
    next: float


@dataclass(slots=True, kw_only=True)
class VolumeUsage:
    """Measures how full the claims of this machine are, whether or not a pod mounts them."""

    files: Files
    clock: Clock
    blocking: Executor
    claims: Mapping[Key, Object]
    volumes: Mapping[Key, Object]
    _usage: dict[Path, _FolderUsage] = field(init=False, default_factory=dict)

    async def run(self) -> None:
        while True:
            await self.measure()
            await asyncio.sleep(VOLUME_PERIOD_SECONDS)

    async def measure(self) -> None:
        """Measure every folder that is due, and forget those that no longer exist."""
        folders = {folder for _, folder, _ in self._folders()}
        self._usage = {folder: usage for folder, usage in self._usage.items() if folder in folders}
        for folder in sorted(folders):
            last, began = self._usage.get(folder), self.clock.monotonic()
            if last is None or began >= last.next:
                used = await self.blocking.run(partial(self.files.used, folder))
                now = self.clock.monotonic()
                pause = (now - began) / VOLUME_TIME_SHARE
                self._usage[folder] = _FolderUsage(used=used, at=self.clock.now(), next=now + pause)

    def summary(self) -> tuple[Object, ...]:
        """Return the usage of every claim, in a kubelet's form."""
        return tuple(
            {
                "time": to_wire(usage.at),
                "pvcRef": {"name": name_of(claim), "namespace": namespace_of(claim)},
                "usedBytes": usage.used,
                "capacityBytes": capacity,
                "availableBytes": max(capacity - usage.used, 0),
            }
            for claim, folder, capacity in self._folders()
            if (usage := self._usage.get(folder)) is not None
        )

    def of(self, pod: Object) -> list[Object]:
        """Return the usage of the claims that a pod mounts, with the names of its volumes."""
        by_claim = {(stats["pvcRef"]["namespace"], stats["pvcRef"]["name"]): stats for stats in self.summary()}
        namespace = namespace_of(pod)
        return [
            {**stats, "name": claim.volume}
            for claim in claims_of(pod)
            if (stats := by_claim.get((namespace, claim.name)))
        ]

    def _folders(self) -> Iterator[tuple[Object, Path, int]]:
        """Yield every claim that is a folder of this machine, with the folder and its capacity."""
        for claim in sorted(self.claims.values(), key=key_of):
            volume = self.volumes.get(("", str(claim["spec"].get("volumeName") or "")))
            spec = (volume or {}).get("spec") or {}
            source = spec.get("hostPath") or spec.get("local")
            capacity = (spec.get("capacity") or {}).get("storage")
            if source and capacity:
                yield claim, Path(source["path"]), whole(capacity)


@dataclass(frozen=True, slots=True, kw_only=True)
class IOCounters:
    """Bytes received and sent, or read and written, so far."""

    received: int
    sent: int
    # The network interface.
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a container or the node has used so far, and uses now."""

    cpu_seconds: float
    memory_bytes: int
    # Time since it started.
    age_seconds: float
    # Disk I/O; None where we may not read it.
    disk: IOCounters | None = None
    # Network I/O; None where the pod has no network of its own.
    network: IOCounters | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The usage of all containers, by their shims, and of the node at one moment."""

    containers: Mapping[ProcessHandle, Usage]
    node: Usage


# Measures the processes below each of these shims, and the machine.
Measure = Callable[[frozenset[ProcessHandle]], Measurement]
# The shims of a pod's running containers, by container.
Containers = Mapping[str, ProcessHandle]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    at: datetime
    moment: float
    measurement: Measurement
    # The pods that have running containers.
    pods: tuple[tuple[Object, Containers], ...]


@dataclass(slots=True, kw_only=True)
class Stats:
    """Measures what the pods of this machine use, and keeps the last few samples."""

    world: Effects
    host: Host
    folders: Folders
    pods: Mapping[Key, Object]
    measure: Measure
    blocking: Executor
    volumes: VolumeUsage | None = None
    # Is given every sample, on the thread that measured it.
    record: Callable[[Sample], None] | None = None
    _samples: deque[Sample] = field(init=False, default_factory=lambda: deque(maxlen=SAMPLES))

    async def run(self) -> None:
        while True:
            await self.sample()
            await asyncio.sleep(PERIOD_SECONDS)

    async def sample(self) -> None:
        mine = tuple(pod for pod in self.pods.values() if pod["spec"].get("nodeName") == self.host.name)
        # Not on the event loop: with many pods and processes it takes some milliseconds.
        self._samples.append(await self.blocking.run(partial(self._sample, mine)))

    def _sample(self, mine: tuple[Object, ...]) -> Sample:
        pods = tuple((pod, running) for pod in mine if (running := running_shims(self.world, self.folders, pod)))
        measurement = self.measure(frozenset(shim for _, running in pods for shim in running.values()))
        clock = self.world.clock
        sample = Sample(at=clock.now(), moment=clock.monotonic(), measurement=measurement, pods=pods)
        if self.record is not None:
            self.record(sample)
        return sample

    def summary(self) -> Object:
        """Return the usage of the node and its pods, in a kubelet's form."""
        if not self._samples:
            return {"node": {"nodeName": self.host.name}, "pods": []}
        last = self._samples[-1]
        pods = [stats for pod, running in last.pods if (stats := self._pod(pod, running, last))]
        node = {"nodeName": self.host.name, **self._usage(last, lambda measurement: measurement.node)}
        # A kubelet has no such list: it has claims only below the pods that mount them.
        claims = {"claims": list(self.volumes.summary())} if self.volumes else {}
        return {"node": node, "pods": pods, **claims}

    def _pod(self, pod: Object, running: Containers, last: Sample) -> Object | None:
        containers = [
            {"name": name, **self._usage(last, partial(_container, shim))}
            for name, shim in running.items()
            if shim in last.measurement.containers
        ]
        if not containers:
            return None
        reference = {"name": name_of(pod), "namespace": namespace_of(pod), "uid": uid_of(pod)}
        volumes = self.volumes.of(pod) if self.volumes else []
        optional = {**_network(running, last), **({"volume": volumes} if volumes else {})}
        return {"podRef": reference, "containers": containers, **optional}

    def _usage(self, last: Sample, pick: Callable[[Measurement], Usage | None]) -> Object:
        current = pick(last.measurement)
        if current is None:
            return {}
        # With a single sample, the usage since the start is all there is.
        used, seconds = current.cpu_seconds, current.age_seconds
        for sample in self._samples:
            earlier = pick(sample.measurement)
            if earlier is not None and sample.moment < last.moment:
                used, seconds = current.cpu_seconds - earlier.cpu_seconds, last.moment - sample.moment
                break
        cores = max(used, 0.0) / seconds if seconds > 0 else 0.0
        cpu = {"usageNanoCores": int(cores * NANO), "usageCoreNanoSeconds": int(current.cpu_seconds * NANO)}
        return {
            "cpu": {"time": to_wire(last.at), **cpu},
            "memory": {"time": to_wire(last.at), "workingSetBytes": current.memory_bytes},
            "windowSeconds": round(seconds, 3),
            **_disk(current.disk, last),
        }


def _disk(counters: IOCounters | None, last: Sample) -> Object:
    """Return the disk I/O, which a kubelet's summary does not have."""
    if counters is None:
        return {}
    return {"disk": {"time": to_wire(last.at), "readBytes": counters.received, "writeBytes": counters.sent}}


def _network(running: Containers, last: Sample) -> Object:
    """Return the I/O of a pod's network, which its containers share."""
    usages = (last.measurement.containers[shim] for shim in running.values() if shim in last.measurement.containers)
    counters = next((usage.network for usage in usages if usage.network is not None), None)
    if counters is None:
        return {}
    interface = {"name": counters.name, "rxBytes": counters.received, "txBytes": counters.sent}
    return {"network": {"time": to_wire(last.at), **interface, "interfaces": [interface]}}


def _container(shim: ProcessHandle, measurement: Measurement) -> Usage | None:
    return measurement.containers.get(shim)
