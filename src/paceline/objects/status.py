"""The status of a job: T9k's tree and what T9k leaves out, as typed values and as the wire form."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Self

from paceline.objects.fact import Fact
from paceline.objects.foreign import counts, foreign
from paceline.objects.gang import Place
from paceline.objects.times import from_wire, to_wire, to_wire_micro


class Phase(StrEnum):
    """Where a job is."""

    PENDING = "Pending"
    RUNNING = "Running"
    PAUSED = "Paused"
    RESUMING = "Resuming"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @property
    def is_final(self) -> bool:
        """Tell whether a job in this phase is over for good."""
        return self in (Phase.SUCCEEDED, Phase.FAILED)


class ReplicaPhase(StrEnum):
    """Where one try of a member is: the phases of its pod, and the times before and after it."""

    CREATING = "Creating"
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"
    DELETED = "Deleted"

    @property
    def is_final(self) -> bool:
        """Tell whether a try in this phase has ended by itself."""
        return self in (ReplicaPhase.SUCCEEDED, ReplicaPhase.FAILED)


class ConditionType(StrEnum):
    """The conditions T9k shows on a job."""

    INITIALIZED = "Initialized"
    RUNNING = "Running"
    REPLICA_FAILURE = "ReplicaFailure"
    COMPLETED = "Completed"
    FAILED = "Failed"
    PAUSED = "Paused"
    # Kubernetes' own, which Kueue reads.
    SUSPENDED = "Suspended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition(Fact):
    """One fact about a job, with the moment it last changed."""

    known: ClassVar[type[StrEnum]] = ConditionType
    no_reason: ClassVar[str] = "-"

    type: ConditionType


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The pod that brought the job down, or the last that failed: what a person looks for first."""

    pod: str
    exit_code: int | None
    reason: str
    message: str = ""
    # Which replica the pod was a try of, and the container that decided over it.
    replica: str = ""
    container: str = ""
    # What the container wrote last; None while nobody has looked, empty when there was nothing to be had.
    last_lines: tuple[str, ...] | None = None

    def to_wire(self) -> dict[str, Any]:
        """Write the failure; what nobody knows is left out."""
        known: dict[str, Any] = {} if self.exit_code is None else {"exitCode": self.exit_code}
        if self.last_lines is not None:
            known["lastLines"] = list(self.last_lines)
        where = {"replica": self.replica, "container": self.container}
        told = {key: value for key, value in where.items() if value}
        return {"pod": self.pod, **told, "reason": self.reason, "message": self.message, **known}

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Read a failure back."""
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
    """Everything a job remembers between two passes. Nothing that matters lives only in memory."""

    phase: Phase = Phase.PENDING
    observed_generation: int = 0
    # Tries of the whole gang, counted from 0, and further tries of single places.
    attempt: int = 0
    member_attempts: Mapping[str, int] = field(default_factory=dict)
    # Numbers of tries that a place leaves out: it was given up when the job shrank, went without a restart, or others
    # had more tries than it before all began again together. Whoever comes back there has a new name.
    releases: Mapping[str, int] = field(default_factory=dict)
    # Places that were left when the job shrank, whose output is not known to be copied.
    left: tuple[Place, ...] = ()
    backoff_count: int = 0
    role_restarts: Mapping[str, int] = field(default_factory=dict)
    # Nothing is made before this moment: the pause after a failure.
    start_after: datetime | None = None
    start_time: datetime | None = None
    # When all members ran for the first time since the job was made, or came back.
    running_time: datetime | None = None
    completion_time: datetime | None = None
    # Places whose last try was killed for memory, each with the limit it had.
    memory_kills: Mapping[str, str] = field(default_factory=dict)
    # The last wish for a restart that was granted.
    restart_granted: str = ""
    # How often the job came back (from a pause, in another size, because somebody asked), and how long the pauses
    # were: they stop the deadline's clock.
    resumes: int = 0
    paused_seconds: int = 0
    # Why the job gave its room to somebody more important, until it runs again.
    preempted: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    waiting: str = ""
    failure: Failure | None = None
    # `tasks` and `aggregate` are made anew from the pods in every pass, in wire form.
    tasks: tuple[Mapping[str, Any], ...] = ()
    aggregate: Mapping[str, int] = field(default_factory=dict)
    # The size of an elastic job: replicas that run, and replicas that are wanted.
    elastic: Mapping[str, int] = field(default_factory=dict)
    # The commit that all members have the code of.
    source: Mapping[str, str] = field(default_factory=dict)
    # How often each errand was tried again, and how the job ended while its output is still being copied.
    errands: Mapping[str, int] = field(default_factory=dict)
    ending: Mapping[str, str] = field(default_factory=dict)
    # What another controller says of the job's TensorBoard; kept as it is.
    tensorboard: Mapping[str, Any] = field(default_factory=dict)

    def condition(self, kind: ConditionType) -> Condition | None:
        """Find a condition by its type."""
        return next((each for each in self.conditions if each.type is kind), None)

    def but(self, **changes: Any) -> Self:
        """Give the same status with some fields changed."""
        return replace(self, **changes)

    def to_wire(self) -> dict[str, Any]:
        """Write the status; what is empty is left out, so that a reader may ask whether it is there."""
        optional: dict[str, Any] = {
            "memberAttempts": dict(self.member_attempts),
            "releases": dict(self.releases),
            "left": [str(place) for place in self.left],
            "roleRestarts": dict(self.role_restarts),
            "startAfter": self.start_after and to_wire_micro(self.start_after),
            "startTime": self.start_time and to_wire(self.start_time),
            "runningTime": self.running_time and to_wire(self.running_time),
            "completionTime": self.completion_time and to_wire(self.completion_time),
            "memoryKills": dict(self.memory_kills),
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
            "conditions": [each.to_wire() for each in self.conditions],
            **{key: value for key, value in optional.items() if value},
        }

    @classmethod
    @foreign
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Read a status back; a job that has none yet has the first one there is. Malformed when nobody can."""
        phase = wire.get("phase") or Phase.PENDING
        failure = wire.get("failure")
        return cls(
            phase=Phase(phase) if phase in _PHASES else Phase.UNKNOWN,
            observed_generation=int(wire.get("observedGeneration") or 0),
            attempt=int(wire.get("attempt") or 0),
            member_attempts=counts(wire.get("memberAttempts")),
            backoff_count=int(wire.get("backoffCount") or 0),
            releases=counts(wire.get("releases")),
            left=tuple(Place.named(name) for name in wire.get("left") or ()),
            role_restarts=counts(wire.get("roleRestarts")),
            start_after=_moment(wire, "startAfter"),
            start_time=_moment(wire, "startTime"),
            running_time=_moment(wire, "runningTime"),
            completion_time=_moment(wire, "completionTime"),
            memory_kills=dict(wire.get("memoryKills") or {}),
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
    """Give rows of replicas as they are, once it is clear that they are such."""
    tasks = tuple(wire)
    for row in (row for task in tasks for row in task.get("replicas") or ()):
        _ = row["name"], [(each["name"], each["state"]) for part in _PARTS for each in row.get(part) or ()]
    return tasks


_PARTS = ("containers", "stages")


def _ending(wire: Mapping[str, Any]) -> dict[str, str]:
    """Give how a job ended whose results are not safe yet, once it is clear that it says so."""
    if wire:
        _ = Phase(wire["phase"]), wire["reason"], wire["message"], from_wire(wire["time"])
    return dict(wire)


def _conditions(wire: Iterable[Mapping[str, Any]]) -> tuple[Condition, ...]:
    # Conditions of other controllers are theirs to keep.
    return tuple(Condition.from_wire(each) for each in wire if each.get("type") in _KNOWN)
