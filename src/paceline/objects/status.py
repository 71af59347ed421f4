"""The status of a job: T9k's tree, plus what T9k leaves out, as typed values and as the wire form."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from paceline.objects.times import from_wire, to_wire


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


class ConditionType(StrEnum):
    """The conditions T9k shows on a job."""

    INITIALIZED = "Initialized"
    RUNNING = "Running"
    REPLICA_FAILURE = "ReplicaFailure"
    COMPLETED = "Completed"
    FAILED = "Failed"
    PAUSED = "Paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One fact about a job, with the moment it last changed."""

    type: ConditionType
    status: bool
    reason: str
    message: str = ""
    since: datetime

    def to_wire(self) -> dict[str, Any]:
        """Write the condition as Kubernetes shows it."""
        return {
            "type": self.type.value,
            "status": "True" if self.status else "False",
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": to_wire(self.since),
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Read a condition back."""
        return cls(
            type=ConditionType(wire["type"]),
            status=wire.get("status") == "True",
            reason=str(wire.get("reason", "-")),
            message=str(wire.get("message", "")),
            since=from_wire(wire["lastTransitionTime"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The pod that brought the job down, or the last one that failed: what a person looks for first."""

    pod: str
    exit_code: int | None
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """Everything a job remembers between two passes. Nothing that matters lives only in memory."""

    phase: Phase = Phase.PENDING
    observed_generation: int = 0
    # Tries of the whole gang, counted from 0, and further tries of single places.
    attempt: int = 0
    member_attempts: Mapping[str, int] = field(default_factory=dict)
    backoff_count: int = 0
    role_restarts: Mapping[str, int] = field(default_factory=dict)
    # Nothing is made before this moment: the pause after a failure.
    start_after: datetime | None = None
    start_time: datetime | None = None
    completion_time: datetime | None = None
    ports: Mapping[str, int] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    waiting: str = ""
    failure: Failure | None = None
    # `tasks` and `aggregate` are made anew from the pods in every pass, in wire form.
    tasks: tuple[Mapping[str, Any], ...] = ()
    aggregate: Mapping[str, int] = field(default_factory=dict)

    def condition(self, kind: ConditionType) -> Condition | None:
        """Find a condition by its type."""
        return next((each for each in self.conditions if each.type is kind), None)

    def but(self, **changes: Any) -> Self:
        """Give the same status with some fields changed."""
        return replace(self, **changes)
