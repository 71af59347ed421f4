"""Which pods go when a job is over, and when."""

from datetime import datetime, timedelta

from paceline.model.gang import CleanUp
from paceline.model.job_status import ConditionType, JobStatus, Phase
from paceline.plan.job.attempts import Try, older_pods
from paceline.plan.job.deadline import OVER
from paceline.plan.job.plan import Plan
from paceline.plan.job.pods.auxiliary_pods import RESOLVE
from paceline.plan.job.report.failure_logs import wish_of
from paceline.plan.job.view import JobView, PodSeen

# The deciding member ends a moment before its peers. They may end by themselves, so that nobody's last words are cut.
LET_FINISH = timedelta(seconds=10)


def clean_up(seen: JobView, tries: tuple[Try, ...], status: JobStatus, now: datetime) -> Plan:
    """Name the pods of an ended job that go now, and when to look for the others."""
    overdue = (*unfinished(older_pods(seen, tries)), *_looking(seen))
    due = _due(seen, status)
    moment = status.completion_time
    if moment is not None and status.phase is Phase.SUCCEEDED:
        moment += LET_FINISH
    if moment is not None and now < moment:
        return Plan(status=status, delete=overdue, wake_at=moment if due else None)
    wanted, unread = {*overdue, *due}, _unread(seen, status, now)
    gone = tuple(name for name in _named(seen) if name in wanted and name != unread)
    wake_at = status.completion_time + LET_FINISH if unread in wanted and status.completion_time else None
    return Plan(status=status, delete=gone, wake_at=wake_at)


def unfinished(pods: tuple[PodSeen, ...]) -> tuple[str, ...]:
    """Name the pods that may still run and were not told to end yet."""
    return tuple(pod.name for pod in pods if not pod.phase.is_final and not pod.is_deleting)


def _looking(seen: JobView) -> tuple[str, ...]:
    """Name the pods that still look for the code of a job that will not need it any more."""
    return tuple(each.pod for each in seen.errands if each.name == RESOLVE and not each.phase.is_final)


def _named(seen: JobView) -> tuple[str, ...]:
    return (*(pod.name for pod in seen.pods), *(each.pod for each in seen.errands))


def _unread(seen: JobView, status: JobStatus, now: datetime) -> str:
    """Name the pod whose last lines are being read; it is kept for them, but not for ever."""
    wish = wish_of(seen, status)
    if wish is None or status.completion_time is None or now >= status.completion_time + LET_FINISH:
        return ""
    return wish.pod


def _due(seen: JobView, status: JobStatus) -> tuple[str, ...]:
    if seen.gang.clean_up is CleanUp.ALL:
        return tuple(pod.name for pod in seen.pods if not pod.is_deleting)
    failed = status.condition(ConditionType.FAILED)
    is_late = failed is not None and failed.reason in OVER
    return unfinished(seen.pods) if is_late or seen.gang.clean_up is CleanUp.UNFINISHED else ()
