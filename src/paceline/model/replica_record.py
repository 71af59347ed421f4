"""What a job's status remembers of each replica: the state from which everything about replicas is rendered.

A record holds what must outlive the pod. What only a running pod shows is read from the pod in every reconciliation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from paceline.model.gang import ReplicaId


class ReplicaPhase(StrEnum):
    """The phase of one attempt of a replica: that of its pod, or the time before and after it."""

    CREATING = "Creating"
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"
    DELETED = "Deleted"

    @property
    def is_final(self) -> bool:
        """Whether an attempt in this phase has terminated."""
        return self in (ReplicaPhase.SUCCEEDED, ReplicaPhase.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """The state of one container, from the pod's status; times are not recorded."""

    name: str
    # Waiting, Running, Terminated or Unknown.
    state: str
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the wire form without empty fields and times."""
        optional = {"exitCode": self.exit_code, "reason": self.reason or None, "message": self.message or None}
        present = {key: value for key, value in optional.items() if value is not None}
        return {"name": self.name, "state": self.state, **present}

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Return the decoded state."""
        return cls(
            name=str(wire["name"]),
            state=str(wire["state"]),
            exit_code=wire.get("exitCode"),
            reason=str(wire.get("reason", "")),
            message=str(wire.get("message", "")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRecord:
    """One replica: its current attempt, how that went, and the restarts it has used."""

    place: ReplicaId
    # The number of the current attempt, which is part of the pod's name; it only grows.
    attempt: int = 0
    # The restarts that count, which the limits of the job and of its roles apply to.
    restarts: int = 0
    # The uid of the attempt's pod; empty if it was never seen.
    uid: str = ""
    phase: ReplicaPhase = ReplicaPhase.CREATING
    # How the attempt ended: its terminated containers, and the pod's reason and message.
    containers: tuple[ContainerState, ...] = ()
    stages: tuple[ContainerState, ...] = ()
    reason: str = ""
    message: str = ""
    # The memory limit with which the previous attempt was OOM-killed; empty if it was not.
    oom_limit: str = ""
    # Whether the replica was scaled down, and whether it may have output that is not uploaded yet.
    is_scaled_down: bool = False
    has_output: bool = False

    def at(self, attempt: int) -> Self:
        """Return the record at the start of another attempt."""
        return replace(
            self,
            attempt=attempt,
            uid="",
            phase=ReplicaPhase.CREATING,
            containers=(),
            stages=(),
            reason="",
            message="",
        )

    def to_wire(self) -> dict[str, Any]:
        """Return the wire form without empty fields."""
        optional: dict[str, Any] = {
            "attempt": self.attempt,
            "restarts": self.restarts,
            "uid": self.uid,
            "containers": [container.to_wire() for container in self.containers],
            "stages": [stage.to_wire() for stage in self.stages],
            "reason": self.reason,
            "message": self.message,
            "oomLimit": self.oom_limit,
            "scaledDown": self.is_scaled_down,
            "hasOutput": self.has_output,
        }
        present = {key: value for key, value in optional.items() if value}
        return {"replica": str(self.place), "phase": self.phase.value, **present}

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Return the decoded record."""
        return cls(
            place=ReplicaId.named(wire["replica"]),
            attempt=int(wire.get("attempt") or 0),
            restarts=int(wire.get("restarts") or 0),
            uid=str(wire.get("uid") or ""),
            phase=ReplicaPhase(wire["phase"]),
            containers=tuple(ContainerState.from_wire(entry) for entry in wire.get("containers") or ()),
            stages=tuple(ContainerState.from_wire(entry) for entry in wire.get("stages") or ()),
            reason=str(wire.get("reason") or ""),
            message=str(wire.get("message") or ""),
            oom_limit=str(wire.get("oomLimit") or ""),
            is_scaled_down=bool(wire.get("scaledDown")),
            has_output=bool(wire.get("hasOutput")),
        )
