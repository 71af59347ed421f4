"""When a job's time is up."""

from datetime import datetime, timedelta

from paceline.objects.gang import Gang
from paceline.objects.status import JobStatus

EXCEEDED = "DeadlineExceeded"


def deadline_of(gang: Gang, status: JobStatus) -> datetime | None:
    """Give the moment when the job fails, done or not; waiting before the start and pauses do not count."""
    if gang.active_deadline_seconds is None or status.start_time is None:
        return None
    return status.start_time + timedelta(seconds=gang.active_deadline_seconds + status.paused_seconds)
