"""Find where this machine lets us make control groups, and sweep what earlier runs left there."""

import contextlib
import ctypes
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.node.devices import GPUS
from paceline.node.host_info import Device, DevicePool
from paceline.node.runtime.cgroup_limits import SHARES_PER_CPU, Cgroups, weight_of
from paceline.settings import Row

MOUNTS, OWN = Path("/proc/self/mounts"), Path("/proc/self/cgroup")
CONTROLLERS = ("cpu", "memory", "pids")
FOLDER = "paceline"
PID_MAX = Path("/proc/sys/kernel/pid_max")
# What is kept for our own processes and for the rest of the machine.
RESERVE_SHARE, LEAST_RESERVE = 20, 512 * 1024 * 1024
# A container of another agent, or of the one before this, may have made its group and not have entered it yet.
YOUNG_SECONDS = 60.0


def find_cgroups() -> Cgroups | None:
    """Make our own folder in each controller's tree; None where the kernel or the user's rights do not allow it."""
    try:
        mounts = [line.split() for line in MOUNTS.read_text().splitlines()]
        own = dict(_own(line) for line in OWN.read_text().splitlines())
    except OSError:
        return None
    found = _old(mounts, own) or _new(mounts)
    if found is not None:
        remove_stale_cgroups(found, time.time())
        limit_all_pods(found, memory_bytes=memory_for_pods(), pids=pids_for_pods(), cpus=os.cpu_count() or 1)
    return found


def memory_for_pods() -> int:
    """Return how much memory all pods together may use: what the machine has, less a reserve for everything else."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return total - min(max(total // RESERVE_SHARE, LEAST_RESERVE), total // 2)


def pids_for_pods(pid_max: Path = PID_MAX) -> int:
    """Return how many processes all pods together may have: three quarters of what the kernel can have."""
    return int(pid_max.read_text()) * 3 // 4


def limit_all_pods(cgroups: Cgroups, *, memory_bytes: int, pids: int, cpus: int) -> None:
    """Hold all pods together to what leaves the machine alive; where the kernel refuses, each pod's own limits stay.

    Of the CPUs they have as many shares as there are, as a kubelet has it: thousands of their processes count no more
    than that beside each single one of the machine's.
    """
    is_old, shares = cgroups.version == 1, cpus * SHARES_PER_CPU
    settings = (
        (cgroups.memory / ("memory.limit_in_bytes" if is_old else "memory.max"), memory_bytes),
        (cgroups.pids / "pids.max", pids),
        (cgroups.cpu / ("cpu.shares" if is_old else "cpu.weight"), shares if is_old else weight_of(shares)),
    )
    for path, value in settings:
        with contextlib.suppress(OSError):
            path.write_text(str(value))


def _own(line: str) -> tuple[str, str]:
    """Read which group of one tree this process is in: `4:memory:/some/where`."""
    _, controllers, path = line.split(":", 2)
    return controllers, path


def _old(mounts: list[list[str]], own: dict[str, str]) -> Cgroups | None:
    found: dict[str, Path] = {}
    for _, where, sort, options, *_ in mounts:
        for name in set(CONTROLLERS) & set(options.split(",")) if sort == "cgroup" else ():
            inside = next((path for listed, path in own.items() if name in listed.split(",")), "/")
            # Below our own group, so that limits that were set for us hold for our pods too.
            here = Path(where) / inside.lstrip("/")
            found[name] = (here if here.is_dir() else Path(where)) / FOLDER
    if set(found) != set(CONTROLLERS) or not all(_can_make(folder) for folder in found.values()):
        return None
    return Cgroups(version=1, cpu=found["cpu"], memory=found["memory"], pids=found["pids"])


def _new(mounts: list[list[str]]) -> Cgroups | None:
    for _, where, sort, *_ in mounts:
        folder = Path(where) / FOLDER
        if sort != "cgroup2" or not _can_make(folder):
            continue
        with contextlib.suppress(OSError):
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))
            return Cgroups(version=2, cpu=folder, memory=folder, pids=folder)
    return None


def _can_make(folder: Path) -> bool:
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return False
    return os.access(folder / "cgroup.procs", os.W_OK)


def remove_stale_cgroups(cgroups: Cgroups, now: float) -> None:
    """Remove groups whose last process has ended, but for young ones; the kernel refuses it for all others."""
    for folder in {cgroups.cpu, cgroups.memory, cgroups.pids}:
        for each in folder.iterdir() if folder.is_dir() else ():
            with contextlib.suppress(OSError):
                if now - each.stat().st_mtime > YOUNG_SECONDS:
                    each.rmdir()


LIBRARY = "libnvidia-ml.so.1"
DEV = Path("/dev")
# Every process that uses a GPU opens these.
SHARED_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
UUID_BYTES = 96


def find_device_pools(rows: Iterable[Row], load: Callable[[str], Any] = ctypes.CDLL) -> tuple[DevicePool, ...]:
    """Give what was declared, and the GPUs that are found; of a resource that is declared, only what is declared."""
    declared = {resource: _declared(resource, devices) for resource, devices in rows}
    if GPUS not in declared and (found := _gpus(load)).devices:
        declared[GPUS] = found
    return tuple(declared[resource] for resource in sorted(declared))


def _declared(resource: str, devices: str) -> DevicePool:
    if devices.isdecimal():
        return DevicePool(resource=resource, devices=tuple(Device(number=number) for number in range(int(devices))))
    each = enumerate(devices.split(","))
    return DevicePool(
        resource=resource,
        devices=tuple(Device(number=number, nodes=tuple(one.split("+"))) for number, one in each),
    )


def _gpus(load: Callable[[str], Any]) -> DevicePool:
    """Ask the maker's library; a machine without it, or without a driver that works, has none."""
    devices: tuple[Device, ...] = ()
    with contextlib.suppress(OSError, AttributeError), _Nvml.opened(load(LIBRARY)) as nvml:
        devices = tuple(nvml.devices())
    nodes = tuple(str(DEV / name) for name in SHARED_NODES if (DEV / name).exists())
    return DevicePool(resource=GPUS, devices=devices, nodes=nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nvml:
    """The few calls of NVIDIA's management library that counting takes."""

    library: Any

    @classmethod
    @contextlib.contextmanager
    def opened(cls, library: Any) -> Iterator["_Nvml"]:
        _check(library.nvmlInit_v2())
        try:
            yield cls(library=library)
        finally:
            library.nvmlShutdown()

    def devices(self) -> Iterator[Device]:
        """Give every GPU by its own name: numbers change their meaning where not all of them are seen."""
        count = ctypes.c_uint()
        _check(self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)))
        for number in range(count.value):
            handle, minor, uuid = ctypes.c_void_p(), ctypes.c_uint(), ctypes.create_string_buffer(UUID_BYTES)
            try:
                _check(self.library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle)))
                _check(self.library.nvmlDeviceGetUUID(handle, uuid, UUID_BYTES))
                _check(self.library.nvmlDeviceGetMinorNumber(handle, ctypes.byref(minor)))
            except OSError:
                continue  # A GPU that does not answer cannot be given to anybody.
            node = DEV / f"nvidia{minor.value}"
            yield Device(number=number, name=uuid.value.decode(), nodes=(str(node),) if node.exists() else ())


def _check(code: int) -> None:
    if code:
        raise OSError(code, "NVML")
