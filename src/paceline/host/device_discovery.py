"""Which devices this machine has: those that were declared, and GPUs as their maker's library counts them."""

import contextlib
import ctypes
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.node.devices import GPUS
from paceline.node.host_info import Device, Supply
from paceline.settings import Row

LIBRARY = "libnvidia-ml.so.1"
DEV = Path("/dev")
# Every process that uses a GPU opens these.
SHARED_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
UUID_BYTES = 96


def find_supplies(rows: Iterable[Row], load: Callable[[str], Any] = ctypes.CDLL) -> tuple[Supply, ...]:
    """Give what was declared, and the GPUs that are found; of a resource that is declared, only what is declared."""
    declared = {resource: _declared(resource, devices) for resource, devices in rows}
    if GPUS not in declared and (found := _gpus(load)).devices:
        declared[GPUS] = found
    return tuple(declared[resource] for resource in sorted(declared))


def _declared(resource: str, devices: str) -> Supply:
    if devices.isdecimal():
        return Supply(resource=resource, devices=tuple(Device(number=number) for number in range(int(devices))))
    each = enumerate(devices.split(","))
    return Supply(
        resource=resource,
        devices=tuple(Device(number=number, nodes=tuple(one.split("+"))) for number, one in each),
    )


def _gpus(load: Callable[[str], Any]) -> Supply:
    """Ask the maker's library; a machine without it, or without a driver that works, has none."""
    devices: tuple[Device, ...] = ()
    with contextlib.suppress(OSError, AttributeError), _Nvml.opened(load(LIBRARY)) as nvml:
        devices = tuple(nvml.devices())
    nodes = tuple(str(DEV / name) for name in SHARED_NODES if (DEV / name).exists())
    return Supply(resource=GPUS, devices=devices, nodes=nodes)


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
