"""Which pods go when a job is over, and when."""

from datetime import datetime, timedelta

from paceline.objects.gang import CleanUp
from paceline.objects.status import ConditionType, JobStatus, Phase
from paceline.plan.deadline import EXCEEDED
from paceline.plan.plan import Plan
from paceline.plan.seen import PodSeen, Seen
from paceline.plan.tries import Try, older_pods

# The deciding member ends a moment before its peers. They may end by themselves, so that nobody's last words are cut.
LET_FINISH = timedelta(seconds=10)


def clean_up(seen: Seen, tries: tuple[Try, ...], status: JobStatus, now: datetime) -> Plan:
    """Name the pods of an ended job that go now, and when to look for the others."""
    overdue = unfinished(older_pods(seen, tries))
    due = _due(seen, status)
    moment = status.completion_time
    if moment is not None and status.phase is Phase.SUCCEEDED:
        moment += LET_FINISH
    if moment is not None and now < moment:
        return Plan(status=status, delete=overdue, wake_at=moment if due else None)
    wanted = {*overdue, *due}
    return Plan(status=status, delete=tuple(pod.name for pod in seen.pods if pod.name in wanted))


def unfinished(pods: tuple[PodSeen, ...]) -> tuple[str, ...]:
    """Name the pods that may still run and were not told to end yet."""
    return tuple(pod.name for pod in pods if not pod.phase.is_final and not pod.is_deleting)


def _due(seen: Seen, status: JobStatus) -> tuple[str, ...]:
    if seen.gang.clean_up is CleanUp.ALL:
        return tuple(pod.name for pod in seen.pods if not pod.is_deleting)
    failed = status.condition(ConditionType.FAILED)
    # Not even clean-up policy None lets a pod run past the deadline.
    is_late = failed is not None and failed.reason == EXCEEDED
    return unfinished(seen.pods) if is_late or seen.gang.clean_up is CleanUp.UNFINISHED else ()
