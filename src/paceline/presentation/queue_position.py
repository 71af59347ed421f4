"""The place of a job in the scheduling queue, and what it lacks, in one sentence."""

from typing import Any

from paceline.apimachinery.meta import Object, namespace_of, uid_of
from paceline.model.job_status import Phase
from paceline.model.scheduling_queue import QueueEntry, QueuePosition, SchedulingQueue
from paceline.presentation.failure_advice import BEHIND, shortages
from paceline.presentation.job_summary import phase_of

# What every scheduler says of a pod that it has no node for.
UNSCHEDULABLE = "nodes are available: "
# Also of a running job: an elastic one may wait for more replicas.
_QUEUED = (Phase.PENDING, Phase.RESUMING, Phase.RUNNING)


def waits_for_room(job: Object) -> bool:
    """Return whether a scheduler has no node for a pod of the job, so that the job may be in the queue."""
    waiting = _waiting(job)
    return phase_of(job) in _QUEUED and (UNSCHEDULABLE in waiting or BEHIND.search(waiting) is not None)


def position_of(job: Object, queue: SchedulingQueue) -> QueuePosition | None:
    """Return the place of a job; None if it does not wait for resources, or the queue does not list it."""
    return queue.position_of(uid_of(job)) if waits_for_room(job) else None


def queue_sentence(job: Object, queue: SchedulingQueue) -> str:
    """Return place and shortage: `3rd of 5 in the queue, after bert: needs 2 nvidia.com/gpu, 0 of 2 free`.

    Empty if the job has no place.
    """
    position = position_of(job, queue)
    if position is None:
        return ""
    predecessor = f", after {_name(position.ahead, namespace_of(job))}" if position.ahead else ""
    place, needs = f"{ordinal(position.position)} of {position.length} in the queue{predecessor}", _needs(job)
    return f"{place}: {needs}" if needs else place


def position_fields(position: QueuePosition | None) -> dict[str, Any] | None:
    """Return a place as pages get it; the words are theirs."""
    if position is None:
        return None
    ahead = position.ahead
    return {
        "position": position.position,
        "length": position.length,
        "ahead": {"namespace": ahead.namespace, "name": ahead.name} if ahead else None,
    }


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th, 11th."""
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _name(ahead: QueueEntry, namespace: str) -> str:
    return ahead.name if ahead.namespace == namespace else f"{ahead.namespace}/{ahead.name}"


def _needs(job: Object) -> str:
    parts = []
    for shortage in shortages(_waiting(job)):
        amount = f"{shortage['asked']} " if shortage["asked"] else "more "
        free = f", {shortage['free']} of {shortage['total']} free" if shortage["free"] else ""
        parts.append(f"needs {amount}{shortage['resource']}{free}")
    return "; ".join(parts)


def _waiting(job: Object) -> str:
    return str((job.get("status") or {}).get("waiting") or "")
