"""What one decision may ask for."""

from dataclasses import dataclass
from datetime import datetime

from paceline.objects.gang import Place
from paceline.objects.status import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """One event to record on the job, after the status was written."""

    reason: str
    message: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPod:
    """One pod to make: a place and which try of it this is."""

    place: Place
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything one decision may ask for, in the order it is carried out: write, unmake, make, tell."""

    status: JobStatus
    delete: tuple[str, ...] = ()
    create: tuple[NewPod, ...] = ()
    tell: tuple[Tell, ...] = ()
    wake_at: datetime | None = None
