"""Limits of a container as the kernel wants them written: which control groups, which files, which numbers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.quantity import parse

PERIOD_MICROSECONDS = 100_000
# The kernel takes no less than a millisecond of a period.
LEAST_QUOTA = 1_000
# Where programs find the control groups; each controller of the old version has a folder there.
ROOT = Path("/sys/fs/cgroup")
PLACE = len(ROOT.parts) + 1
# The file by which a process of one thread joins a group. That of the old version's `tasks` waits for nobody, while
# `cgroup.procs` stops all forks of the machine for a moment: up to 12 ms.
PROCS = {1: "tasks", 2: "cgroup.procs"}
# The weight of one CPU, and the smallest and largest weight that the kernel takes.
SHARES_PER_CPU, LEAST_SHARES, MOST_SHARES = 1024, 2, 262_144
# A quarter of a CPU for a container that requests less. A kubelet gives 2 shares, which would starve what we run beside
# trainings without a request of its own: clones, uploads, TensorBoards.
DEFAULT_SHARES = 256
# What says how containers are counted and shared out, and sets none of them a limit that programs look up.
NO_LIMITS = frozenset({"cpu.shares", "cpu.weight", "pids.max"})
# How much memory a group must have for its shim to be in it for a moment.
LEAST_SHARED = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroups:
    """Where this machine lets us make control groups: a folder for each controller, which may be one for all."""

    version: int
    cpu: Path
    memory: Path
    pids: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a container may use at most; None is as much as there is."""

    cpus: Decimal | None = None
    memory_bytes: int | None = None
    pids: int | None = None
    # Its share of the CPUs when others want them too.
    shares: int | None = None


def limits_of(container: Mapping[str, Any], *, pids: int | None = None) -> Limits:
    """Read the limits of one container."""
    resources = container.get("resources") or {}
    said = resources.get("limits") or {}
    request = parse({**said, **(resources.get("requests") or {})}.get("cpu", 0))
    return Limits(
        cpus=parse(said["cpu"]) if "cpu" in said else None,
        memory_bytes=int(parse(said["memory"])) if "memory" in said else None,
        pids=pids,
        shares=min(max(int(request * SHARES_PER_CPU), DEFAULT_SHARES), MOST_SHARES),
    )


def intent_of(cgroups: Cgroups, limits: Limits, *, pod: Object, container: str, restarts: int) -> dict[str, Any]:
    """Write what the shim needs to hold a container to its limits, and to count what it uses where it has none."""
    name = f"{uid_of(pod)}.{container}.{restarts}"
    settings = [(parent / name / file, value) for parent, file, value in _settings(cgroups, limits)]
    # Memory always: who is ended for want of it is told by its group only.
    used = dict.fromkeys((cgroups.memory / name, *(path.parent for path, _ in settings)))
    kills = "memory.oom_control" if cgroups.version == 1 else "memory.events"
    return {
        "folders": [str(folder) for folder in used],
        "settings": [[str(path), value] for path, value in settings],
        "kills": str(cgroups.memory / name / kills),
        "procs": PROCS[cgroups.version],
        "homes": _homes(cgroups, limits, used),
    }


def _homes(cgroups: Cgroups, limits: Limits, folders: Iterable[Path]) -> list[str]:
    """Give the groups to which the shim goes back after it was in these; none when it must not be in them at all.

    Coming and going is for free in the old version only, and a shim in a group that is full at once would be ended.
    """
    if cgroups.version != 1 or (limits.memory_bytes or LEAST_SHARED) < LEAST_SHARED:
        return []
    # The agent's own group; that of all containers lies in it.
    return [str(folder.parents[1]) for folder in folders]


def is_limit(path: Path) -> bool:
    """Tell whether a setting is a limit that programs look up."""
    return path.name not in NO_LIMITS


def weight_of(shares: int) -> int:
    """Return shares as the new version of control groups counts them."""
    return 1 + (shares - LEAST_SHARES) * 9999 // (MOST_SHARES - LEAST_SHARES)


def views_of(cgroups: Cgroups | None, intent: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    """Give the folders in which programs look up their own limits, and where they look: (folder, place).

    Without a limit on CPU or memory there is nothing to look up, and each mount costs a start some time.
    """
    if cgroups is None or intent is None:
        return ()
    limited = {path.parent for path, _ in ((Path(path), value) for path, value in intent["settings"]) if is_limit(path)}
    if not limited:
        return ()
    # Memory too: what a container uses is looked up there.
    folders = [each for each in map(Path, intent["folders"]) if each in limited or each.parent == cgroups.memory]
    tops = {Path(*each.parts[:PLACE]) for each in folders} if cgroups.version == 1 else {ROOT}
    return tuple((str(folder), str(top)) for top in sorted(tops) for folder in folders if folder.is_relative_to(top))


def _settings(cgroups: Cgroups, limits: Limits) -> list[tuple[Path, str, str]]:
    found: list[tuple[Path, str, str]] = []
    is_old = cgroups.version == 1
    if limits.cpus:
        quota = max(int(limits.cpus * PERIOD_MICROSECONDS), LEAST_QUOTA)
        if is_old:
            found.append((cgroups.cpu, "cpu.cfs_period_us", str(PERIOD_MICROSECONDS)))
            found.append((cgroups.cpu, "cpu.cfs_quota_us", str(quota)))
        else:
            found.append((cgroups.cpu, "cpu.max", f"{quota} {PERIOD_MICROSECONDS}"))
    if limits.shares:
        shares = ("cpu.shares", str(limits.shares)) if is_old else ("cpu.weight", str(weight_of(limits.shares)))
        found.append((cgroups.cpu, *shares))
    if limits.memory_bytes:
        most = str(limits.memory_bytes)
        if is_old:
            found.append((cgroups.memory, "memory.limit_in_bytes", most))
            found.append((cgroups.memory, "memory.memsw.limit_in_bytes", most))
        else:
            found.append((cgroups.memory, "memory.max", most))
            found.append((cgroups.memory, "memory.swap.max", "0"))
            # As Kubernetes does: what is left of a container that lost a process is of no use.
            found.append((cgroups.memory, "memory.oom.group", "1"))
    if limits.pids:
        found.append((cgroups.pids, "pids.max", str(limits.pids)))
    return found
