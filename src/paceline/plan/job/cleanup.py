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


def clean_up(view: JobView, replicas: tuple[Try, ...], status: JobStatus, now: datetime) -> Plan:
    """Return the pods of an ended job that go now, and when to look for the others."""
    overdue = (*unfinished(older_pods(view, replicas)), *_looking(view))
    due = _due(view, status)
    moment = status.completion_time
    if moment is not None and status.phase is Phase.SUCCEEDED:
        moment += LET_FINISH
    if moment is not None and now < moment:
        return Plan(status=status, delete=overdue, wake_at=moment if due else None)
    expired, unread = {*overdue, *due}, _unread(view, status, now)
    names = tuple(name for name in _named(view) if name in expired and name != unread)
    wake_at = status.completion_time + LET_FINISH if unread in expired and status.completion_time else None
    return Plan(status=status, delete=names, wake_at=wake_at)


def unfinished(pods: tuple[PodSeen, ...]) -> tuple[str, ...]:
    """Return the pods that may still run and were not told to end yet."""
    return tuple(pod.name for pod in pods if not pod.phase.is_final and not pod.is_deleting)


def _looking(view: JobView) -> tuple[str, ...]:
    """Return the pods that still look for the code of a job that will not need it any more."""
    return tuple(
        auxiliary.pod for auxiliary in view.errands if auxiliary.name == RESOLVE and not auxiliary.phase.is_final
    )


def _named(view: JobView) -> tuple[str, ...]:
    return (*(pod.name for pod in view.pods), *(auxiliary.pod for auxiliary in view.errands))


def _unread(view: JobView, status: JobStatus, now: datetime) -> str:
    """Return the pod whose last lines are being read; it is kept for them, but not for ever."""
    log = wish_of(view, status)
    if log is None or status.completion_time is None or now >= status.completion_time + LET_FINISH:
        return ""
    return log.pod


def _due(view: JobView, status: JobStatus) -> tuple[str, ...]:
    if view.gang.clean_up is CleanUp.ALL:
        return tuple(pod.name for pod in view.pods if not pod.is_deleting)
    failed = status.condition(ConditionType.FAILED)
    is_late = failed is not None and failed.reason in OVER
    return unfinished(view.pods) if is_late or view.gang.clean_up is CleanUp.UNFINISHED else ()
