"""What people are told about a job: each thing once."""

from paceline.model.job_status import JobStatus, Phase, ReplicaPhase
from paceline.plan.job.attempts import Try
from paceline.plan.job.plan import EventDraft
from paceline.plan.job.preempted import PREEMPTED
from paceline.plan.job.report.conditions import INITIALIZED, RUNNING, is_true
from paceline.plan.job.report.pending_reason import failure_of, say_failure
from paceline.plan.job.restart_policy import RestartVerdict, why_lost
from paceline.plan.job.view import JobView

RESTARTING = "Restarting"


def created_events(view: JobView, replicas: tuple[Try, ...]) -> tuple[EventDraft, ...]:
    """Return an event for a new job, and one for each pod that the status does not list yet."""
    uids = {row.get("uid") for task in view.status.tasks for row in task.get("replicas") or ()}
    messages = [f"pod {replica.name} was created" for replica in replicas if replica.uid and replica.uid not in uids]
    created = EventDraft(reason="Created", message=f"job {view.site.job} has {len(replicas)} members")
    first = () if view.status.conditions else (created,)
    return (*first, *(EventDraft(reason="NewReplica", message=message) for message in messages))


def transition_events(previous: JobStatus, status: JobStatus) -> tuple[EventDraft, ...]:
    """Return events for what changed since the last reconcile, each once."""
    events = []
    if is_true(status, INITIALIZED) and not is_true(previous, INITIALIZED):
        events.append(EventDraft(reason="Start", message="all pods exist"))
    if status.phase is Phase.RUNNING and previous.phase is not Phase.RUNNING:
        events.append(EventDraft(reason="Running", message=_how_many(status)))
    previous_condition, condition = previous.condition(RUNNING), status.condition(RUNNING)
    # Why a job is tried again, or gave its room away, was told when that was decided.
    is_news = condition is not None and condition.reason not in (RESTARTING, PREEMPTED)
    is_new = (
        condition is not None
        and is_news
        and (previous_condition is None or previous_condition.reason != condition.reason)
    )
    if status.waiting and condition is not None and is_new:
        events.append(EventDraft(reason=condition.reason, message=status.waiting, is_warning=True))
    return tuple(events)


def lost_replica_events(view: JobView, verdict: RestartVerdict) -> tuple[EventDraft, ...]:
    """Return an event for every lost replica, with the reason why it is not restarted."""
    ended = (ReplicaPhase.FAILED, ReplicaPhase.DELETED)
    rows = (row for task in view.status.tasks for row in task.get("replicas") or ())
    names = {row["name"] for row in rows if row.get("phase") in ended}
    return tuple(
        EventDraft(
            reason="ReplicaLost",
            message=f"{say_failure(failure_of(replica))}; {replica.place} is not tried again: "
            f"{why_lost(view, replica)}",
            is_warning=True,
        )
        for replica in verdict.failed
        if replica.place in verdict.lost and replica.name not in names
    )


def _how_many(status: JobStatus) -> str:
    """Describe how many pods run: an elastic job may start with fewer than it wants."""
    waiting = status.aggregate.get("creating", 0) + status.aggregate.get("pending", 0)
    total = sum(status.aggregate.values())
    return f"{total - waiting} of {total} pods run" if waiting else "all pods run"
