"""The resources that this machine has for pods: control groups for CPU, memory and processes; and devices."""

import contextlib
import ctypes
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from paceline.node.devices import GPUS
from paceline.node.host_info import Device, DevicePool
from paceline.node.runtime.cgroup_limits import SHARES_PER_CPU, Cgroups, weight_of
from paceline.settings import Row

MOUNTS, GROUPS = Path("/proc/self/mounts"), Path("/proc/self/cgroup")
CONTROLLERS = ("cpu", "memory", "pids")
FOLDER = "paceline"
PID_MAX = Path("/proc/sys/kernel/pid_max")
# The memory that is reserved for our own and all other processes of the machine.
RESERVE_SHARE, LEAST_RESERVE = 20, 512 * 1024 * 1024
# A container that is being started has created its group but not entered it yet.
YOUNG_SECONDS = 60.0
NVML_LIBRARY = "libnvidia-ml.so.1"
DEV = Path("/dev")
# Every process that uses a GPU opens these.
SHARED_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
UUID_BYTES = 96


def find_cgroups() -> Cgroups | None:
    """Create our group in each controller's hierarchy; None if the kernel or the user's rights do not allow it."""
    try:
        mounts = [line.split() for line in MOUNTS.read_text().splitlines()]
        # A line such as `4:memory:/some/where` has the controllers of a hierarchy, and our group in it.
        lines = (line.split(":", 2) for line in GROUPS.read_text().splitlines())
        groups = {controllers: path for _, controllers, path in lines}
    except OSError:
        return None
    cgroups = _version1(mounts, groups) or _version2(mounts)
    if cgroups is not None:
        remove_stale_cgroups(cgroups, time.time())
        limit_all_pods(cgroups, memory_bytes=memory_for_pods(), pids=pids_for_pods(), cpus=os.cpu_count() or 1)
    return cgroups


def memory_for_pods() -> int:
    """Return how much memory all pods together may use: the machine's memory, less the reserve."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return total - min(max(total // RESERVE_SHARE, LEAST_RESERVE), total // 2)


def pids_for_pods(pid_max: Path = PID_MAX) -> int:
    """Return how many processes all pods together may have: three quarters of the kernel's maximum."""
    return int(pid_max.read_text()) * 3 // 4


def limit_all_pods(cgroups: Cgroups, *, memory_bytes: int, pids: int, cpus: int) -> None:
    """Limit all pods together, so that the machine stays usable; if the kernel refuses, only each pod's limits apply.

    As with a kubelet, their CPU shares are those of the machine's CPUs, however many processes they have.
    """
    is_version1, shares = cgroups.version == 1, cpus * SHARES_PER_CPU
    settings = (
        (cgroups.memory / ("memory.limit_in_bytes" if is_version1 else "memory.max"), memory_bytes),
        (cgroups.pids / "pids.max", pids),
        (cgroups.cpu / ("cpu.shares" if is_version1 else "cpu.weight"), shares if is_version1 else weight_of(shares)),
    )
    for path, value in settings:
        with contextlib.suppress(OSError):
            path.write_text(str(value))


def _version1(mounts: list[list[str]], groups: dict[str, str]) -> Cgroups | None:
    folders: dict[str, Path] = {}
    for _, mount_point, kind, options, *_ in mounts:
        for name in set(CONTROLLERS) & set(options.split(",")) if kind == "cgroup" else ():
            group = next((path for listed, path in groups.items() if name in listed.split(",")), "/")
            # Below our own group, so that its limits apply to our pods too.
            parent = Path(mount_point) / group.lstrip("/")
            folders[name] = (parent if parent.is_dir() else Path(mount_point)) / FOLDER
    if set(folders) != set(CONTROLLERS) or not all(_can_make(folder) for folder in folders.values()):
        return None
    return Cgroups(version=1, cpu=folders["cpu"], memory=folders["memory"], pids=folders["pids"])


def _version2(mounts: list[list[str]]) -> Cgroups | None:
    for _, mount_point, kind, *_ in mounts:
        folder = Path(mount_point) / FOLDER
        if kind != "cgroup2" or not _can_make(folder):
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
    """Remove empty groups, except young ones; the kernel refuses to remove groups with processes."""
    for folder in {cgroups.cpu, cgroups.memory, cgroups.pids}:
        for group in folder.iterdir() if folder.is_dir() else ():
            with contextlib.suppress(OSError):
                if now - group.stat().st_mtime > YOUNG_SECONDS:
                    group.rmdir()


def find_device_pools(rows: Iterable[Row], load: Callable[[str], Any] = ctypes.CDLL) -> tuple[DevicePool, ...]:
    """Return the declared devices, and the machine's GPUs unless GPUs are declared."""
    declared = {resource: _declared(resource, devices) for resource, devices in rows}
    if GPUS not in declared and (gpus := _gpus(load)).devices:
        declared[GPUS] = gpus
    return tuple(declared[resource] for resource in sorted(declared))


def _declared(resource: str, devices: str) -> DevicePool:
    if devices.isdecimal():
        return DevicePool(resource=resource, devices=tuple(Device(number=number) for number in range(int(devices))))
    entries = enumerate(devices.split(","))
    return DevicePool(
        resource=resource,
        devices=tuple(Device(number=number, nodes=tuple(entry.split("+"))) for number, entry in entries),
    )


def _gpus(load: Callable[[str], Any]) -> DevicePool:
    """Return the GPUs that NVIDIA's library finds; none without it, or without a working driver."""
    devices: tuple[Device, ...] = ()
    with contextlib.suppress(OSError, AttributeError):
        devices = tuple(_nvml_devices(load(NVML_LIBRARY)))
    nodes = tuple(str(DEV / name) for name in SHARED_NODES if (DEV / name).exists())
    return DevicePool(resource=GPUS, devices=devices, nodes=nodes)


def _nvml_devices(library: Any) -> Iterator[Device]:
    """Yield every GPU with its UUID: numbers change where not all GPUs are visible."""
    _check(library.nvmlInit_v2())
    try:
        count = ctypes.c_uint()
        _check(library.nvmlDeviceGetCount_v2(ctypes.byref(count)))
        for number in range(count.value):
            handle, minor, uuid = ctypes.c_void_p(), ctypes.c_uint(), ctypes.create_string_buffer(UUID_BYTES)
            try:
                _check(library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle)))
                _check(library.nvmlDeviceGetUUID(handle, uuid, UUID_BYTES))
                _check(library.nvmlDeviceGetMinorNumber(handle, ctypes.byref(minor)))
            except OSError:
                continue  # A GPU that does not answer cannot be used.
            node = DEV / f"nvidia{minor.value}"
            yield Device(number=number, name=uuid.value.decode(), nodes=(str(node),) if node.exists() else ())
    finally:
        library.nvmlShutdown()


def _check(code: int) -> None:
    if code:
        raise OSError(code, "NVML")
