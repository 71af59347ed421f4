"""What a job's status remembers of each replica: the state from which everything about replicas is rendered.

A record holds what must outlive the pod. What only a running pod shows is read from the pod in every reconciliation.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from paceline.model.gang import ReplicaId
from paceline.model.wire_object import HIDDEN, WireForm, WireObject


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
class ContainerState(WireObject):
    """The state of one container, from the pod's status; times are not recorded."""

    name: str
    # Waiting, Running, Terminated or Unknown.
    state: str
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    started_at: Annotated[datetime | None, HIDDEN] = None
    finished_at: Annotated[datetime | None, HIDDEN] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRecord(WireObject):
    """One replica: its current attempt, how that went, and the restarts it has used."""

    place: Annotated[ReplicaId, WireForm(key="replica", read=ReplicaId.named, write=str)]
    # The number of the current attempt, which is part of the pod's name; it only grows.
    attempt: int = 0
    # The restarts that count, which the limits of the job and of its roles apply to.
    restarts: int = 0
    # The uid of the attempt's pod; empty if it was never seen.
    uid: str = ""
    phase: Annotated[ReplicaPhase, WireForm(is_always=True, is_required=True)] = ReplicaPhase.CREATING
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
