"""Pods that somebody deleted before anything of their gang ran: they are made again, which is no restart.

Such a pod says nothing about its program, so no policy is asked and no restart is counted. Without it the others would
wait for ever, since a gang gets room only as a whole.
"""

from dataclasses import replace

from paceline.model.gang import RestartScope
from paceline.model.job_status import Phase, ReplicaPhase
from paceline.plan.job.attempts import Try, tries_of
from paceline.plan.job.plan import EventDraft
from paceline.plan.job.report.conditions import SUSPENDED, is_true
from paceline.plan.job.view import JobView

REMADE = "Remade"


def unstarted_pods(view: JobView) -> tuple[Try, ...]:
    """Find the tries whose pods are gone, where nothing of the gang has run as far as anybody knows."""
    status = view.status
    # Whoever is ended by us went before it ran for a reason; in a gang that begins anew together, all are judged but
    # those who only watch.
    is_held = status.phase.is_final or status.phase is Phase.PAUSED or is_true(status, SUSPENDED) or status.ending
    is_gang = view.gang.scope is RestartScope.GANG
    if is_held or (is_gang and not view.gang.observer_roles):
        return ()
    rows = (row for task in status.tasks for row in task.get("replicas") or ())
    waited = {row["name"] for row in rows if row.get("phase") == ReplicaPhase.PENDING.value}
    replicas = tries_of(view)
    alone = (replica for replica in replicas if not is_gang or view.gang.watches(replica.place))
    deleted = tuple(replica for replica in alone if replica.phase is ReplicaPhase.DELETED and replica.name in waited)
    places = {replica.place for replica in deleted}
    return () if any(replica.has_started for replica in replicas if replica.place not in places) else deleted


def with_new_attempts(view: JobView, deleted: tuple[Try, ...]) -> JobView:
    """Count the places that tries have left: whoever is made there next is a new try, with its own name."""
    releases = dict(view.status.releases)
    for replica in deleted:
        releases[str(replica.place)] = releases.get(str(replica.place), 0) + 1
    return replace(view, status=view.status.but(releases=releases))


def say_remade(deleted: tuple[Try, ...]) -> tuple[EventDraft, ...]:
    """Return an event for every recreated pod."""
    return tuple(
        EventDraft(
            reason=REMADE,
            message=f"pod {replica.name} was deleted before it ran; {replica.place} is made again, "
            "and no restart is counted",
        )
        for replica in deleted
    )
