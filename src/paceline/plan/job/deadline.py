"""When a job's time is up: to be done, and to have begun."""

from dataclasses import replace
from datetime import datetime, timedelta

from paceline.model.gang import Gang
from paceline.model.job_status import JobStatus
from paceline.plan.job.attempts import Try
from paceline.plan.job.plan import Plan
from paceline.plan.job.report.conditions import PAUSED, SUSPENDED
from paceline.plan.job.report.pending_reason import why_waiting
from paceline.plan.job.view import JobView

EXCEEDED = "DeadlineExceeded"
NOT_STARTED = "StartingDeadlineExceeded"
STALLED = "Stalled"
# Not even clean-up policy None lets a pod run after one of these.
OVER = frozenset({EXCEEDED, NOT_STARTED, STALLED})


def deadline_of(gang: Gang, status: JobStatus) -> datetime | None:
    """Give the moment when the job fails, done or not; waiting before the start and pauses do not count."""
    if gang.active_deadline_seconds is None or status.start_time is None:
        return None
    return status.start_time + timedelta(seconds=gang.active_deadline_seconds + status.paused_seconds)


def start_by(seen: JobView, status: JobStatus) -> datetime | None:
    """Give the moment when a job fails whose members have not all run; counted from its making, or its coming back."""
    if seen.gang.starting_deadline_seconds is None or status.running_time is not None:
        return None
    turned = [status.condition(kind) for kind in (PAUSED, SUSPENDED)]
    begun = [seen.created_at, *(each.since for each in turned if each is not None and not each.status)]
    moments = [moment for moment in begun if moment is not None]
    return max(moments) + timedelta(seconds=seen.gang.starting_deadline_seconds) if moments else None


def with_deadlines(seen: JobView, plan: Plan) -> Plan:
    """Have somebody look again at the next moment when the job's time is up, if not earlier."""
    known = (plan.wake_at, deadline_of(seen.gang, plan.status), start_by(seen, plan.status))
    moments = [moment for moment in known if moment is not None]
    return replace(plan, wake_at=min(moments, default=None))


def say_not_started(gang: Gang, tries: tuple[Try, ...]) -> str:
    """Say how many members ran, and what the others lacked."""
    missing = [each for each in tries if not each.has_started]
    counted = f"{len(tries) - len(missing)} of {len(tries)} pods ran within {gang.starting_deadline_seconds} seconds"
    waiting = why_waiting(tries)
    if waiting is not None:
        return f"{counted}: {waiting.text}"
    names = ", ".join(str(each.place) for each in missing) or "none for long enough"
    return f"{counted}; not yet: {names}"
