"""Which pods go when a job is over, and when."""

from datetime import datetime, timedelta

from paceline.objects.gang import CleanUp
from paceline.objects.status import ConditionType, JobStatus, Phase
from paceline.plan.deadline import EXCEEDED
from paceline.plan.seen import PodSeen, Seen
from paceline.plan.tries import Try, older_pods

# The deciding member ends a moment before its peers. They may end by themselves, so that nobody's last words are cut.
LET_FINISH = timedelta(seconds=10)


def clean_up(seen: Seen, tries: tuple[Try, ...], status: JobStatus, now: datetime) -> tuple[str, ...]:
    """Name the pods of an ended job that go now."""
    policy = seen.gang.clean_up
    gone = {pod.name for pod in older_pods(seen, tries) if not pod.phase.is_final}
    if policy is CleanUp.ALL:
        gone |= {pod.name for pod in seen.pods if pod.phase.is_final}
    if policy is not CleanUp.NONE or _passed_deadline(status):
        if now >= runners_end(status):
            gone |= set(unfinished(seen.pods))
    return tuple(pod.name for pod in seen.pods if pod.name in gone and not pod.is_deleting)


def runners_end(status: JobStatus) -> datetime:
    """Give the moment when pods that still run after the job's end are stopped."""
    end = status.completion_time
    if end is None:
        raise ValueError("a job without completion time has not ended")
    return end + LET_FINISH if status.phase is Phase.SUCCEEDED else end


def look_again(seen: Seen, status: JobStatus, now: datetime) -> datetime | None:
    """Give the moment of the next clean-up, if one is to come."""
    moment = runners_end(status)
    is_due_later = now < moment and seen.gang.clean_up is not CleanUp.NONE
    return moment if is_due_later and unfinished(seen.pods) else None


def unfinished(pods: tuple[PodSeen, ...]) -> tuple[str, ...]:
    """Name the pods that may still run and were not told to end yet."""
    return tuple(pod.name for pod in pods if not pod.phase.is_final and not pod.is_deleting)


def _passed_deadline(status: JobStatus) -> bool:
    failed = status.condition(ConditionType.FAILED)
    # Not even clean-up policy None lets a pod run past the deadline.
    return failed is not None and failed.reason == EXCEEDED
