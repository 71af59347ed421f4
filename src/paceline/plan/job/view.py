"""What one decision may look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from paceline.model.gang import Gang, JobNaming, ReplicaId
from paceline.model.job_status import JobStatus
from paceline.plan.job.plan import LogRef


class PodPhase(StrEnum):
    """The phases of a pod, as Kubernetes names them."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @property
    def is_final(self) -> bool:
        """Return whether a pod in this phase will never run again."""
        return self in (PodPhase.SUCCEEDED, PodPhase.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSeen:
    """One container of a pod, as its status tells it."""

    name: str
    # Waiting, Running, Terminated or Unknown.
    state: str
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSeen:
    """One try to run a member."""

    name: str
    uid: str
    place: ReplicaId
    attempt: int
    phase: PodPhase = PodPhase.PENDING
    containers: tuple[ContainerSeen, ...] = ()
    is_deleting: bool = False
    # When one that is being deleted has had its grace period.
    ends_at: datetime | None = None
    # Why the pod waits or failed, as scheduler or node say it.
    reason: str = ""
    message: str = ""
    # What runs before and beside the author's containers, in its order.
    stages: tuple[ContainerSeen, ...] = ()
    # Why it gives way to somebody more important, if it does.
    gives_way: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrandSeen:
    """One try of a pod that does something for the whole job."""

    name: str
    pod: str
    attempt: int
    phase: PodPhase = PodPhase.PENDING
    # What it said when it ended.
    message: str = ""
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogActivity:
    """What a container's log said when it was last asked when its last line was written."""

    asked_at: datetime
    # Since when the answer is the same.
    since: datetime
    # None when nothing was ever written.
    last: datetime | None = None
    # Whether there was an answer at all.
    is_known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """Everything one decision may look at."""

    site: JobNaming
    gang: Gang
    pods: tuple[PodSeen, ...]
    status: JobStatus
    errands: tuple[ErrandSeen, ...] = ()
    generation: int = 1
    is_paused: bool = False
    is_suspended: bool = False
    created_at: datetime | None = None
    # The last wish for a restart, in the words of whoever asked; each new text is a new wish.
    restart_wish: str = ""
    # What failed pods wrote last, as far as it has been read: by the name of the pod.
    last_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # When containers wrote their last lines, as far as somebody has asked.
    heard: Mapping[LogRef, LogActivity] = field(default_factory=dict)
