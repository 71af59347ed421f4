"""What one decision may ask for."""

from dataclasses import dataclass
from datetime import datetime

from paceline.model.gang import ReplicaId
from paceline.model.job_status import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """One event to record on the job, after the status was written."""

    reason: str
    message: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPod:
    """One pod to make: a place and which try of it this is."""

    place: ReplicaId
    attempt: int
    # How many pods get room together, or none of them.
    gang_size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxiliaryPod:
    """One pod to make that does something for the whole job, and which try of it this is."""

    name: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRef:
    """The container of a pod whose log somebody should look into."""

    pod: str
    container: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything one decision may ask for, in the order it is carried out: write, unmake, make, tell."""

    status: JobStatus
    delete: tuple[str, ...] = ()
    create: tuple[NewPod, ...] = ()
    errands: tuple[AuxiliaryPod, ...] = ()
    tell: tuple[EventDraft, ...] = ()
    wake_at: datetime | None = None
    # Whether the job itself goes, with everything that is its own.
    removes_job: bool = False
    read: LogRef | None = None
    # Containers of which it must be known when they wrote last.
    listen: tuple[LogRef, ...] = ()
