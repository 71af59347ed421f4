"""What keeps a container apart from the machine: the parts of /proc and /sys it may not touch, and its system calls."""

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

from paceline.apimachinery.builtin.qos import qos_class
from paceline.apimachinery.meta import Object, name_of, namespace_of, uid_of
from paceline.apimachinery.quantity import parse
from paceline.node.host_info import CannotStart, Host
from paceline.node.runtime import seccomp
from paceline.node.runtime.env import CONFIG_ERROR

# As container runtimes have it; an agent looks once which of them its machine has.
READ_ONLY = (
    *("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"),
    # Beyond runtimes: uid 0 writes to these without a capability.
    *("/proc/dynamic_debug", "/proc/pressure"),
)
# Of these bubblewrap sees to by itself, but only to what access(2) calls writable. The kernel says of /proc/sys that it
# is not, to root too, who can write to most files in it.
COVERED_BY_BUBBLEWRAP = ("/proc/bus", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
MASKED = (
    *("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug"),
    *("/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware"),
)
DEFAULT, UNCONFINED, LOCALHOST = "RuntimeDefault", "Unconfined", "Localhost"
UNMASKED = "Unmasked"
# Where no mount, working directory or termination message of a container may be: paths that lead to processes' files.
KERNEL_LINKS = ("/proc", "/dev/core", "/dev/fd", "/dev/stderr", "/dev/stdin", "/dev/stdout")
# Whom the kernel ends first when the machine is out of memory, as a kubelet has it; but for those of the
# class Guaranteed, which a kubelet puts below 0: only root can, and our own processes must stay below them.
GUARANTEED_SCORE, LEAST_BURSTABLE, MOST_BURSTABLE, BEST_EFFORT_SCORE = 2, 3, 999, 1000
# What root may do in every container. Not among them: making device nodes, which would open none in a sandbox, and raw
# sockets, by which a pod could pretend to be another on the bridge that all pods share.
USUAL = tuple(
    f"CAP_{name}"
    for name in (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
EVERYTHING = "ALL"
# What it takes to become another user.
BECOMING = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who a container runs as; nothing said means: whoever the agent is."""

    uid: int
    gid: int
    # Groups beside its own: those of its volumes, and others that were asked for.
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What of the default confinement a container has, and when the kernel ends it for want of memory."""

    has_filter: bool = True
    has_masks: bool = True
    oom_score: int = BEST_EFFORT_SCORE


CONFINED = Confinement()


def confinement_of(pod: Object, container: Object, host: Host) -> Confinement:
    """Return the confinement that a container's security context asks for; CannotStart when it cannot be had."""
    context = container.get("securityContext") or {}
    is_privileged = bool(context.get("privileged"))
    profile = context.get("seccompProfile") or (pod["spec"].get("securityContext") or {}).get("seccompProfile") or {}
    kind = str(profile.get("type") or DEFAULT)
    if kind == LOCALHOST and not is_privileged:
        said = f"seccompProfile.type Localhost ({profile.get('localhostProfile')}) is not offered here"
        raise CannotStart(
            CONFIG_ERROR, f"{said}; use RuntimeDefault, which is also what a container without a profile has"
        )
    return Confinement(
        has_filter=not is_privileged and kind != UNCONFINED,
        has_masks=not is_privileged and context.get("procMount") != UNMASKED,
        oom_score=oom_score_of(pod, container, host),
    )


def capabilities_of(container: Object) -> tuple[str, ...]:
    """Work out what root may do in a container: what runtimes give to every one, less and more as it says."""
    context = container.get("securityContext") or {}
    if context.get("privileged"):
        return (EVERYTHING,)
    wish = context.get("capabilities") or {}
    added, dropped = (tuple(map(_full_name, wish.get(word) or ())) for word in ("add", "drop"))
    given = (EVERYTHING,) if EVERYTHING in added else (() if EVERYTHING in dropped else USUAL)
    return tuple(dict.fromkeys(each for each in (*given, *added) if each not in dropped or each in added))


def _full_name(capability: str) -> str:
    name = str(capability).upper()
    return name if name == EVERYTHING or name.startswith("CAP_") else f"CAP_{name}"


def user_of(pod: Object, container: Object, host: Host) -> User | None:
    """Work out who a container runs as; CannotStart when the agent cannot become that user."""
    context: dict[str, Any] = {
        **(pod["spec"].get("securityContext") or {}),
        **(container.get("securityContext") or {}),
    }
    uid, gid, groups = context.get("runAsUser"), context.get("runAsGroup"), groups_of(pod)
    _refuse_root(pod, container, host, uid=uid if context.get("runAsNonRoot") else 1)
    if uid is None and gid is None and not (groups and host.is_root):
        return None
    wanted = User(
        uid=host.uid if uid is None else int(uid),
        gid=(0 if host.is_root else host.gid) if gid is None else int(gid),
        groups=groups if host.is_root else (),
    )
    if not host.is_root and wanted != User(uid=host.uid, gid=host.gid):
        said = f"runAsUser {wanted.uid} and runAsGroup {wanted.gid} need a node agent that runs as root"
        raise CannotStart("CreateContainerConfigError", f"{said}; this one runs as {host.uid}:{host.gid}")
    return wanted if host.is_root else None


def _refuse_root(pod: Object, container: Object, host: Host, *, uid: Any) -> None:
    """Refuse, in a kubelet's words, a container that must not be root and would be."""
    where = f'(pod: "{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})", container: {container["name"]})'
    if uid == 0:
        said = f"container's runAsUser breaks non-root policy {where}"
        raise CannotStart("CreateContainerConfigError", said)
    if uid is None and host.is_root:
        said = f"container has runAsNonRoot and image will run as root {where}"
        raise CannotStart("CreateContainerConfigError", said)


def groups_of(pod: Object) -> tuple[int, ...]:
    """Give the groups that all containers of a pod are in: that of its volumes first."""
    context = pod["spec"].get("securityContext") or {}
    first = () if context.get("fsGroup") is None else (int(context["fsGroup"]),)
    return tuple(dict.fromkeys((*first, *map(int, context.get("supplementalGroups") or ()))))


def oom_score_of(pod: Object, container: Object, host: Host) -> int:
    """Return the oom_score_adj of a container: by its pod's class, and the less the more memory it requests."""
    kind = qos_class(pod)
    if kind == "Guaranteed":
        return GUARANTEED_SCORE
    if kind == "BestEffort":
        return BEST_EFFORT_SCORE
    resources: dict[str, Any] = container.get("resources") or {}
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    request = parse(amounts["memory"]) if "memory" in amounts else Decimal(0)
    score = 1000 - int(1000 * request / max(host.memory_bytes, 1))
    return min(max(score, LEAST_BURSTABLE), MOST_BURSTABLE)


def masks(host: Host) -> Iterator[str]:
    """Spell what covers /proc and /sys, as options of bubblewrap."""
    for path in host.read_only_paths:
        yield from ("--ro-bind", path, path)
    for path in host.masked_files:
        yield from ("--dev-bind", "/dev/null", path)
    for path in host.masked_folders:
        yield from ("--tmpfs", path)


def filter_of(confinement: Confinement, capabilities: Iterable[str], host: Host) -> str:
    """Return the system call filter of a container, in hexadecimal digits; empty when there is none."""
    if not confinement.has_filter or not host.has_seccomp:
        return ""
    # Without root nobody has a capability, whatever is asked for.
    given = tuple(capabilities) if host.is_root else ()
    return seccomp.filter_for(dict(host.facts).get("architecture", ""), given).hex()


def path_in_sandbox(path: str, field: str) -> str:
    """Return a path of a container without `..`; CannotStart when it leads through links of the kernel.

    While bubblewrap makes a sandbox, the machine's root is still in reach: `..` and the links in /proc lead there.
    """
    if "\0" in path:
        raise CannotStart(CONFIG_ERROR, f"{field} {path!r} must not contain a NUL character")
    place = PurePosixPath("/" + posixpath.normpath(f"/{path}").lstrip("/"))
    if folder := next((each for each in KERNEL_LINKS if place.is_relative_to(each)), ""):
        raise CannotStart(CONFIG_ERROR, f"{field} {path!r} must not be {folder} or lie in it; choose another path")
    return str(place)


def private_in(shown: Iterable[str], host: Host) -> tuple[str, ...]:
    """Return the private folders that lie in one of the folders a container sees."""
    places = tuple(PurePosixPath(folder) for folder in shown)
    folders = (PurePosixPath(folder) for folder in host.private_folders)
    return tuple(str(folder) for folder in folders if any(folder.is_relative_to(place) for place in places))


def is_private(path: PurePosixPath, host: Host) -> bool:
    """Tell whether a path lies in a folder that no container may see."""
    return any(path.is_relative_to(folder) for folder in host.private_folders)
