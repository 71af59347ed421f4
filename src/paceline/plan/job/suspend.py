"""Pause, suspend and come back: the replicas are given back, the job and its counters stay."""

from datetime import datetime

from paceline.model.job_status import Condition, JobStatus, Phase
from paceline.plan.job.attempts import Try, begin_all, tries_of
from paceline.plan.job.cleanup import unfinished
from paceline.plan.job.plan import EventDraft, Plan
from paceline.plan.job.report.conditions import NONE, PAUSED, RUNNING, SUSPENDED, put
from paceline.plan.job.report.replica_statuses import with_tasks
from paceline.plan.job.shutdown_order import pods_to_stop
from paceline.plan.job.view import JobView

ON_HOLD = "the job is suspended; set spec.suspend to false to let it run"


def pause(view: JobView, status: JobStatus, replicas: tuple[Try, ...], now: datetime) -> Plan:
    """Stop every pod that may still run."""
    message = "the job is paused; set spec.runMode.pause.enabled to false to go on"
    status = put(status, Condition(type=PAUSED, status=True, reason=NONE, message=message, since=now))
    status = put(status, Condition(type=RUNNING, status=False, reason=Phase.PAUSED.value, message=message, since=now))
    status = with_tasks(status, replicas).but(
        phase=Phase.PAUSED, waiting="", preempted="", start_after=None, running_time=None
    )
    going, wake_at = pods_to_stop(view, now)
    return Plan(status=status, delete=going, wake_at=wake_at, tell=(EventDraft(reason="Paused", message=message),))


def stay(view: JobView, status: JobStatus, replicas: tuple[Try, ...], now: datetime) -> Plan:
    """See to it that no pod of a paused or suspended job is left running."""
    going, wake_at = pods_to_stop(view, now)
    return Plan(status=with_tasks(status, replicas), delete=going, wake_at=wake_at)


def resume(view: JobView, status: JobStatus, now: datetime) -> Plan:
    """Begin the next try; the time of the pause does not count, and nor does the restart."""
    paused = status.condition(PAUSED)
    # A pause before the start stops no clock: none runs yet.
    is_timed = paused is not None and status.start_time is not None
    seconds = int((now - paused.since).total_seconds()) if is_timed and paused is not None else 0
    message = "the job goes on after a pause"
    status = put(status, Condition(type=PAUSED, status=False, reason=NONE, message=message, since=now))
    status = status.but(paused_seconds=status.paused_seconds + max(seconds, 0), resumes=status.resumes + 1)
    return _next_try(view, status.but(phase=Phase.RESUMING), EventDraft(reason="Resuming", message=message))


def suspend(view: JobView, status: JobStatus, replicas: tuple[Try, ...], now: datetime) -> Plan:
    """Stop every pod that may still run, and clear the start time: the job will start anew."""
    status = put(status, Condition(type=SUSPENDED, status=True, reason="JobSuspended", message=ON_HOLD, since=now))
    condition = Condition(type=RUNNING, status=False, reason=SUSPENDED.value, message=ON_HOLD, since=now)
    status = with_tasks(put(status, condition), replicas).but(
        phase=Phase.PENDING,
        waiting=ON_HOLD,
        preempted="",
        start_after=None,
        start_time=None,
        running_time=None,
        paused_seconds=0,
    )
    going, wake_at = pods_to_stop(view, now)
    return Plan(
        status=status, delete=going, wake_at=wake_at, tell=(EventDraft(reason=SUSPENDED.value, message=ON_HOLD),)
    )


def unsuspend(view: JobView, status: JobStatus, now: datetime) -> Plan:
    """Let a suspended job start, or start again."""
    message = "the job is no longer suspended"
    status = put(status, Condition(type=SUSPENDED, status=False, reason="JobResumed", message=message, since=now))
    was_made = _was_made(view)
    status = status.but(
        phase=Phase.RESUMING if was_made else Phase.PENDING, resumes=status.resumes + was_made, waiting=""
    )
    return _next_try(view, status, EventDraft(reason="Resuming", message=message))


def begin_again(view: JobView, status: JobStatus, message: str) -> Plan:
    """End all members and begin the next try of all, as after a pause; it is no restart that counts."""
    status = status.but(phase=Phase.RESUMING, resumes=status.resumes + 1)
    return _next_try(view, status, EventDraft(reason="Restarting", message=message))


def is_restart_wanted(view: JobView) -> bool:
    """Return whether somebody has asked for a restart that was not granted yet, of pods that were made."""
    return is_wished(view) and _was_made(view)


def is_wished(view: JobView) -> bool:
    """Return whether somebody has asked for a restart that was not granted yet."""
    return bool(view.restart_wish) and view.restart_wish != view.status.restart_granted


def _next_try(view: JobView, status: JobStatus, event: EventDraft) -> Plan:
    status = begin_all(status, view.gang) if _was_made(view) else status
    status = status.but(restart_granted=view.restart_wish, start_after=None, waiting="")
    status = with_tasks(status, tries_of(view, status))
    return Plan(status=status, delete=unfinished(view.pods), tell=(event,))


def _was_made(view: JobView) -> bool:
    return any(replica.uid for replica in tries_of(view))
