"""Who places a job's pods, and with which priority (T9k's scheduler)."""

from typing import Annotated

from msgspec import Meta

from paceline.kinds.fields import Part, about


class T9kScheduler(Part, frozen=True, kw_only=True):
    """The queue a job waits in."""

    queue: Annotated[str, about("Name of the queue.")]
    priority: Annotated[int, Meta(ge=0, le=100), about("Higher goes first within the queue.")] = 0


class Scheduler(Part, frozen=True, kw_only=True):
    """Absent: the cluster's own scheduler, without a queue."""

    t9k_scheduler: Annotated[T9kScheduler, about("Place the job's pods together, from a queue.")] | None = None


def queue_of(scheduler: Scheduler | None) -> tuple[str, int]:
    """Give the queue and the priority in it; no queue for the cluster's own scheduler."""
    asked = scheduler.t9k_scheduler if scheduler else None
    return (asked.queue, asked.priority) if asked else ("", 0)
