"""What the job controller has read about one job: the input of a decision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from paceline.model.gang import Gang, JobNaming, ReplicaId
from paceline.model.job_status import JobStatus
from paceline.model.replica_record import ContainerState
from paceline.plan.job.plan import LogRef
from paceline.plan.queueing.kueue import QueueState


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
class Disruption:
    """Why the cluster takes a pod away: the pod's condition DisruptionTarget, or a lost node."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSnapshot:
    """The node of a pod that should have ended."""

    # False if the controller may not read nodes.
    is_known: bool = True
    is_gone: bool = False
    is_ready: bool = True
    # Whether an administrator says that nothing runs there any more (taint node.kubernetes.io/out-of-service).
    is_out_of_service: bool = False
    # Since when it is not ready, as the API server wrote it.
    since: str = ""

    @property
    def is_lost(self) -> bool:
        """Whether the node cannot report the end of its pods."""
        return self.is_known and (self.is_gone or not self.is_ready)

    @property
    def is_certain(self) -> bool:
        """Whether the pods of a lost node have certainly ended."""
        return self.is_lost and (self.is_gone or self.is_out_of_service)


# How long after its grace period a pod may take to end before its node is checked.
OVERDUE = timedelta(seconds=20)


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
    disruption: Disruption | None = None
    # The node that it is assigned to.
    node: str = ""
    # Whether it was deleted by force, so that only finalizers keep it.
    is_forced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxiliaryPodSnapshot:
    """One attempt of a pod that works for the whole job."""

    name: str
    pod: str
    attempt: int
    phase: PodPhase = PodPhase.PENDING
    # Its termination message, or why it is pending; and the reason for that.
    message: str = ""
    reason: str = ""
    finished_at: datetime | None = None
    uid: str = ""
    # When the grace period of a pod that is being deleted ends, its node, and whether it was deleted by force.
    ends_at: datetime | None = None
    node: str = ""
    is_forced: bool = False


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
    # Those that are being deleted; the others do not include them.
    ending_auxiliary_pods: tuple[AuxiliaryPodSnapshot, ...] = ()
    # Why pods that are gone were taken away, by uid, as far as that was seen.
    departed: Mapping[str, Disruption] = field(default_factory=dict)
    # The nodes of overdue pods by name; None on a cluster whose nodes cannot be lost.
    nodes: Mapping[str, NodeSnapshot] | None = None
    # Whether no scheduler guarantees that all pods of the job start, or none.
    starts_singly: bool = False
    # Whether pods on a node that is merely not ready are waited for (annotation paceline.dev/node-lost).
    waits_for_nodes: bool = False
    generation: int = 1
    is_paused: bool = False
    # Whether the job was suspended, or its queue has not admitted it.
    is_suspended: bool = False
    # The state of the job in its queue, if it has one.
    queueing: QueueState | None = None
    created_at: datetime | None = None
    # The text of the last restart request; every new text is a new request.
    restart_request: str = ""
    # Who asked for the current spec and restart request; empty if unknown.
    asked_by: str = ""
    # The last log lines of failed pods by pod name, as far as they were read.
    last_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # When containers wrote their last log lines, as far as that was read.
    log_activity: Mapping[LogRef, LogActivity] = field(default_factory=dict)

    @property
    def by(self) -> str:
        """Return the end of a phrase such as `paused by admin`; empty if no person is recorded."""
        return f" by {self.asked_by}" if self.asked_by else ""

    @property
    def all_pods(self) -> tuple[PodSnapshot | AuxiliaryPodSnapshot, ...]:
        """Return the pods of members, and the auxiliary ones."""
        return (*self.pods, *self.auxiliary_pods, *self.ending_auxiliary_pods)

    @property
    def ending_pods(self) -> tuple[PodSnapshot | AuxiliaryPodSnapshot, ...]:
        """Return all pods that are being deleted and have not ended; those that only finalizers keep do not count."""
        return tuple(
            pod for pod in self.all_pods if pod.ends_at is not None and not pod.phase.is_final and not pod.is_forced
        )


def pod_name(pod: PodSnapshot | AuxiliaryPodSnapshot) -> str:
    """Return the name of a pod."""
    return pod.name if isinstance(pod, PodSnapshot) else pod.pod


def is_overdue(pod: PodSnapshot | AuxiliaryPodSnapshot, now: datetime) -> bool:
    """Return whether a pod that is being deleted should have ended long ago."""
    return pod.ends_at is not None and now >= pod.ends_at + OVERDUE
