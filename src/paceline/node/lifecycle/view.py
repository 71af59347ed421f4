"""The view of a pod that one decision reads, the plan it returns, and the restart policy and hooks of containers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.apimachinery.pods import container_named
from paceline.effects import ProcessHandle
from paceline.node.probes.probes import Health

POST_START, PRE_STOP = "postStart", "preStop"
# The first restart is immediate; the delay of later ones doubles.
BACK_OFF, MAX_BACK_OFF = timedelta(seconds=10), timedelta(minutes=5)
# A container that ran this long resets its back-off.
BACK_OFF_RESET = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecord:
    """Which shim started an attempt, and when. `identity` is None when a power cut damaged the record."""

    identity: ProcessHandle | None
    at: datetime | None
    environment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitRecord:
    """How an attempt ended."""

    exit_code: int
    signal: int | None = None
    reason: str
    message: str = ""
    started_at: datetime | None
    finished_at: datetime
    max_rss_kib: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerAttempt:
    """One attempt to run a container, read from its folder."""

    restarts: int
    started: StartRecord | None = None
    ended: ExitRecord | None = None
    # Whether a live shim holds the folder's lock.
    has_shim: bool = False
    stop_requested_at: datetime | None = None
    # Whether the postStart hook succeeded; meaningless for a container without one.
    is_post_start_done: bool = False

    @property
    def is_running(self) -> bool:
        """Whether a shim supervises the attempt and has not recorded its end."""
        return self.has_shim and self.ended is None

    @property
    def shim(self) -> ProcessHandle | None:
        """The shim that started the attempt, if its record names one."""
        return self.started.identity if self.started else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartProblem:
    """Why a container could not be started at the last try, and what would help."""

    reason: str
    message: str
    # Whether it blocks all containers of the pod, as a volume that cannot be set up does.
    is_of_pod: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """Everything one decision may read."""

    pod: Object
    # The latest attempt of every container that has one, and how the previous one ended.
    attempts: Mapping[str, ContainerAttempt]
    previous: Mapping[str, ExitRecord] = field(default_factory=dict)
    problems: Mapping[str, StartProblem] = field(default_factory=dict)
    # Only of containers with probes.
    health: Mapping[str, Health] = field(default_factory=dict)
    # Why the pod is evicted; empty when it is not.
    eviction: str = ""
    # When this agent sent containers their stop signal, which is after the preStop hook.
    signalled_at: Mapping[str, datetime] = field(default_factory=dict)
    boot_id: str
    address: str
    host_address: str

    @property
    def running(self) -> dict[str, ContainerAttempt]:
        """The attempts that run, by container."""
        return {name: attempt for name, attempt in self.attempts.items() if attempt.is_running}

    def is_post_start_done(self, name: str) -> bool:
        """Return whether no postStart hook has to run any more: it ran, there is none, or the container ended."""
        attempt = self.attempts.get(name)
        is_past = attempt is not None and (attempt.is_post_start_done or attempt.ended is not None)
        return is_past or not has_hook(self.pod, name, POST_START)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStart:
    """One container to start, and its restart count."""

    container: str
    restarts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlan:
    """Everything one decision may ask for, in the order in which it is carried out. Containers are named."""

    # Exit records that no shim lived to write.
    record: tuple[tuple[str, ExitRecord], ...] = ()
    kill: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    # When containers that were asked to stop are killed.
    kill_at: Mapping[str, datetime] = field(default_factory=dict)
    start: tuple[ContainerStart, ...] = ()
    # The status to report; None leaves it unchanged.
    status: Object | None = None
    # Whether nothing of the pod runs any more, so that its object can be deleted.
    remove: bool = False
    wake_at: datetime | None = None


class Role(Enum):
    """The role of a container in its pod."""

    MAIN = 1
    INIT = 2
    SIDECAR = 3


def field_path(pod: Object, name: str) -> str:
    """Return the field path of a container, as events name it."""
    is_init = any(container["name"] == name for container in pod["spec"].get("initContainers") or ())
    return f"spec.{'initContainers' if is_init else 'containers'}{{{name}}}"


def hook_of(container: Mapping[str, Any], kind: str) -> tuple[str, Mapping[str, Any]] | None:
    """Return the action of a container's hook and its settings; None without a hook of this kind."""
    handler = (container.get("lifecycle") or {}).get(kind) or {}
    return next(((action, settings) for action, settings in handler.items() if settings is not None), None)


def has_hook(pod: Object, name: str, kind: str) -> bool:
    """Return whether a container of a pod has a hook of this kind."""
    container = container_named(pod, name)
    return container is not None and hook_of(container, kind) is not None


def policy_of(pod: Object) -> str:
    """Return the pod's restart policy."""
    return str(pod["spec"].get("restartPolicy") or "Always")


def should_restart(pod: Object, ended: ExitRecord, role: Role = Role.MAIN) -> bool:
    """Return whether the restart policy restarts a container that ended like this."""
    policy = policy_of(pod)
    if role is Role.SIDECAR:
        return True
    if policy == "Never" or (role is Role.INIT and ended.exit_code == 0):
        return False
    return policy == "Always" or ended.exit_code != 0


def back_off_after(attempt: ContainerAttempt) -> timedelta:
    """Return the delay before the next attempt, computed from the record and so the same after a restart."""
    if attempt.restarts == 0 or attempt.ended is None:
        return timedelta()
    began = attempt.ended.started_at
    if began is not None and attempt.ended.finished_at - began >= BACK_OFF_RESET:
        return timedelta()
    doubled: timedelta = BACK_OFF * 2 ** min(attempt.restarts - 1, 10)
    return min(doubled, MAX_BACK_OFF)
