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


def created_events(seen: JobView, tries: tuple[Try, ...]) -> tuple[EventDraft, ...]:
    """Tell of the job when it is new, and of every pod that was not seen before."""
    known = {row.get("uid") for task in seen.status.tasks for row in task.get("replicas") or ()}
    born = [f"pod {each.name} was created" for each in tries if each.uid and each.uid not in known]
    created = EventDraft(reason="Created", message=f"job {seen.site.job} has {len(tries)} members")
    first = () if seen.status.conditions else (created,)
    return (*first, *(EventDraft(reason="NewReplica", message=message) for message in born))


def transition_events(before: JobStatus, status: JobStatus) -> tuple[EventDraft, ...]:
    """Tell what has changed since the last pass, each thing once."""
    told = []
    if is_true(status, INITIALIZED) and not is_true(before, INITIALIZED):
        told.append(EventDraft(reason="Start", message="all pods exist"))
    if status.phase is Phase.RUNNING and before.phase is not Phase.RUNNING:
        told.append(EventDraft(reason="Running", message=_how_many(status)))
    then, here = before.condition(RUNNING), status.condition(RUNNING)
    # Why a job is tried again, or gave its room away, was told when that was decided.
    is_news = here is not None and here.reason not in (RESTARTING, PREEMPTED)
    is_new = here is not None and is_news and (then is None or then.reason != here.reason)
    if status.waiting and here is not None and is_new:
        told.append(EventDraft(reason=here.reason, message=status.waiting, is_warning=True))
    return tuple(told)


def lost_replica_events(seen: JobView, verdict: RestartVerdict) -> tuple[EventDraft, ...]:
    """Tell of every member that is lost while the others go on, and why it is not tried again."""
    ended = (ReplicaPhase.FAILED, ReplicaPhase.DELETED)
    rows = (row for task in seen.status.tasks for row in task.get("replicas") or ())
    known = {row["name"] for row in rows if row.get("phase") in ended}
    return tuple(
        EventDraft(
            reason="ReplicaLost",
            message=f"{say_failure(failure_of(each))}; {each.place} is not tried again: {why_lost(seen, each)}",
            is_warning=True,
        )
        for each in verdict.failed
        if each.place in verdict.lost and each.name not in known
    )


def _how_many(status: JobStatus) -> str:
    """Say how many pods run: an elastic job may begin with fewer than it wants."""
    waiting = status.aggregate.get("creating", 0) + status.aggregate.get("pending", 0)
    total = sum(status.aggregate.values())
    return f"{total - waiting} of {total} pods run" if waiting else "all pods run"
