"""What containers and the node use: measured every few seconds, told at once.

Processor use is what the processes of a container were given between two measurements. Memory is what each process
has for itself, and the largest share of one of them: what programs have in common is counted once.
"""

import asyncio
import functools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from paceline.apimachinery.meta import Key, Object, key_of, name_of, namespace_of, uid_of
from paceline.apimachinery.pods import claims_of, containers_of
from paceline.apimachinery.quantity import whole
from paceline.apimachinery.timestamps import to_wire
from paceline.effects import Clock, Effects, Executor, Files, ProcessHandle
from paceline.node.host_info import Folders, Host
from paceline.node.lifecycle.state_files import latest_attempts

EVERY_SECONDS = 5.0
# What is told is the use between the first and the last of these: of about fifteen seconds.
SAMPLES = 4
NANO = 1_000_000_000


PERIOD_SECONDS = 15.0
# Looking takes at most this part of the time: a folder of millions of files is looked at seldom.
SHARE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    used: int
    at: datetime
    # Before when it is not looked at again, on the clock that never runs backwards.
    next: float


@dataclass(slots=True, kw_only=True)
class VolumeUsage:
    """Measures the claims of this machine, whether or not a pod has them mounted."""

    files: Files
    clock: Clock
    blocking: Executor
    claims: Mapping[Key, Object]
    volumes: Mapping[Key, Object]
    _looks: dict[Path, _Look] = field(init=False, default_factory=dict)

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(PERIOD_SECONDS)

    async def look(self) -> None:
        """Measure every folder whose turn it is, and forget those that are gone."""
        folders = {folder for _, folder, _ in self._folders()}
        self._looks = {folder: look for folder, look in self._looks.items() if folder in folders}
        for folder in sorted(folders):
            before, began = self._looks.get(folder), self.clock.monotonic()
            if before is None or began >= before.next:
                used = await self.blocking.run(functools.partial(self.files.used, folder))
                now = self.clock.monotonic()
                self._looks[folder] = _Look(used=used, at=self.clock.now(), next=now + (now - began) / SHARE)

    def told(self) -> tuple[Object, ...]:
        """Tell how full each claim is, in a kubelet's words."""
        return tuple(
            {
                "time": to_wire(look.at),
                "pvcRef": {"name": name_of(claim), "namespace": namespace_of(claim)},
                "usedBytes": look.used,
                "capacityBytes": capacity,
                "availableBytes": max(capacity - look.used, 0),
            }
            for claim, folder, capacity in self._folders()
            if (look := self._looks.get(folder)) is not None
        )

    def of(self, pod: Object) -> list[Object]:
        """Tell how full the claims are that a pod mounts, by the names of its volumes."""
        by_claim = {(each["pvcRef"]["namespace"], each["pvcRef"]["name"]): each for each in self.told()}
        namespace = namespace_of(pod)
        return [
            {**stats, "name": claim.volume}
            for claim in claims_of(pod)
            if (stats := by_claim.get((namespace, claim.name)))
        ]

    def _folders(self) -> Iterator[tuple[Object, Path, int]]:
        """Give every claim that is a folder of this machine, with that and what it may hold."""
        for claim in sorted(self.claims.values(), key=key_of):
            volume = self.volumes.get(("", str(claim["spec"].get("volumeName") or "")))
            spec = (volume or {}).get("spec") or {}
            place = spec.get("hostPath") or spec.get("local")
            capacity = (spec.get("capacity") or {}).get("storage")
            if place and capacity:
                yield claim, Path(place["path"]), whole(capacity)


@dataclass(frozen=True, slots=True, kw_only=True)
class IOCounters:
    """Bytes that came in and went out so far."""

    received: int
    sent: int
    # Over which interface.
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What something has used so far, and has now."""

    cpu_seconds: float
    memory_bytes: int
    # For how long it has been there.
    age_seconds: float
    # What was read from disks and written to them; None where nobody may know.
    disk: IOCounters | None = None
    # What came and went over the network of its pod; None where it has none of its own.
    network: IOCounters | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one look at the machine found: containers go by their shims."""

    containers: Mapping[ProcessHandle, Usage]
    node: Usage


# Looks at the processes below each of these shims, and at the machine.
Measure = Callable[[frozenset[ProcessHandle]], Measurement]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A look, and when it was."""

    at: datetime
    moment: float
    measured: Measurement
    # The pods that had running containers, with these by name.
    pods: tuple[tuple[Object, tuple[tuple[str, ProcessHandle], ...]], ...]


@dataclass(slots=True, kw_only=True)
class Stats:
    """Measures what the pods of this machine use, and remembers the last few looks."""

    world: Effects
    host: Host
    folders: Folders
    pods: Mapping[Key, Object]
    measure: Measure
    blocking: Executor
    # Who knows how full claims are, if anybody does.
    filling: VolumeUsage | None = None
    _samples: deque[Sample] = field(init=False, default_factory=lambda: deque(maxlen=SAMPLES))

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY_SECONDS)

    async def look(self) -> None:
        """Measure once."""
        mine = tuple(pod for pod in self.pods.values() if pod["spec"].get("nodeName") == self.host.name)
        # Elsewhere: with many pods and processes it takes some milliseconds.
        self._samples.append(await self.blocking.run(partial(self._sample, mine)))

    def _sample(self, mine: tuple[Object, ...]) -> Sample:
        found = tuple((pod, self._running(pod)) for pod in mine)
        pods = tuple((pod, running) for pod, running in found if running)
        measured = self.measure(frozenset(who for _, running in pods for _, who in running))
        clock = self.world.clock
        return Sample(at=clock.now(), moment=clock.monotonic(), measured=measured, pods=pods)

    def summary(self) -> Object:
        """Tell what the node and its pods use, in a kubelet's words."""
        if not self._samples:
            return {"node": {"nodeName": self.host.name}, "pods": []}
        last = self._samples[-1]
        pods = [told for pod, running in last.pods if (told := self._pod(pod, running, last))]
        node = {"nodeName": self.host.name, **self._told(last, lambda each: each.node)}
        # A kubelet has no such list: it knows of claims only while a pod has them.
        claims = {"claims": list(self.filling.told())} if self.filling else {}
        return {"node": node, "pods": pods, **claims}

    def _pod(self, pod: Object, running: tuple[tuple[str, ProcessHandle], ...], last: Sample) -> Object | None:
        containers = [
            {"name": name, **self._told(last, partial(_container, who))}
            for name, who in running
            if who in last.measured.containers
        ]
        if not containers:
            return None
        about = {"name": name_of(pod), "namespace": namespace_of(pod), "uid": uid_of(pod)}
        volumes = self.filling.of(pod) if self.filling else []
        more = {**_network(running, last), **({"volume": volumes} if volumes else {})}
        return {"podRef": about, "containers": containers, **more}

    def _told(self, last: Sample, pick: Callable[[Measurement], Usage | None]) -> Object:
        now = pick(last.measured)
        if now is None:
            return {}
        # Something that was seen only once is new: all that it has used, it has used since it began.
        used, seconds = now.cpu_seconds, now.age_seconds
        for sample in self._samples:
            before = pick(sample.measured)
            if before is not None and sample.moment < last.moment:
                used, seconds = now.cpu_seconds - before.cpu_seconds, last.moment - sample.moment
                break
        cores = max(used, 0.0) / seconds if seconds > 0 else 0.0
        so_far = {"usageNanoCores": int(cores * NANO), "usageCoreNanoSeconds": int(now.cpu_seconds * NANO)}
        return {
            "cpu": {"time": to_wire(last.at), **so_far},
            "memory": {"time": to_wire(last.at), "workingSetBytes": now.memory_bytes},
            "windowSeconds": round(seconds, 3),
            **_disk(now.disk, last),
        }

    def _running(self, pod: Object) -> tuple[tuple[str, ProcessHandle], ...]:
        names = [str(each["name"]) for each in containers_of(pod)]
        tries = latest_attempts(self.world, self.folders, uid_of(pod), names)
        return tuple(
            (name, each.started.identity)
            for name, each in tries.items()
            if each.started and each.started.identity and each.ended is None and each.has_shim
        )


def _disk(moved: IOCounters | None, last: Sample) -> Object:
    """Tell what was read and written; a kubelet leaves that to others."""
    if moved is None:
        return {}
    return {"disk": {"time": to_wire(last.at), "readBytes": moved.received, "writeBytes": moved.sent}}


def _network(running: tuple[tuple[str, ProcessHandle], ...], last: Sample) -> Object:
    """Tell what came and went over a pod's own network; its containers share it."""
    seen = (last.measured.containers[who].network for _, who in running if who in last.measured.containers)
    moved = next((each for each in seen if each is not None), None)
    if moved is None:
        return {}
    bytes_of = {"name": moved.name, "rxBytes": moved.received, "txBytes": moved.sent}
    return {"network": {"time": to_wire(last.at), **bytes_of, "interfaces": [bytes_of]}}


def _container(who: ProcessHandle, measured: Measurement) -> Usage | None:
    return measured.containers.get(who)
