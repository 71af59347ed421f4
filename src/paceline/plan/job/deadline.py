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
    """Return the moment when the job fails, done or not; waiting before the start and pauses do not count."""
    if gang.active_deadline_seconds is None or status.start_time is None:
        return None
    return status.start_time + timedelta(seconds=gang.active_deadline_seconds + status.paused_seconds)


def start_by(view: JobView, status: JobStatus) -> datetime | None:
    """Return when a job fails that has not started all pods; counted from its creation or its last resume."""
    if view.gang.starting_deadline_seconds is None or status.running_time is not None:
        return None
    conditions = [status.condition(kind) for kind in (PAUSED, SUSPENDED)]
    begun = [
        view.created_at,
        *(condition.since for condition in conditions if condition is not None and not condition.status),
    ]
    moments = [moment for moment in begun if moment is not None]
    return max(moments) + timedelta(seconds=view.gang.starting_deadline_seconds) if moments else None


def with_deadlines(view: JobView, plan: Plan) -> Plan:
    """Have somebody look again at the next moment when the job's time is up, if not earlier."""
    candidates = (plan.wake_at, deadline_of(view.gang, plan.status), start_by(view, plan.status))
    moments = [moment for moment in candidates if moment is not None]
    return replace(plan, wake_at=min(moments, default=None))


def say_not_started(gang: Gang, replicas: tuple[Try, ...]) -> str:
    """Describe how many replicas ran, and why the others did not."""
    missing = [replica for replica in replicas if not replica.has_started]
    summary = (
        f"{len(replicas) - len(missing)} of {len(replicas)} pods ran within {gang.starting_deadline_seconds} seconds"
    )
    waiting = why_waiting(replicas)
    if waiting is not None:
        return f"{summary}: {waiting.text}"
    names = ", ".join(str(replica.place) for replica in missing) or "none for long enough"
    return f"{summary}; not yet: {names}"
