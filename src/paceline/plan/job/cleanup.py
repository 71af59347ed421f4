"""Which pods of a finished job are deleted, and when; and when the job itself is (ttlSecondsAfterFinished)."""

from dataclasses import replace
from datetime import datetime, timedelta

from paceline.model import reasons
from paceline.model.gang import RESOLVE, CleanUp
from paceline.model.job_status import ConditionType, JobStatus, Phase
from paceline.plan.job.attempts import older_pods, unfinished
from paceline.plan.job.plan import EventDraft, Plan
from paceline.plan.job.reporting import unread_log, with_tasks
from paceline.plan.job.view import JobView

# After these failures even the clean-up policy None lets no pod run.
TIMED_OUT = frozenset({reasons.DEADLINE_EXCEEDED, reasons.STARTING_DEADLINE_EXCEEDED, reasons.STALLED})
# The member that determines the result ends a moment before its peers. They may end by themselves meanwhile, so that
# their last log lines are complete.
GRACE = timedelta(seconds=10)


def expire(view: JobView, now: datetime) -> Plan | None:
    """Delete a finished job when its TTL has passed; its pods are deleted with it."""
    due = _expiry(view)
    if due is None or now < due:
        return None
    seconds = view.gang.ttl_seconds
    message = f"the job is deleted: it ended more than {seconds} seconds ago (ttlSecondsAfterFinished)"
    status = with_tasks(view.status, view.replicas)
    return Plan(status=status, events=(EventDraft(reason=reasons.EXPIRED, message=message),), deletes_job=True)


def clean_up_finished(view: JobView, now: datetime) -> Plan | None:
    """Delete the pods of a finished job according to its policy, and those that the cluster takes away."""
    if not view.status.phase.is_final:
        return None
    plan = clean_up(view, with_tasks(view.status, view.replicas), now)
    disrupted = unfinished(tuple(pod for pod in view.pods if pod.disruption and pod.name not in plan.delete))
    return replace(plan, delete=(*plan.delete, *disrupted)).waking(_expiry(view))


def clean_up(view: JobView, status: JobStatus, now: datetime) -> Plan:
    """Return a plan that deletes the pods that are due under a final status."""
    overdue = (*unfinished(older_pods(view, view.replicas)), *_resolving(view))
    due = _due(view, status)
    moment = status.completion_time
    if moment is not None and status.phase is Phase.SUCCEEDED:
        moment += GRACE
    if moment is not None and now < moment:
        return Plan(status=status, delete=overdue, wake_at=moment if due else None)
    expired, unread = {*overdue, *due}, _unread_pod(view, status, now)
    pods = (*(pod.name for pod in view.pods), *(auxiliary.pod for auxiliary in view.auxiliary_pods))
    names = tuple(name for name in pods if name in expired and name != unread)
    wake_at = status.completion_time + GRACE if unread in expired and status.completion_time else None
    return Plan(status=status, delete=names, wake_at=wake_at)


def _expiry(view: JobView) -> datetime | None:
    seconds, end = view.gang.ttl_seconds, view.status.completion_time
    if seconds is None or end is None or not view.status.phase.is_final:
        return None
    return end + timedelta(seconds=seconds)


def _resolving(view: JobView) -> tuple[str, ...]:
    """Return the pods that still resolve a git revision that is no longer needed."""
    return tuple(
        auxiliary.pod for auxiliary in view.auxiliary_pods if auxiliary.name == RESOLVE and not auxiliary.phase.is_final
    )


def _unread_pod(view: JobView, status: JobStatus, now: datetime) -> str:
    """Return the pod whose last log lines are being read; it is deleted only afterwards, or after the grace time."""
    log = unread_log(view, status)
    if log is None or status.completion_time is None or now >= status.completion_time + GRACE:
        return ""
    return log.pod


def _due(view: JobView, status: JobStatus) -> tuple[str, ...]:
    if view.gang.clean_up is CleanUp.ALL:
        return tuple(pod.name for pod in view.pods if not pod.is_deleting)
    failed = status.condition(ConditionType.FAILED)
    is_timed_out = failed is not None and failed.reason in TIMED_OUT
    return unfinished(view.pods) if is_timed_out or view.gang.clean_up is CleanUp.UNFINISHED else ()
