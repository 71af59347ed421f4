"""Jobs that change their size: who is given up, who joins, and when too few are left."""

from collections.abc import Iterator
from dataclasses import replace

from paceline.model.gang import Gang, ReplicaId, RestartScope
from paceline.model.job_status import JobStatus, ReplicaPhase
from paceline.plan.job.attempts import Try, attempt_of
from paceline.plan.job.plan import EventDraft, Plan
from paceline.plan.job.view import JobView


def with_releases(view: JobView) -> JobView:
    """Count the places that a job gave up: whoever comes back to one later is a new try of it, with its own name."""
    if view.gang.scope is RestartScope.GANG:
        # All start anew there, under new names.
        return view
    releases = dict(view.status.releases)
    for place, replicas in _given_up(view):
        releases[str(place)] = releases.get(str(place), 0) + replicas
    return replace(view, status=view.status.but(releases=releases))


def is_resized(view: JobView) -> bool:
    """Return whether a gang whose members start together has another size than the one it was made with."""
    if not view.gang.is_elastic or view.gang.scope is RestartScope.REPLICA:
        return False
    return bool(view.status.tasks) and set(_recorded(view.status)) != {member.place for member in view.gang.members}


def is_too_small(gang: Gang, lost: frozenset[ReplicaId]) -> bool:
    """Return whether so many members are lost that fewer are left than the job may run with."""
    return gang.least is not None and len(gang.members) - len(lost) < gang.least


def is_up(gang: Gang, replicas: tuple[Try, ...]) -> bool:
    """Return whether as many members have started as the job needs."""
    return sum(replica.has_started for replica in replicas) >= gang.needed


def is_new_meeting(gang: Gang, replicas: tuple[Try, ...]) -> bool:
    """Return whether members that are made now meet anew: those of a gang always, elastic ones when their leader is."""
    is_led = any(replica.place == gang.leader and replica.phase is ReplicaPhase.CREATING for replica in replicas)
    return gang.scope is RestartScope.GANG or (gang.is_elastic and is_led)


def with_size(view: JobView, plan: Plan) -> Plan:
    """Set current and expected replicas of an elastic job, and add an event when it is resized."""
    if not view.gang.is_elastic:
        return plan
    previous, expected = view.status.elastic.get("expectedReplicas"), len(view.gang.members)
    size = {"currentReplicas": plan.status.aggregate.get("running", 0), "expectedReplicas": expected}
    changed = previous is not None and previous != expected and not plan.status.phase.is_final
    events = (
        (EventDraft(reason="Resized", message=f"{expected} replicas are wanted, {previous} were before"),)
        if changed
        else ()
    )
    return replace(plan, status=plan.status.but(elastic=size), tell=(*events, *plan.tell))


def _given_up(view: JobView) -> Iterator[tuple[ReplicaId, int]]:
    """Yield every replica that is no longer a member, and how many of its attempt numbers to skip."""
    members = {member.place for member in view.gang.members}
    last: dict[ReplicaId, int] = {}
    for place, was_seen in _recorded(view.status).items():
        if was_seen:
            last[place] = attempt_of(view.status, place)
    for pod in view.pods:
        # One that was made and not recorded before the job shrank.
        last[pod.place] = max(pod.attempt, last.get(pod.place, 0))
    for place, attempt in last.items():
        missing = attempt - attempt_of(view.status, place) + 1
        if place not in members and missing > 0:
            yield place, missing


def _recorded(status: JobStatus) -> dict[ReplicaId, bool]:
    """Return the places in the table of replicas, and of each whether its pod was seen."""
    return {
        ReplicaId(str(task["type"]), index): bool(row.get("uid"))
        for task in status.tasks
        for index, row in enumerate(task.get("replicas") or ())
    }
