"""What the job controller has read about one job: the input of a decision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from paceline.model.gang import Gang, JobNaming, ReplicaId
from paceline.model.job_status import JobStatus
from paceline.model.replica_record import ContainerState
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
        """Whether a pod in this phase will never run again."""
        return self in (PodPhase.SUCCEEDED, PodPhase.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSnapshot:
    """The pod of one attempt of a replica."""

    name: str
    uid: str
    place: ReplicaId
    attempt: int
    phase: PodPhase = PodPhase.PENDING
    containers: tuple[ContainerState, ...] = ()
    is_deleting: bool = False
    # When the grace period of a pod that is being deleted ends.
    ends_at: datetime | None = None
    # Why the pod is pending or failed, as reported by the scheduler or the node.
    reason: str = ""
    message: str = ""
    # Our own init containers and sidecars, in the order of the pod.
    stages: tuple[ContainerState, ...] = ()
    # The message of the pod's DisruptionTarget condition; empty if the pod is not preempted.
    preemption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxiliaryPodSnapshot:
    """One attempt of a pod that works for the whole job."""

    name: str
    pod: str
    attempt: int
    phase: PodPhase = PodPhase.PENDING
    # Its termination message.
    message: str = ""
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogActivity:
    """When a container wrote its last log line, as of the last time its log was read."""

    read_at: datetime
    # Since when the result is the same.
    since: datetime
    # None if the log is empty.
    last: datetime | None = None
    # False if the log could not be read.
    is_known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSnapshot:
    """Everything the controller has read about one job."""

    naming: JobNaming
    gang: Gang
    pods: tuple[PodSnapshot, ...]
    status: JobStatus
    auxiliary_pods: tuple[AuxiliaryPodSnapshot, ...] = ()
    generation: int = 1
    is_paused: bool = False
    is_suspended: bool = False
    created_at: datetime | None = None
    # The text of the last restart request; every new text is a new request.
    restart_request: str = ""
    # The last log lines of failed pods by pod name, as far as they were read.
    last_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # When containers wrote their last log lines, as far as that was read.
    log_activity: Mapping[LogRef, LogActivity] = field(default_factory=dict)
