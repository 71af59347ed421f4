"""What one decision may ask for."""

from dataclasses import dataclass, replace
from datetime import datetime

from paceline.model.gang import ReplicaId
from paceline.model.job_status import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """An event to record on the job after the status was written."""

    reason: str
    message: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPod:
    """A pod to create for one attempt of a replica."""

    place: ReplicaId
    attempt: int
    # The number of pods that are scheduled all together or not at all.
    gang_size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxiliaryPod:
    """A pod to create for one attempt of work for the whole job."""

    name: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRef:
    """A container whose log is to be read."""

    pod: str
    container: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything one decision may ask for, in the order it is applied: write, delete, create, record events."""

    status: JobStatus
    delete: tuple[str, ...] = ()
    # Pods whose end will never be reported: they are deleted without a grace period.
    force_delete: tuple[str, ...] = ()
    create: tuple[NewPod, ...] = ()
    auxiliary_pods: tuple[AuxiliaryPod, ...] = ()
    events: tuple[EventDraft, ...] = ()
    wake_at: datetime | None = None
    # Whether the job is deleted, with everything it owns.
    deletes_job: bool = False
    # The log whose last lines are to be read, and the logs whose last activity is needed.
    read_log: LogRef | None = None
    check_logs: tuple[LogRef, ...] = ()

    def waking(self, *moments: datetime | None) -> "Plan":
        """Return the plan with the earliest of its own and these times to reconcile again."""
        return replace(self, wake_at=earliest(self.wake_at, *moments))


def earliest(*moments: datetime | None) -> datetime | None:
    """Return the earliest of the given times, ignoring None."""
    return min((moment for moment in moments if moment is not None), default=None)
