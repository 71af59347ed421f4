"""Pause and resume: the replicas are given back, the job and its counters stay."""

from datetime import datetime

from paceline.objects.status import Condition, JobStatus, Phase
from paceline.plan.cleanup import unfinished
from paceline.plan.conditions import NONE, PAUSED, RUNNING, put
from paceline.plan.plan import Plan, Tell
from paceline.plan.seen import Seen
from paceline.plan.tasks import with_tasks
from paceline.plan.tries import Try, tries_of


def pause(seen: Seen, status: JobStatus, tries: tuple[Try, ...], now: datetime) -> Plan:
    """Give every pod back that may still run."""
    message = "the job is paused; set spec.runMode.pause.enabled to false to go on"
    status = put(status, Condition(type=PAUSED, status=True, reason=NONE, message=message, since=now))
    status = put(status, Condition(type=RUNNING, status=False, reason=Phase.PAUSED.value, message=message, since=now))
    status = with_tasks(status, tries).but(phase=Phase.PAUSED, waiting="", start_after=None)
    return Plan(status=status, delete=unfinished(seen.pods), tell=(Tell(reason="Paused", message=message),))


def stay_paused(seen: Seen, status: JobStatus, tries: tuple[Try, ...]) -> Plan:
    """See to it that no pod is left running."""
    return Plan(status=with_tasks(status, tries), delete=unfinished(seen.pods))


def resume(seen: Seen, status: JobStatus, now: datetime) -> Plan:
    """Begin the next try; the time of the pause does not count, and nor does the restart."""
    paused = status.condition(PAUSED)
    seconds = int((now - paused.since).total_seconds()) if paused else 0
    was_made = any(each.uid for each in tries_of(seen))
    message = "the job goes on after a pause"
    status = put(status, Condition(type=PAUSED, status=False, reason=NONE, message=message, since=now))
    status = status.but(
        phase=Phase.RESUMING,
        attempt=status.attempt + was_made,
        resumes=status.resumes + 1,
        paused_seconds=status.paused_seconds + max(seconds, 0),
    )
    status = with_tasks(status, tries_of(seen, status))
    return Plan(status=status, delete=unfinished(seen.pods), tell=(Tell(reason="Resuming", message=message),))
