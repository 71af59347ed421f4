"""Utilization and memory use of the GPUs of this machine, from NVIDIA's management library (NVML)."""

import contextlib
import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.host.resources import NVML_LIBRARY, UUID_BYTES
from paceline.node.usage.recorder import GPUUsage

PERCENT = 100


class _Utilization(ctypes.Structure):
    """nvmlUtilization_t."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


@dataclass(slots=True)
class GPUMeter:
    """Measures GPUs. The library stays loaded, because to initialise it takes longer than a measurement."""

    load: Callable[[str], Any] = ctypes.CDLL
    # None until the first measurement, and then False if there is no working library.
    _library: Any = field(init=False, default=None)

    def measure(self) -> Mapping[str, GPUUsage]:
        """Return the usage of every GPU that answers, by its UUID."""
        if self._library is None:
            self._library = self._opened()
        if not self._library:
            return {}
        count, usages = ctypes.c_uint(), {}
        self._library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        for number in range(count.value):
            handle, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(UUID_BYTES)
            busy, memory = _Utilization(), _Memory()
            # Each returns 0 if it has succeeded.
            is_unknown = (
                self._library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle))
                or self._library.nvmlDeviceGetUUID(handle, uuid, UUID_BYTES)
                or self._library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(busy))
                or self._library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
            )
            if not is_unknown:
                usages[uuid.value.decode()] = GPUUsage(busy=busy.gpu / PERCENT, memory_bytes=memory.used)
        return usages

    def _opened(self) -> Any:
        with contextlib.suppress(OSError, AttributeError):
            library = self.load(NVML_LIBRARY)
            if library.nvmlInit_v2() == 0:
                return library
        return False
