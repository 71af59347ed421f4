"""Pause, suspend and resume: the pods are deleted, the job and its counters stay."""

from datetime import datetime, timedelta

from paceline.model import reasons
from paceline.model.job_status import JobStatus, Phase
from paceline.plan.job.attempts import unfinished
from paceline.plan.job.conditions import PAUSED, RUNNING, SUSPENDED
from paceline.plan.job.plan import EventDraft, Plan
from paceline.plan.job.reporting import with_tasks
from paceline.plan.job.restart import has_pods, next_attempt
from paceline.plan.job.snapshot import PodSnapshot
from paceline.plan.job.view import JobView

ON_HOLD = "the job is suspended; set spec.suspend to false to let it run"
# An unreachable node reports no end of its pods: wait no longer than this after a pod's grace period.
PATIENCE = timedelta(seconds=30)


def pause(view: JobView, now: datetime) -> Plan | None:
    """Pause the job at the user's request: delete every pod that may still run."""
    if not view.is_paused:
        return None
    message = f"the job is paused{view.by}; set spec.runMode.pause.enabled to false to resume it"
    status = view.status.put(PAUSED, now, holds=True, message=message)
    status = status.put(RUNNING, now, holds=False, reason=reasons.PAUSED, message=message)
    status = with_tasks(status, view.replicas).but(
        phase=Phase.PAUSED, waiting="", disruption={}, start_after=None, running_time=None
    )
    delete, wake_at = pods_to_stop(view, now)
    event = EventDraft(reason=reasons.PAUSED, message=message)
    return Plan(status=status, delete=delete, wake_at=wake_at, events=(event,))


def suspend(view: JobView, now: datetime) -> Plan | None:
    """Suspend the job at the user's or its queue's request: delete every pod, and clear the start time."""
    if not view.is_suspended:
        return None
    status = with_tasks(_on_hold(view, now), view.replicas).but(
        phase=Phase.PENDING,
        disruption={},
        start_after=None,
        start_time=None,
        running_time=None,
        paused_seconds=0,
    )
    delete, wake_at = pods_to_stop(view, now)
    return Plan(status=status, delete=delete, wake_at=wake_at, events=(_hold_event(view),))


def _on_hold(view: JobView, now: datetime) -> JobStatus:
    """Return the status that says why the job is on hold."""
    message = _why_on_hold(view)
    status = view.status.put(SUSPENDED, now, holds=True, reason=reasons.JOB_SUSPENDED, message=message)
    reason = reasons.QUEUED if _is_queued(view) else reasons.SUSPENDED
    return status.put(RUNNING, now, holds=False, reason=reason, message=message).but(waiting=message)


def _is_queued(view: JobView) -> bool:
    return view.queueing is not None and bool(view.queueing.message)


def _why_on_hold(view: JobView) -> str:
    return view.queueing.message if view.queueing is not None and view.queueing.message else ON_HOLD


def _hold_event(view: JobView) -> EventDraft:
    if _is_queued(view):
        return EventDraft(reason=reasons.QUEUED, message=_why_on_hold(view))
    return EventDraft(reason=reasons.SUSPENDED, message=ON_HOLD.replace("suspended", f"suspended{view.by}"))


def hold(view: JobView, now: datetime) -> Plan | None:
    """Delete pods of a paused or suspended job that still run."""
    if view.status.phase is not Phase.PAUSED and not view.status.is_true(SUSPENDED):
        return None
    delete, wake_at = pods_to_stop(view, now)
    # A queue may have another reason than before.
    is_queued = view.status.phase is not Phase.PAUSED and view.is_suspended and _is_queued(view)
    status = _on_hold(view, now) if is_queued else view.status
    return Plan(status=with_tasks(status, view.replicas), delete=delete, wake_at=wake_at)


def resume(view: JobView, now: datetime) -> Plan | None:
    """Start the next attempt of a job that is no longer paused; neither the pause nor the restart counts."""
    if view.status.phase is not Phase.PAUSED or view.is_paused:
        return None
    status = view.status
    paused = status.condition(PAUSED)
    # Before the start of the job there is no deadline that a pause could extend.
    is_timed = paused is not None and status.start_time is not None
    seconds = int((now - paused.since).total_seconds()) if is_timed and paused is not None else 0
    message = f"the job is resumed{view.by} after a pause" if view.by else "the job resumes after a pause"
    status = status.put(PAUSED, now, holds=False, message=message)
    status = status.but(paused_seconds=status.paused_seconds + max(seconds, 0), resumes=status.resumes + 1)
    return next_attempt(view, status.but(phase=Phase.RESUMING), EventDraft(reason=reasons.RESUMING, message=message))


def unsuspend(view: JobView, now: datetime) -> Plan | None:
    """Let a job start, or start again, that is no longer suspended."""
    is_on_hold = view.status.phase is not Phase.PAUSED and view.status.is_true(SUSPENDED)
    if not is_on_hold or view.is_suspended:
        return None
    queue = view.queueing.queue if view.queueing is not None else ""
    message = f"the job is admitted by queue {queue}" if queue else "the job is no longer suspended"
    had_pods = has_pods(view)
    status = view.status.put(SUSPENDED, now, holds=False, reason=reasons.JOB_RESUMED, message=message).but(
        phase=Phase.RESUMING if had_pods else Phase.PENDING, resumes=view.status.resumes + had_pods, waiting=""
    )
    event = EventDraft(reason=reasons.RESUMING, message=f"{message}{f'; resumed{view.by}' if view.by else ''}")
    return next_attempt(view, status, event)


def pods_to_stop(view: JobView, now: datetime) -> tuple[tuple[str, ...], datetime | None]:
    """Return the pods to delete now, and when to check again for those that must end before servers do."""
    clients = tuple(pod for pod in view.pods if pod.place.role not in view.gang.servers)
    running = [pod for pod in clients if not pod.phase.is_final and not _is_overdue(pod, now)]
    if not running:
        return unfinished(view.pods), None
    moments = [pod.ends_at + PATIENCE for pod in running if pod.ends_at is not None]
    has_servers = len(clients) < len(view.pods)
    return unfinished(clients), min(moments, default=None) if has_servers else None


def _is_overdue(pod: PodSnapshot, now: datetime) -> bool:
    return pod.ends_at is not None and now >= pod.ends_at + PATIENCE
