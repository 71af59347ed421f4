"""A job that gives way to somebody more important waits for room again; no restart is counted."""

from dataclasses import replace

from paceline.model.job_status import JobStatus, Phase, ReplicaPhase
from paceline.plan.job.attempts import Try, begin_all, begin_together, tries_of
from paceline.plan.job.cleanup import unfinished
from paceline.plan.job.plan import EventDraft, Plan
from paceline.plan.job.report.replica_statuses import with_tasks
from paceline.plan.job.restart_policy import restarts_whole_gang
from paceline.plan.job.view import JobView

PREEMPTED = "Preempted"


def is_preempted(replicas: tuple[Try, ...]) -> tuple[Try, ...]:
    """Find the tries whose pods give way; one that has succeeded has nothing to lose."""
    return tuple(replica for replica in replicas if replica.gives_way and replica.phase is not ReplicaPhase.SUCCEEDED)


def requeue(view: JobView, status: JobStatus, replicas: tuple[Try, ...]) -> Plan:
    """Write down that the next try waits for room, and end the pods of this one: all, or those that go."""
    preempted = is_preempted(replicas)
    is_whole = restarts_whole_gang(view.gang, preempted)
    if is_whole:
        status = begin_all(status, view.gang).but(resumes=status.resumes + 1)
    else:
        status = begin_together(status, replicas, preempted)
    places = {replica.place for replica in preempted}
    remaining = [
        replica for replica in replicas if replica.place not in places and replica.phase is not ReplicaPhase.SUCCEEDED
    ]
    if status.phase is Phase.RUNNING and (is_whole or not remaining):
        status = status.but(phase=Phase.PENDING)
    reason = preempted[0].gives_way
    status = status.but(preempted=reason, waiting=reason)
    status = with_tasks(status, tries_of(view, status))
    names = "all members" if is_whole else ", ".join(str(replica.place) for replica in preempted)
    pod_names = {replica.name for replica in preempted}
    ended = unfinished(tuple(pod for pod in view.pods if is_whole or pod.name in pod_names))
    event = EventDraft(reason=PREEMPTED, message=f"{reason}; {names} wait for room again, and no restart is counted")
    return Plan(status=status, delete=ended, tell=(event,))


def evict_preempted(view: JobView, plan: Plan) -> Plan:
    """End pods that run on after the end of their job, and hold room that somebody more important wants."""
    preempted = unfinished(tuple(pod for pod in view.pods if pod.gives_way and pod.name not in plan.delete))
    return replace(plan, delete=(*plan.delete, *preempted))
