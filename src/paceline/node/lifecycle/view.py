"""What one decision about a pod may look at, and what it may ask for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.apimachinery.pods import container_named
from paceline.effects import ProcessHandle
from paceline.node.probes.probes import Health


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """That a try was begun, by which shim and when. No identity: the record was damaged by a power cut."""

    identity: ProcessHandle | None
    at: datetime | None
    environment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a try ended."""

    exit_code: int
    signal: int | None = None
    reason: str
    message: str = ""
    started_at: datetime | None
    finished_at: datetime
    max_rss_kib: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One try of a container, as its folder tells: begun, held by a live shim, ended."""

    restarts: int
    started: Started | None = None
    ended: Ended | None = None
    is_held: bool = False
    # Since when it has been asked to stop.
    asked_at: datetime | None = None
    # Whether its first hook has run well; says nothing of a container that has none.
    is_greeted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a container could not be started when it was last tried to, and what would help."""

    reason: str
    message: str
    # Whether it keeps all containers of the pod from starting, as a volume does that cannot be made.
    is_of_pod: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything one decision may look at."""

    pod: Object
    # The latest try of each container that has one, and how the one before it ended.
    tries: Mapping[str, Try]
    before: Mapping[str, Ended] = field(default_factory=dict)
    problems: Mapping[str, Problem] = field(default_factory=dict)
    # Of the containers that have probes.
    health: Mapping[str, Health] = field(default_factory=dict)
    # Why the pod has to go, when it has outgrown what it was allowed.
    evicted: str = ""
    # When this agent told containers to stop, which is after their last hook.
    told: Mapping[str, datetime] = field(default_factory=dict)
    boot_id: str
    address: str
    host_address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One container to start, and which try of it this is."""

    container: str
    restarts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything one decision may ask for, in the order it is carried out. Containers go by name."""

    # Ends that no shim lived to record.
    record: tuple[tuple[str, Ended], ...] = ()
    kill: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    # When those that are asked, or have been, are killed.
    ends: Mapping[str, datetime] = field(default_factory=dict)
    start: tuple[Start, ...] = ()
    # The status to report; None leaves it as it is.
    status: Object | None = None
    # Whether nothing of the pod is left, so that its object can go.
    remove: bool = False
    wake_at: datetime | None = None


POST_START, PRE_STOP = "postStart", "preStop"


def hook_of(container: Mapping[str, Any], kind: str) -> tuple[str, Mapping[str, Any]] | None:
    """Read one hook of a container: how it is done, and what."""
    said = (container.get("lifecycle") or {}).get(kind) or {}
    return next(((name, what) for name, what in said.items() if what is not None), None)


def has_hook(pod: Object, name: str, kind: str) -> bool:
    """Tell whether a container of a pod has a hook."""
    container = container_named(pod, name)
    return container is not None and hook_of(container, kind) is not None


def post_start_done(seen: Seen, name: str) -> bool:
    """Tell whether a container has been through its first hook, if it has one; once ended it needs none."""
    each = seen.tries.get(name)
    is_past = each is not None and (each.is_greeted or each.ended is not None)
    return is_past or not has_hook(seen.pod, name, POST_START)


# The first restart comes at once, later ones after a pause that doubles.
PAUSE, LONGEST_PAUSE = timedelta(seconds=10), timedelta(minutes=5)
# A container that ran this long had a good start: its pauses begin anew.
STEADY = timedelta(minutes=10)


def policy_of(pod: Object) -> str:
    """Give the pod's restart policy."""
    return str(pod["spec"].get("restartPolicy") or "Always")


class Role(Enum):
    """What a container is for in its pod."""

    MAIN = 1
    INIT = 2
    SIDECAR = 3


def comes_again(pod: Object, ended: Ended, role: Role = Role.MAIN) -> bool:
    """Tell whether the pod's policy starts a container again that ended so."""
    policy = policy_of(pod)
    if role is Role.SIDECAR:
        return True
    if policy == "Never" or (role is Role.INIT and ended.exit_code == 0):
        return False
    return policy == "Always" or ended.exit_code != 0


def pause_after(each: Try) -> timedelta:
    """Say how long the next try waits after this one."""
    if each.restarts == 0 or each.ended is None:
        return timedelta()
    began = each.ended.started_at
    if began is not None and each.ended.finished_at - began >= STEADY:
        return timedelta()
    doubled: timedelta = PAUSE * 2 ** min(each.restarts - 1, 10)
    return min(doubled, LONGEST_PAUSE)
