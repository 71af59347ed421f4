"""The resource limits of a container as files of its cgroups."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from paceline.apimachinery.quantity import parse

PERIOD_MICROSECONDS = 100_000
# The kernel's minimum.
MIN_QUOTA = 1_000
# Where programs find the cgroups; version 1 has a folder for each controller there.
ROOT = Path("/sys/fs/cgroup")
CONTROLLER_DEPTH = len(ROOT.parts) + 1
# The file with which a process of one thread joins a cgroup. `tasks` of version 1 does not wait, while `cgroup.procs`
# blocks all forks of the machine for up to 12 ms.
PROCS = {1: "tasks", 2: "cgroup.procs"}
# The shares of one CPU, and the kernel's limits for them.
SHARES_PER_CPU, MIN_SHARES, MAX_SHARES = 1024, 2, 262_144
# A quarter of a CPU for containers that request less. A kubelet's 2 shares would starve our own pods without a request
# beside trainings: clones, uploads, TensorBoards.
DEFAULT_SHARES = 256
# Settings that are no limits, or that programs do not look up.
NO_LIMITS = frozenset({"cpu.shares", "cpu.weight", "pids.max"})
# The minimal memory limit of a cgroup that its shim may join for a moment.
MIN_SHIM_MEMORY = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroups:
    """The folders in which the agent creates cgroups, one for each controller; in version 2 they are the same."""

    version: int
    cpu: Path
    memory: Path
    pids: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupLimits:
    """The limits of a container; None is unlimited."""

    cpus: Decimal | None = None
    memory_bytes: int | None = None
    pids: int | None = None
    # Its weight when CPUs are contended.
    shares: int | None = None


def limits_of(container: Mapping[str, Any], *, pids: int | None = None) -> CgroupLimits:
    """Return the limits of one container."""
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    request = parse({**limits, **(resources.get("requests") or {})}.get("cpu", 0))
    return CgroupLimits(
        cpus=parse(limits["cpu"]) if "cpu" in limits else None,
        memory_bytes=int(parse(limits["memory"])) if "memory" in limits else None,
        pids=pids,
        shares=min(max(int(request * SHARES_PER_CPU), DEFAULT_SHARES), MAX_SHARES),
    )


def intent_of(cgroups: Cgroups, limits: CgroupLimits, *, name: str) -> dict[str, Any]:
    """Return the shim's intent for the cgroups of a container, which also account for one without limits."""
    settings = [(parent / name / file, value) for parent, file, value in _settings(cgroups, limits)]
    # Always create the memory cgroup: it is the only place that reports OOM kills.
    folders = dict.fromkeys((cgroups.memory / name, *(path.parent for path, _ in settings)))
    kills = "memory.oom_control" if cgroups.version == 1 else "memory.events"
    return {
        "folders": [str(folder) for folder in folders],
        "settings": [[str(path), value] for path, value in settings],
        "kills": str(cgroups.memory / name / kills),
        "procs": PROCS[cgroups.version],
        "homes": _homes(cgroups, limits, folders),
    }


def _homes(cgroups: Cgroups, limits: CgroupLimits, folders: Iterable[Path]) -> list[str]:
    """Return the cgroups to which the shim returns after it joined these; empty when it must not join them.

    Joining is only cheap in version 1, and in a cgroup with little memory the shim would be killed.
    """
    if cgroups.version != 1 or (limits.memory_bytes or MIN_SHIM_MEMORY) < MIN_SHIM_MEMORY:
        return []
    # The agent's own cgroup, which contains that of all containers.
    return [str(folder.parents[1]) for folder in folders]


def weight_of(shares: int) -> int:
    """Return shares as the weight of cgroups version 2."""
    return 1 + (shares - MIN_SHARES) * 9999 // (MAX_SHARES - MIN_SHARES)


def views_of(cgroups: Cgroups | None, intent: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    """Return the folders in which programs look up their limits, and where they look: (folder, place).

    Empty without a limit on CPU or memory, because each mount takes time at the start.
    """
    if cgroups is None or intent is None:
        return ()
    settings = (Path(path) for path, _ in intent["settings"])
    limited = {path.parent for path in settings if path.name not in NO_LIMITS}
    if not limited:
        return ()
    # Memory always: programs look up their usage there.
    folders = [path for path in map(Path, intent["folders"]) if path in limited or path.parent == cgroups.memory]
    tops = {Path(*path.parts[:CONTROLLER_DEPTH]) for path in folders} if cgroups.version == 1 else {ROOT}
    return tuple((str(folder), str(top)) for top in sorted(tops) for folder in folders if folder.is_relative_to(top))


def _settings(cgroups: Cgroups, limits: CgroupLimits) -> list[tuple[Path, str, str]]:
    settings: list[tuple[Path, str, str]] = []
    is_v1 = cgroups.version == 1
    if limits.cpus:
        quota = max(int(limits.cpus * PERIOD_MICROSECONDS), MIN_QUOTA)
        if is_v1:
            settings.append((cgroups.cpu, "cpu.cfs_period_us", str(PERIOD_MICROSECONDS)))
            settings.append((cgroups.cpu, "cpu.cfs_quota_us", str(quota)))
        else:
            settings.append((cgroups.cpu, "cpu.max", f"{quota} {PERIOD_MICROSECONDS}"))
    if limits.shares:
        shares = ("cpu.shares", str(limits.shares)) if is_v1 else ("cpu.weight", str(weight_of(limits.shares)))
        settings.append((cgroups.cpu, *shares))
    if limits.memory_bytes:
        limit = str(limits.memory_bytes)
        if is_v1:
            settings.append((cgroups.memory, "memory.limit_in_bytes", limit))
            settings.append((cgroups.memory, "memory.memsw.limit_in_bytes", limit))
        else:
            settings.append((cgroups.memory, "memory.max", limit))
            settings.append((cgroups.memory, "memory.swap.max", "0"))
            # As in Kubernetes: a container that lost a process is of no use.
            settings.append((cgroups.memory, "memory.oom.group", "1"))
    if limits.pids:
        settings.append((cgroups.pids, "pids.max", str(limits.pids)))
    return settings
