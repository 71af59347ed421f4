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


def is_preempted(tries: tuple[Try, ...]) -> tuple[Try, ...]:
    """Find the tries whose pods give way; one that has succeeded has nothing to lose."""
    return tuple(each for each in tries if each.gives_way and each.phase is not ReplicaPhase.SUCCEEDED)


def requeue(seen: JobView, status: JobStatus, tries: tuple[Try, ...]) -> Plan:
    """Write down that the next try waits for room, and end the pods of this one: all, or those that go."""
    going = is_preempted(tries)
    is_whole = restarts_whole_gang(seen.gang, going)
    if is_whole:
        status = begin_all(status, seen.gang).but(resumes=status.resumes + 1)
    else:
        status = begin_together(status, tries, going)
    places = {each.place for each in going}
    left = [each for each in tries if each.place not in places and each.phase is not ReplicaPhase.SUCCEEDED]
    if status.phase is Phase.RUNNING and (is_whole or not left):
        status = status.but(phase=Phase.PENDING)
    why = going[0].gives_way
    status = status.but(preempted=why, waiting=why)
    status = with_tasks(status, tries_of(seen, status))
    what = "all members" if is_whole else ", ".join(str(each.place) for each in going)
    names = {each.name for each in going}
    ended = unfinished(tuple(pod for pod in seen.pods if is_whole or pod.name in names))
    told = EventDraft(reason=PREEMPTED, message=f"{why}; {what} wait for room again, and no restart is counted")
    return Plan(status=status, delete=ended, tell=(told,))


def evict_preempted(seen: JobView, plan: Plan) -> Plan:
    """End pods that run on after the end of their job, and hold room that somebody more important wants."""
    going = unfinished(tuple(pod for pod in seen.pods if pod.gives_way and pod.name not in plan.delete))
    return replace(plan, delete=(*plan.delete, *going))
