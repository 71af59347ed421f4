"""The deadlines of a job, and when it is stalled: no replica has written a log line for too long."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from paceline.apimachinery.timestamps import to_wire
from paceline.model.gang import Gang
from paceline.model.job_status import JobStatus, Phase
from paceline.model.replica_record import ReplicaPhase
from paceline.plan.job.attempts import ReplicaAttempt, is_up
from paceline.plan.job.conditions import PAUSED, SUSPENDED
from paceline.plan.job.diagnosis import why_waiting
from paceline.plan.job.plan import LogRef, Plan
from paceline.plan.job.snapshot import LogActivity
from paceline.plan.job.view import JobView

# One result may be wrong because a clock was set forward: another one after this time must agree.
CONFIRMATION = timedelta(seconds=30)


def active_deadline(gang: Gang, status: JobStatus) -> datetime | None:
    """Return when the job fails if it has not ended; time before the start and in pauses does not count."""
    if gang.active_deadline_seconds is None or status.start_time is None:
        return None
    return status.start_time + timedelta(seconds=gang.active_deadline_seconds + status.paused_seconds)


def starting_deadline(view: JobView, status: JobStatus) -> datetime | None:
    """Return when the job fails if not all pods run; counted from its creation or its last resume."""
    if view.gang.starting_deadline_seconds is None or status.running_time is not None:
        return None
    conditions = [status.condition(kind) for kind in (PAUSED, SUSPENDED)]
    begun = [
        view.created_at,
        *(condition.since for condition in conditions if condition is not None and not condition.status),
    ]
    moments = [moment for moment in begun if moment is not None]
    return max(moments) + timedelta(seconds=view.gang.starting_deadline_seconds) if moments else None


def has_missed_start(view: JobView, now: datetime) -> bool:
    """Return whether the job has not started in time.

    A job that runs when the deadline passes met it, even if `runningTime` is not recorded yet. Jobs that are to be
    paused or suspended are exempt.
    """
    deadline = starting_deadline(view, view.status)
    is_waiting = not view.is_paused and not view.is_suspended and not is_up(view.gang, view.replicas)
    return deadline is not None and now >= deadline and is_waiting


def describe_not_started(view: JobView) -> str:
    """Describe how many replicas ran, and why the others did not."""
    missing = [replica for replica in view.replicas if not replica.has_started]
    total, seconds = len(view.replicas), view.gang.starting_deadline_seconds
    summary = f"{total - len(missing)} of {total} pods ran within {seconds} seconds"
    waiting = why_waiting(view.replicas)
    if waiting is not None:
        return f"{summary}: {waiting.text}"
    names = ", ".join(str(replica.place) for replica in missing) or "none for long enough"
    return f"{summary}; not yet: {names}"


def wake_for_deadlines(view: JobView, plan: Plan, _now: datetime) -> Plan:
    """Reconcile an active job again when one of its deadlines passes."""
    status = plan.status
    is_held = status.phase is Phase.PAUSED or status.is_true(SUSPENDED)
    if status.phase.is_final or status.ending or is_held:
        return plan
    return plan.waking(active_deadline(view.gang, status), starting_deadline(view, status))


@dataclass(frozen=True, slots=True, kw_only=True)
class StallCheck:
    """Whether a job is stalled, or what has to be read to tell."""

    # When the last line was written, once it is certain that the job is stalled.
    since: datetime | None = None
    # The logs to read now, and when to check again.
    logs: tuple[LogRef, ...] = ()
    check_at: datetime | None = None


def check_stall(view: JobView, now: datetime) -> StallCheck:
    """Return whether all containers of a running job have written nothing for too long."""
    if view.gang.stall_seconds is None or not is_up(view.gang, view.replicas):
        return StallCheck()
    started = _running_since(view.replicas)
    if not started:
        return StallCheck()
    patience = timedelta(seconds=view.gang.stall_seconds)
    activities = {log: view.log_activity[log] for log in started if log in view.log_activity}
    last = max([*started.values(), *(activity.last for activity in activities.values() if activity.last is not None)])
    due = last + patience
    if now < due:
        return StallCheck(check_at=due)
    moments = {log: _read_at(activities.get(log), due, min(patience, CONFIRMATION)) for log in started}
    pending = {log: moment for log, moment in moments.items() if moment is not None}
    if not pending:
        return StallCheck(since=last)
    later = [moment for moment in pending.values() if moment > now]
    return StallCheck(
        logs=tuple(log for log, moment in pending.items() if moment <= now), check_at=min(later, default=None)
    )


def describe_stall(gang: Gang, since: datetime) -> str:
    """Describe since when no replica has written a line."""
    return f"no replica has written a line since {to_wire(since)}, for more than {gang.stall_seconds} seconds"


def _running_since(replicas: tuple[ReplicaAttempt, ...]) -> Mapping[LogRef, datetime]:
    """Return the running containers, each with its start time."""
    return {
        LogRef(pod=replica.name, container=container.name): container.started_at
        for replica in replicas
        if replica.phase is ReplicaPhase.RUNNING
        for container in replica.containers
        if container.state == "Running" and container.started_at is not None
    }


def _read_at(activity: LogActivity | None, due: datetime, pause: timedelta) -> datetime | None:
    """Return when to read a container's log again; None if it is certainly silent."""
    if activity is None or activity.read_at < due:
        return due
    is_certain = activity.is_known and activity.read_at - activity.since >= pause
    return None if is_certain else activity.read_at + pause
