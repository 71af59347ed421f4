"""Restarts: after failures and stalls, on request, and after a resize."""

from datetime import datetime

from paceline.model import reasons
from paceline.model.gang import Gang, RestartScope
from paceline.model.job_status import JobStatus, Phase
from paceline.plan.job.attempts import begin_all, current_attempts, unfinished
from paceline.plan.job.completion import fail
from paceline.plan.job.conditions import with_failure, with_progress
from paceline.plan.job.deadlines import check_stall, describe_stall
from paceline.plan.job.diagnosis import describe_failure, failure_of
from paceline.plan.job.plan import EventDraft, Plan
from paceline.plan.job.reporting import observed_status, with_tasks
from paceline.plan.job.restart_policy import restart_all, restarted, restarts_whole_gang, why_no_restart
from paceline.plan.job.view import JobView


def restart_failed(view: JobView, now: datetime) -> Plan | None:
    """Restart the replicas that ended and should not have, alone or with the whole gang.

    The plan only counts the restart and deletes pods; the next reconciliation creates the new ones.
    """
    again = view.verdict.again
    if not again:
        return None
    cause = next((replica for replica in again if replica.has_failed), None)
    status = with_failure(view.gang, observed_status(view, now), view.replicas, now, cause=cause)
    status = restarted(status, view.gang, again, now)
    names = (
        "all replicas" if restarts_whole_gang(view.gang, again) else ", ".join(str(replica.place) for replica in again)
    )
    reason = describe_failure(failure_of(cause)) if cause else "restartPolicy is Always"
    message = f"{reason}; next attempt of {names} {_describe_count(view.gang, status)}"
    event = EventDraft(reason=reasons.RESTARTING, message=message, is_warning=cause is not None)
    return _restart(view, status, event, now)


def restart_stalled(view: JobView, now: datetime) -> Plan | None:
    """Restart all replicas of a stalled job, since it is unknown which of them hangs; fail if that is not allowed."""
    since = check_stall(view, now).since
    if since is None:
        return None
    explanation = describe_stall(view.gang, since)
    if refusal := why_no_restart(view.gang, view.status):
        return fail(view, now, reason=reasons.STALLED, message=f"{explanation}; {refusal}")
    status = restart_all(observed_status(view, now), view.gang, now)
    message = f"{explanation}; next attempt of all replicas {_describe_count(view.gang, status)}"
    return _restart(view, status, EventDraft(reason=reasons.STALLED, message=message, is_warning=True), now)


def restart_requested(view: JobView, _now: datetime) -> Plan | None:
    """Restart all replicas at the user's request."""
    if not is_restart_requested(view) or not has_pods(view):
        return None
    return _restart_uncounted(view, f"a restart was requested{view.by}; next attempt of all replicas")


def restart_resized(view: JobView, _now: datetime) -> Plan | None:
    """Restart all replicas of an elastic job that start together when their number has changed."""
    if not view.gang.is_elastic or view.gang.scope is RestartScope.REPLICA or not view.stored.replicas:
        return None
    recorded = {record.place for record in view.stored.replicas if not record.is_scaled_down}
    if recorded == {member.place for member in view.gang.members}:
        return None
    message = f"the job has {len(view.gang.members)} replicas now, which start together; next attempt of all replicas"
    return _restart_uncounted(view, message)


def next_attempt(view: JobView, status: JobStatus, event: EventDraft) -> Plan:
    """Return a plan that starts the next attempt of all replicas, if any pod was created or their numbers differ.

    A replica that was scaled down keeps its number while the others go on, and only equal numbers form a gang.
    """
    is_level = len({replica.attempt for replica in view.replicas}) <= 1
    status = status if is_level and not has_pods(view) else begin_all(status, view.gang)
    status = status.but(restart_granted=view.restart_request, start_after=None, waiting="")
    status = with_tasks(status, current_attempts(view, status))
    return Plan(status=status, delete=unfinished(view.pods), events=(event,))


def has_pods(view: JobView) -> bool:
    """Return whether a pod of a current attempt was created."""
    return any(replica.uid for replica in view.replicas)


def is_restart_requested(view: JobView) -> bool:
    """Return whether a restart was requested and not yet performed."""
    return bool(view.restart_request) and view.restart_request != view.status.restart_granted


def _restart_uncounted(view: JobView, message: str) -> Plan:
    status = view.status.but(phase=Phase.RESUMING, resumes=view.status.resumes + 1)
    return next_attempt(view, status, EventDraft(reason=reasons.RESTARTING, message=message))


def _describe_count(gang: Gang, status: JobStatus) -> str:
    limit = "" if gang.backoff_limit is None else f" of at most {gang.backoff_limit}"
    return f"(restart {status.backoff_count}{limit})"


def _restart(view: JobView, status: JobStatus, event: EventDraft, now: datetime) -> Plan:
    """Return a plan that deletes what must end before the attempts that the status has counted."""
    is_whole = status.attempt > view.status.attempt
    if is_whole and status.phase is Phase.RUNNING:
        status = status.but(phase=Phase.PENDING)
    replicas = current_attempts(view, status)
    status = with_progress(view.gang, with_tasks(status, replicas), replicas, now)
    delete = unfinished(view.pods) if is_whole else ()
    return Plan(status=status, delete=delete, wake_at=status.start_after, events=(event,))
