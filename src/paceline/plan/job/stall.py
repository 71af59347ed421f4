"""When nobody of a job writes a line any more: found out by asking once it is due, and once more to be sure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from paceline.apimachinery.timestamps import to_wire
from paceline.model.gang import Gang
from paceline.model.job_status import ReplicaPhase
from paceline.plan.job.attempts import Try
from paceline.plan.job.elastic import is_up
from paceline.plan.job.plan import LogRef
from paceline.plan.job.view import JobView, LogActivity

# One answer may be wrong because a clock was set forward: another one after so long has to say the same.
SURE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class StallCheck:
    """What is to be done about a job's silence: nothing, to ask, or to believe it."""

    # When the last line was written, once it is sure that the job is stalled.
    since: datetime | None = None
    # The containers of which it must be known when they wrote last.
    ask: tuple[LogRef, ...] = ()
    look_at: datetime | None = None


def silence(view: JobView, replicas: tuple[Try, ...], now: datetime) -> StallCheck:
    """Return whether all containers of a running job have been silent for too long."""
    begun = _begun(replicas) if view.gang.stall_seconds is not None and is_up(view.gang, replicas) else {}
    if view.gang.stall_seconds is None or not begun:
        return StallCheck()
    patience = timedelta(seconds=view.gang.stall_seconds)
    activities = {log: view.heard[log] for log in begun if log in view.heard}
    last = max([*begun.values(), *(activity.last for activity in activities.values() if activity.last is not None)])
    due = last + patience
    if now < due:
        return StallCheck(look_at=due)
    moments = {log: _ask_at(activities.get(log), due, min(patience, SURE)) for log in begun}
    pending = {log: moment for log, moment in moments.items() if moment is not None}
    if not pending:
        return StallCheck(since=last)
    later = [moment for moment in pending.values() if moment > now]
    return StallCheck(
        ask=tuple(log for log, moment in pending.items() if moment <= now), look_at=min(later, default=None)
    )


def say_stalled(gang: Gang, since: datetime) -> str:
    """Describe since when no replica has written a line."""
    return f"no replica has written a line since {to_wire(since)}, for more than {gang.stall_seconds} seconds"


def _begun(replicas: tuple[Try, ...]) -> Mapping[LogRef, datetime]:
    """Return the containers that run, each with when it began."""
    return {
        LogRef(pod=replica.name, container=container.name): container.started_at
        for replica in replicas
        if replica.phase is ReplicaPhase.RUNNING
        for container in replica.containers
        if container.state == "Running" and container.started_at is not None
    }


def _ask_at(activity: LogActivity | None, due: datetime, pause: timedelta) -> datetime | None:
    """Return when to read a container's log again; None when it is certainly silent."""
    if activity is None or activity.asked_at < due:
        return due
    is_sure = activity.is_known and activity.asked_at - activity.since >= pause
    return None if is_sure else activity.asked_at + pause
