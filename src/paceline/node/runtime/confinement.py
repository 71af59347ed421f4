"""The security context of a container: its user and capabilities, masked paths, system call filter and OOM score."""

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

from paceline.apimachinery.builtin.scheduling import qos_class
from paceline.apimachinery.meta import Object, name_of, namespace_of, uid_of
from paceline.apimachinery.quantity import parse
from paceline.node.host_info import CannotStart, Host, User
from paceline.node.runtime import seccomp
from paceline.node.runtime.env import CONFIG_ERROR

# As in container runtimes; an agent checks once which of them its machine has.
READ_ONLY = (
    *("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"),
    # Not in runtimes: uid 0 may write to these without a capability.
    *("/proc/dynamic_debug", "/proc/pressure"),
)
# bubblewrap covers these itself, but only if access(2) reports them as writable. For /proc/sys the kernel denies that,
# although root can write to most of its files.
COVERED_BY_BUBBLEWRAP = ("/proc/bus", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
MASKED = (
    *("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug"),
    *("/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware"),
)
DEFAULT, UNCONFINED, LOCALHOST = "RuntimeDefault", "Unconfined", "Localhost"
UNMASKED = "Unmasked"
# Paths to files of processes, where no mount, working directory or termination message of a container may be.
KERNEL_LINKS = ("/proc", "/dev/core", "/dev/fd", "/dev/stderr", "/dev/stdin", "/dev/stdout")
# oom_score_adj as a kubelet sets it, except for Guaranteed pods, which a kubelet sets below 0: only root may, and our
# own processes must stay below them.
GUARANTEED_SCORE, MIN_BURSTABLE, MAX_BURSTABLE, BEST_EFFORT_SCORE = 2, 3, 999, 1000
# Capabilities of root in every container. Unlike in runtimes without MKNOD, as device nodes do not work in a sandbox,
# and without NET_RAW, which lets a pod impersonate another on their bridge.
DEFAULT_CAPABILITIES = tuple(
    f"CAP_{name}"
    for name in (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
ALL = "ALL"
# What it takes to become another user.
SET_USER = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Which parts of the default confinement a container has, and its oom_score_adj."""

    has_filter: bool = True
    has_masks: bool = True
    oom_score: int = BEST_EFFORT_SCORE


CONFINED = Confinement()


def confinement_of(pod: Object, container: Object, host: Host) -> Confinement:
    """Return the confinement of a container's security context; CannotStart when it is not supported."""
    context = container.get("securityContext") or {}
    is_privileged = bool(context.get("privileged"))
    profile = context.get("seccompProfile") or (pod["spec"].get("securityContext") or {}).get("seccompProfile") or {}
    kind = str(profile.get("type") or DEFAULT)
    if kind == LOCALHOST and not is_privileged:
        problem = f"seccompProfile.type Localhost ({profile.get('localhostProfile')}) is not supported"
        raise CannotStart(CONFIG_ERROR, f"{problem}; use RuntimeDefault, which is also the default")
    return Confinement(
        has_filter=not is_privileged and kind != UNCONFINED,
        has_masks=not is_privileged and context.get("procMount") != UNMASKED,
        oom_score=oom_score_of(pod, container, host),
    )


def capabilities_of(container: Object) -> tuple[str, ...]:
    """Return the capabilities of root in a container: the default ones, less those dropped, plus those added."""
    context = container.get("securityContext") or {}
    if context.get("privileged"):
        return (ALL,)
    changes = context.get("capabilities") or {}
    added, dropped = (tuple(map(_full_name, changes.get(field) or ())) for field in ("add", "drop"))
    defaults = (ALL,) if ALL in added else (() if ALL in dropped else DEFAULT_CAPABILITIES)
    return tuple(dict.fromkeys(name for name in (*defaults, *added) if name not in dropped or name in added))


def _full_name(capability: str) -> str:
    name = str(capability).upper()
    return name if name == ALL or name.startswith("CAP_") else f"CAP_{name}"


def user_of(pod: Object, container: Object, host: Host) -> User | None:
    """Return the user of a container; None for the agent's own. CannotStart when the agent cannot become that user."""
    context: dict[str, Any] = {
        **(pod["spec"].get("securityContext") or {}),
        **(container.get("securityContext") or {}),
    }
    uid, gid, groups = context.get("runAsUser"), context.get("runAsGroup"), groups_of(pod)
    _refuse_root(pod, container, host, uid=uid if context.get("runAsNonRoot") else 1)
    if uid is None and gid is None and not (groups and host.is_root):
        return None
    user = User(
        uid=host.uid if uid is None else int(uid),
        gid=(0 if host.is_root else host.gid) if gid is None else int(gid),
        groups=groups if host.is_root else (),
    )
    if not host.is_root and user != User(uid=host.uid, gid=host.gid):
        problem = f"runAsUser {user.uid} and runAsGroup {user.gid} need a node agent that runs as root"
        raise CannotStart(CONFIG_ERROR, f"{problem}; this one runs as {host.uid}:{host.gid}")
    return user if host.is_root else None


def _refuse_root(pod: Object, container: Object, host: Host, *, uid: Any) -> None:
    """Refuse a container that must not run as root and would, with a kubelet's messages."""
    where = f'(pod: "{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})", container: {container["name"]})'
    if uid == 0:
        raise CannotStart(CONFIG_ERROR, f"container's runAsUser breaks non-root policy {where}")
    if uid is None and host.is_root:
        raise CannotStart(CONFIG_ERROR, f"container has runAsNonRoot and image will run as root {where}")


def groups_of(pod: Object) -> tuple[int, ...]:
    """Return the supplementary groups of a pod's containers, fsGroup first."""
    context = pod["spec"].get("securityContext") or {}
    first = () if context.get("fsGroup") is None else (int(context["fsGroup"]),)
    return tuple(dict.fromkeys((*first, *map(int, context.get("supplementalGroups") or ()))))


def oom_score_of(pod: Object, container: Object, host: Host) -> int:
    """Return the oom_score_adj of a container: by its pod's QoS class, and lower the more memory it requests."""
    kind = qos_class(pod)
    if kind == "Guaranteed":
        return GUARANTEED_SCORE
    if kind == "BestEffort":
        return BEST_EFFORT_SCORE
    resources: dict[str, Any] = container.get("resources") or {}
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    request = parse(amounts["memory"]) if "memory" in amounts else Decimal(0)
    score = 1000 - int(1000 * request / max(host.memory_bytes, 1))
    return min(max(score, MIN_BURSTABLE), MAX_BURSTABLE)


def masks(host: Host, folder: str) -> Iterator[str]:
    """Yield the options of bubblewrap that cover paths in a folder, /proc or /sys."""
    for path in _inside(host.read_only_paths, folder):
        yield from ("--ro-bind", path, path)
    for path in _inside(host.masked_files, folder):
        yield from ("--dev-bind", "/dev/null", path)
    for path in _inside(host.masked_folders, folder):
        yield from ("--tmpfs", path)


def _inside(paths: Iterable[str], folder: str) -> tuple[str, ...]:
    return tuple(path for path in paths if path.startswith(f"{folder}/"))


def filter_of(confinement: Confinement, capabilities: Iterable[str], host: Host) -> str:
    """Return the system call filter of a container, in hexadecimal digits; empty when there is none."""
    if not confinement.has_filter or not host.has_seccomp:
        return ""
    # Without root a container has no capabilities.
    effective = tuple(capabilities) if host.is_root else ()
    return seccomp.filter_for(dict(host.facts).get("architecture", ""), effective).hex()


def path_in_sandbox(path: str, field: str) -> str:
    """Return a path of a container without `..`; CannotStart when it is in a folder of kernel links.

    While bubblewrap sets up a sandbox, `..` and the links in /proc still lead to the host's root.
    """
    if "\0" in path:
        raise CannotStart(CONFIG_ERROR, f"{field} {path!r} must not contain a NUL character")
    place = PurePosixPath("/" + posixpath.normpath(f"/{path}").lstrip("/"))
    if folder := next((link for link in KERNEL_LINKS if place.is_relative_to(link)), ""):
        raise CannotStart(CONFIG_ERROR, f"{field} {path!r} must not be {folder} or inside of it; choose another path")
    return str(place)


def private_in(shown: Iterable[str], host: Host) -> tuple[str, ...]:
    """Return the private folders inside of the folders that a container sees."""
    places = tuple(PurePosixPath(folder) for folder in shown)
    folders = (PurePosixPath(folder) for folder in host.private_folders)
    return tuple(str(folder) for folder in folders if any(folder.is_relative_to(place) for place in places))


def is_private(path: PurePosixPath, host: Host) -> bool:
    """Return whether a path is in a folder that no container may see."""
    return any(path.is_relative_to(folder) for folder in host.private_folders)
