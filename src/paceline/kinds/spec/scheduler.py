"""Scheduler, queue and priority of a job's pods (T9k's scheduler)."""

from typing import Annotated

from msgspec import Meta

from paceline.kinds.spec.fields import Part, about


class T9kScheduler(Part, frozen=True, kw_only=True):
    """The queue of a job, and its priority there."""

    queue: Annotated[str, about("Name of the queue.")]
    priority: Annotated[
        int, Meta(ge=0, le=100), about("Priority within the queue; jobs with a higher one are scheduled first.")
    ] = 0


class Scheduler(Part, frozen=True, kw_only=True):
    """Scheduler of the pods; if omitted, the default scheduler of the cluster, without a queue."""

    t9k_scheduler: Annotated[T9kScheduler, about("Schedule the job's pods together, from a queue.")] | None = None


def queue_of(scheduler: Scheduler | None) -> tuple[str, int]:
    """Return the queue and the priority in it; the queue is empty for the default scheduler of the cluster."""
    settings = scheduler.t9k_scheduler if scheduler else None
    return (settings.queue, settings.priority) if settings else ("", 0)
