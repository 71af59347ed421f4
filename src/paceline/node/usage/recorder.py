"""Write every measurement into the ring files of its containers, pods and the node."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.pods import container_named
from paceline.effects import Files, ProcessHandle
from paceline.node.devices import GPUS, Devices
from paceline.node.host_info import CannotStart, Folders
from paceline.node.server.stats import IOCounters, Sample, Usage
from paceline.node.usage.ring_file import UNKNOWN, Counters, RingFile

log = logging.getLogger(__name__)

NODE = "node"
# The containers of a pod share its network. No container has such a name.
NETWORK = "_network"


@dataclass(frozen=True, slots=True, kw_only=True)
class GPUUsage:
    """How busy a GPU is, from 0 to 1, and how much of its memory is used."""

    busy: float
    memory_bytes: int


# The usage of every GPU, by its name; empty without NVIDIA's library.
MeasureGPUs = Callable[[], Mapping[str, GPUUsage]]


def no_gpus() -> Mapping[str, GPUUsage]:
    """Return nothing: this machine has no GPUs that can be measured."""
    return {}


@dataclass(slots=True, kw_only=True)
class UsageRecorder:
    """Keeps what every container used. Only the thread that measures calls it."""

    files: Files
    folders: Folders
    devices: Devices
    measure_gpus: MeasureGPUs = no_gpus
    # The files that the last measurement was written to, by pod and container, with the time of their last sample.
    _files: dict[tuple[str, str], tuple[RingFile, float]] = field(init=False, default_factory=dict)
    _has_failed: bool = field(init=False, default=False)

    def start(self) -> None:
        """Make the node's folder."""
        self.files.make_folder(self.folders.node_usage)

    def record(self, sample: Sample) -> None:
        """Write one measurement. Without room on the disk there is a gap in the charts, and no other harm."""
        written: dict[tuple[str, str], tuple[RingFile, float]] = {}
        try:
            for key, counters in self._counters(sample):
                if (ring_file := self._append(key, counters)) is not None:
                    written[key] = (ring_file, counters.time)
        except OSError as error:
            if not self._has_failed:
                log.warning("usage not recorded", extra={"error": str(error)})
            self._has_failed = True
        else:
            self._has_failed = False
        self._files = written

    def _append(self, key: tuple[str, str], counters: Counters) -> RingFile | None:
        ring_file, last = self._files.get(key) or (None, None)
        try:
            if ring_file is None:
                uid, name = key
                folder = self.folders.usage(uid) if uid else self.folders.node_usage
                ring_file = RingFile(files=self.files, path=folder / name)
                last = ring_file.start()
            if last is None or counters.time > last:
                ring_file.append(counters, last)
        except FileNotFoundError:
            return None  # The pod was deleted meanwhile.
        return ring_file

    def _counters(self, sample: Sample) -> Iterator[tuple[tuple[str, str], Counters]]:
        """Yield what is written: the node's counters, and those of every container and every pod's network."""
        time, usages, gpus = sample.at.timestamp(), sample.measurement.containers, self.measure_gpus()
        node = _values(sample.measurement.node, tuple(gpus.values()))
        age = sample.measurement.node.age_seconds
        yield ("", NODE), Counters(time=time, process=0, age_seconds=age, values=node)
        for pod, running in sample.pods:
            uid = uid_of(pod)
            alive = [(name, shim, usages[shim]) for name, shim in running.items() if shim in usages]
            for name, shim, usage in alive:
                values = _values(usage, self._gpus_of(pod, name, gpus))
                yield (uid, name), _sample_of(time, shim, usage, values)
            network = next((usage for _, _, usage in alive if usage.network is not None), None)
            if network is not None:
                values = (UNKNOWN,) * 4 + _pair(network.network) + (UNKNOWN,) * 2
                yield (uid, NETWORK), Counters(time=time, process=0, age_seconds=network.age_seconds, values=values)

    def _gpus_of(self, pod: Object, name: str, gpus: Mapping[str, GPUUsage]) -> tuple[GPUUsage, ...]:
        container = container_named(pod, name) if gpus else None
        if container is None:
            return ()
        try:
            allocated = self.devices.of(pod, container)
        except CannotStart:
            return ()
        names = [device.name for pool, devices in allocated if pool.resource == GPUS for device in devices]
        return tuple(gpus[name] for name in names if name in gpus)


def _sample_of(time: float, shim: ProcessHandle, usage: Usage, values: tuple[float, ...]) -> Counters:
    return Counters(time=time, process=shim.start_ticks % 2**32, age_seconds=usage.age_seconds, values=values)


def _values(usage: Usage, gpus: tuple[GPUUsage, ...]) -> tuple[float, ...]:
    """Return values in the order of the file; the network is the pod's."""
    busy = sum(gpu.busy for gpu in gpus) if gpus else UNKNOWN
    memory = float(sum(gpu.memory_bytes for gpu in gpus)) if gpus else UNKNOWN
    used = (usage.cpu_seconds, float(usage.memory_bytes), *_pair(usage.disk))
    return (*used, UNKNOWN, UNKNOWN, busy, memory)


def _pair(counters: IOCounters | None) -> tuple[float, float]:
    return (UNKNOWN, UNKNOWN) if counters is None else (float(counters.received), float(counters.sent))
