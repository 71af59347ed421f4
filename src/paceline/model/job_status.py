"""The status of a job: T9k's fields and our own, as typed values and in wire form."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from paceline.apimachinery.timestamps import from_wire
from paceline.model.condition import Condition, ConditionedStatus, conditions_of
from paceline.model.gang import ReplicaId
from paceline.model.replica_record import ReplicaRecord
from paceline.model.wire_object import ALWAYS, MICRO, WireForm, WireObject, phase_or


class Phase(StrEnum):
    """The phase of a job."""

    PENDING = "Pending"
    RUNNING = "Running"
    PAUSED = "Paused"
    RESUMING = "Resuming"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @property
    def is_final(self) -> bool:
        """Whether a job in this phase has ended."""
        return self in (Phase.SUCCEEDED, Phase.FAILED)


class ConditionType(StrEnum):
    """The condition types of a job, as in T9k."""

    INITIALIZED = "Initialized"
    RUNNING = "Running"
    REPLICA_FAILURE = "ReplicaFailure"
    COMPLETED = "Completed"
    FAILED = "Failed"
    PAUSED = "Paused"
    # Kubernetes' condition type, which Kueue reads.
    SUSPENDED = "Suspended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(WireObject):
    """The pod that caused the job to fail, or the last one that failed."""

    pod: Annotated[str, ALWAYS] = ""
    exit_code: int | None = None
    reason: Annotated[str, ALWAYS] = ""
    message: Annotated[str, ALWAYS] = ""
    # The replica of the pod, and the container that determined its result.
    replica: str = ""
    container: str = ""
    # The last log lines of the container; None until they have been read, empty if there were none.
    last_lines: tuple[str, ...] | None = None


def _read_tasks(wire: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return the rows of replicas unchanged; fail if a required field is missing."""
    tasks = tuple(wire)
    for row in (row for task in tasks for row in task.get("replicas") or ()):
        _ = row["name"], [(entry["name"], entry["state"]) for part in _PARTS for entry in row.get(part) or ()]
    return tasks


_PARTS = ("containers", "stages")


def _read_ending(wire: Mapping[str, Any]) -> dict[str, str]:
    """Return the result of a job with unfinished uploads unchanged; fail if a required field is missing."""
    _ = Phase(wire["phase"]), wire["reason"], wire["message"], from_wire(wire["time"])
    return dict(wire)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus(ConditionedStatus):
    """The state of a job between two reconciliations. No state is kept only in memory."""

    condition_types: ClassVar[type[StrEnum]] = ConditionType

    phase: Annotated[Phase, phase_or(Phase.UNKNOWN)] = Phase.PENDING
    observed_generation: Annotated[int, ALWAYS] = 0
    # How often the whole gang was started again.
    attempt: Annotated[int, ALWAYS] = 0
    # Every replica of the job, also those that were scaled down: the members first, in their order.
    replicas: Annotated[tuple[ReplicaRecord, ...], WireForm(key="replicaRecords")] = ()
    # No pod is created before this time: the back-off after a failure.
    start_after: Annotated[datetime | None, MICRO] = None
    start_time: datetime | None = None
    # When all members were first running since the job was created or resumed.
    running_time: datetime | None = None
    completion_time: datetime | None = None
    # The last restart request that was fulfilled.
    restart_granted: str = ""
    # How often the job was restarted without using its budget (pause, new size, user request), and the duration of
    # its pauses, which do not count for the deadline.
    resumes: int = 0
    paused_seconds: int = 0
    # Why the cluster took pods away (`reason`, `message`), until the job runs again; and how often it did.
    disruption: Mapping[str, str] = field(default_factory=dict)
    disruptions: int = 0
    ports: Mapping[str, int] = field(default_factory=dict)
    conditions: Annotated[tuple[Condition, ...], conditions_of(ConditionType)] = ()
    waiting: str = ""
    failure: Failure | None = None
    # T9k's tables of replicas in wire form: rendered from records and pods for readers, never read by a decision.
    tasks: Annotated[tuple[Mapping[str, Any], ...], WireForm(read=_read_tasks)] = ()
    aggregate: Mapping[str, int] = field(default_factory=dict)
    # The size of an elastic job: running and desired replicas.
    elastic: Mapping[str, int] = field(default_factory=dict)
    # The resolved commit of the code.
    source: Mapping[str, str] = field(default_factory=dict)
    # Restarts of each auxiliary pod, and the result of the job while its output is still being uploaded.
    errands: Mapping[str, int] = field(default_factory=dict)
    ending: Annotated[Mapping[str, str], WireForm(read=_read_ending)] = field(default_factory=dict)
    # Written by another controller about the job's TensorBoard, and preserved.
    tensorboard: Mapping[str, Any] = field(default_factory=dict)

    @property
    def backoff_count(self) -> int:
        """How many restarts of all replicas count."""
        return sum(record.restarts for record in self.replicas)

    @property
    def role_restarts(self) -> dict[str, int]:
        """How many restarts count for each role that had any."""
        counted: dict[str, int] = {}
        for record in self.replicas:
            if record.restarts:
                counted[record.place.role] = counted.get(record.place.role, 0) + record.restarts
        return counted

    @property
    def scaled_down(self) -> tuple[ReplicaId, ...]:
        """The replicas that were scaled down and may have output that is not uploaded yet."""
        return tuple(sorted(record.place for record in self.replicas if record.has_output))

    def to_wire(self) -> dict[str, Any]:
        """Return the wire form, with the number of restarts."""
        # Not super(): a dataclass with slots is another class than the one that this method was defined in.
        return {**WireObject.to_wire(self), "backoffCount": self.backoff_count}
