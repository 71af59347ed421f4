"""In which order the pods of a job end that somebody stops: those that serve the others come last."""

from datetime import datetime, timedelta

from paceline.plan.job.cleanup import unfinished
from paceline.plan.job.view import JobView, PodSeen

# A node that is away tells of no end: nobody waits longer for a pod whose time was up.
PATIENCE = timedelta(seconds=30)


def pods_to_stop(view: JobView, now: datetime) -> tuple[tuple[str, ...], datetime | None]:
    """Return the pods to delete now, and when to check again for those that must end first."""
    served = tuple(pod for pod in view.pods if pod.place.role not in view.gang.servers)
    busy = [pod for pod in served if not pod.phase.is_final and not _is_overdue(pod, now)]
    if not busy:
        return unfinished(view.pods), None
    moments = [pod.ends_at + PATIENCE for pod in busy if pod.ends_at is not None]
    has_servers = len(served) < len(view.pods)
    return unfinished(served), min(moments, default=None) if has_servers else None


def _is_overdue(pod: PodSeen, now: datetime) -> bool:
    return pod.ends_at is not None and now >= pod.ends_at + PATIENCE
