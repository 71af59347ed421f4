"""The status of a job: T9k's fields and our own, as typed values and in wire form."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Self

from paceline.apimachinery.timestamps import from_wire, to_wire, to_wire_micro
from paceline.apimachinery.untrusted import counts, untrusted
from paceline.model.condition import Fact
from paceline.model.gang import ReplicaId
from paceline.model.replica_record import ReplicaRecord


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
class Condition(Fact):
    """A condition of a job."""

    condition_types: ClassVar[type[StrEnum]] = ConditionType
    no_reason: ClassVar[str] = "-"

    type: ConditionType


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The pod that caused the job to fail, or the last one that failed."""

    pod: str
    exit_code: int | None
    reason: str
    message: str = ""
    # The replica of the pod, and the container that determined its result.
    replica: str = ""
    container: str = ""
    # The last log lines of the container; None until they have been read, empty if there were none.
    last_lines: tuple[str, ...] | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the wire form without unknown fields."""
        optional: dict[str, Any] = {} if self.exit_code is None else {"exitCode": self.exit_code}
        if self.last_lines is not None:
            optional["lastLines"] = list(self.last_lines)
        location = {"replica": self.replica, "container": self.container}
        location_fields = {key: value for key, value in location.items() if value}
        return {"pod": self.pod, **location_fields, "reason": self.reason, "message": self.message, **optional}

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Return the decoded failure."""
        return cls(
            pod=str(wire.get("pod", "")),
            exit_code=wire.get("exitCode"),
            reason=str(wire.get("reason", "")),
            message=str(wire.get("message", "")),
            replica=str(wire.get("replica", "")),
            container=str(wire.get("container", "")),
            last_lines=tuple(wire["lastLines"]) if "lastLines" in wire else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """The state of a job between two reconciliations. No state is kept only in memory."""

    phase: Phase = Phase.PENDING
    observed_generation: int = 0
    # How often the whole gang was started again.
    attempt: int = 0
    # Every replica of the job, also those that were scaled down: the members first, in their order.
    replicas: tuple[ReplicaRecord, ...] = ()
    # No pod is created before this time: the back-off after a failure.
    start_after: datetime | None = None
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
    # Why the job was preempted, until it runs again.
    preempted: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    waiting: str = ""
    failure: Failure | None = None
    # T9k's tables of replicas in wire form: rendered from records and pods for readers, never read by a decision.
    tasks: tuple[Mapping[str, Any], ...] = ()
    aggregate: Mapping[str, int] = field(default_factory=dict)
    # The size of an elastic job: running and desired replicas.
    elastic: Mapping[str, int] = field(default_factory=dict)
    # The resolved commit of the code.
    source: Mapping[str, str] = field(default_factory=dict)
    # Restarts of each auxiliary pod, and the result of the job while its output is still being uploaded.
    errands: Mapping[str, int] = field(default_factory=dict)
    ending: Mapping[str, str] = field(default_factory=dict)
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

    def condition(self, kind: ConditionType) -> Condition | None:
        """Return the condition of a type, or None."""
        return next((condition for condition in self.conditions if condition.type is kind), None)

    def but(self, **changes: Any) -> Self:
        """Return a copy of the status with some fields changed."""
        return replace(self, **changes)

    def to_wire(self) -> dict[str, Any]:
        """Return the wire form; empty fields are omitted, so that a reader can test for their presence."""
        optional: dict[str, Any] = {
            "replicaRecords": [record.to_wire() for record in self.replicas],
            "startAfter": self.start_after and to_wire_micro(self.start_after),
            "startTime": self.start_time and to_wire(self.start_time),
            "runningTime": self.running_time and to_wire(self.running_time),
            "completionTime": self.completion_time and to_wire(self.completion_time),
            "restartGranted": self.restart_granted,
            "resumes": self.resumes,
            "pausedSeconds": self.paused_seconds,
            "preempted": self.preempted,
            "ports": dict(self.ports),
            "waiting": self.waiting,
            "failure": self.failure and self.failure.to_wire(),
            "tasks": [dict(task) for task in self.tasks],
            "aggregate": dict(self.aggregate),
            "tensorboard": dict(self.tensorboard),
            "elastic": dict(self.elastic),
            "source": dict(self.source),
            "errands": dict(self.errands),
            "ending": dict(self.ending),
        }
        return {
            "phase": self.phase.value,
            "observedGeneration": self.observed_generation,
            "attempt": self.attempt,
            "backoffCount": self.backoff_count,
            "conditions": [condition.to_wire() for condition in self.conditions],
            **{key: value for key, value in optional.items() if value},
        }

    @classmethod
    @untrusted
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Return the decoded status, or the initial one if there is none; raise Malformed if it is invalid."""
        phase = wire.get("phase") or Phase.PENDING
        failure = wire.get("failure")
        return cls(
            phase=Phase(phase) if phase in _PHASES else Phase.UNKNOWN,
            observed_generation=int(wire.get("observedGeneration") or 0),
            attempt=int(wire.get("attempt") or 0),
            replicas=tuple(ReplicaRecord.from_wire(record) for record in wire.get("replicaRecords") or ()),
            start_after=_moment(wire, "startAfter"),
            start_time=_moment(wire, "startTime"),
            running_time=_moment(wire, "runningTime"),
            completion_time=_moment(wire, "completionTime"),
            restart_granted=str(wire.get("restartGranted") or ""),
            resumes=int(wire.get("resumes") or 0),
            paused_seconds=int(wire.get("pausedSeconds") or 0),
            preempted=str(wire.get("preempted") or ""),
            ports=counts(wire.get("ports")),
            conditions=_conditions(wire.get("conditions") or ()),
            waiting=str(wire.get("waiting") or ""),
            failure=Failure.from_wire(failure) if failure else None,
            tasks=_tasks(wire.get("tasks") or ()),
            aggregate=counts(wire.get("aggregate")),
            tensorboard=dict(wire.get("tensorboard") or {}),
            elastic=dict(wire.get("elastic") or {}),
            source={str(name): str(text) for name, text in (wire.get("source") or {}).items()},
            errands=counts(wire.get("errands")),
            ending=_ending(wire.get("ending") or {}),
        )


def _moment(wire: Mapping[str, Any], key: str) -> datetime | None:
    return from_wire(wire[key]) if wire.get(key) else None


_PHASES = frozenset(phase.value for phase in Phase)
_KNOWN = frozenset(kind.value for kind in ConditionType)


def _tasks(wire: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return the rows of replicas unchanged; fail if a required field is missing."""
    tasks = tuple(wire)
    for row in (row for task in tasks for row in task.get("replicas") or ()):
        _ = row["name"], [(entry["name"], entry["state"]) for part in _PARTS for entry in row.get(part) or ()]
    return tasks


_PARTS = ("containers", "stages")


def _ending(wire: Mapping[str, Any]) -> dict[str, str]:
    """Return the result of a job with unfinished uploads unchanged; fail if a required field is missing."""
    if wire:
        _ = Phase(wire["phase"]), wire["reason"], wire["message"], from_wire(wire["time"])
    return dict(wire)


def _conditions(wire: Iterable[Mapping[str, Any]]) -> tuple[Condition, ...]:
    # Ignore the conditions of other controllers.
    return tuple(Condition.from_wire(condition) for condition in wire if condition.get("type") in _KNOWN)
