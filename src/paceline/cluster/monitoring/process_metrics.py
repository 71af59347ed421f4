"""Metrics of this process: memory, CPU time, open files, and which build it is."""

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

from paceline import __version__
from paceline.apimachinery.metrics import MetricSource, ReadGauge

_PROC = Path("/proc/self")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def process_metrics() -> tuple[MetricSource, ...]:
    """Return the metrics of this process, with the names that Prometheus' own clients use."""
    began = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + _start_ticks() / os.sysconf("SC_CLK_TCK")
    build = (("version", __version__), ("python_version", platform.python_version()))
    return (
        _gauge("process_resident_memory_bytes", "Resident memory.", _resident_bytes),
        _gauge("process_cpu_seconds_total", "CPU time, user and system.", time.process_time, type_="counter"),
        _gauge("process_start_time_seconds", "Start time since the Unix epoch.", lambda: round(began, 2)),
        _gauge("process_open_fds", "Open file descriptors.", lambda: len(os.listdir(_PROC / "fd"))),  # noqa: PTH208
        ReadGauge(name="paceline_build_info", help="The build that runs.", read=lambda: 1, labels=build),
    )


def _gauge(name: str, text: str, read: Callable[[], float], *, type_: str = "gauge") -> ReadGauge:
    return ReadGauge(name=name, help=text, read=read, type=type_)


def _resident_bytes() -> float:
    return int((_PROC / "statm").read_text().split()[1]) * _PAGE


def _start_ticks() -> int:
    return int((_PROC / "stat").read_text().rpartition(")")[2].split()[19])
