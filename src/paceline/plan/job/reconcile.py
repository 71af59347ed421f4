"""Create the pods that are missing and report how far the job is: the last rule, which always applies."""

from datetime import datetime

from paceline.model.gang import RestartScope
from paceline.model.replica_record import ReplicaPhase
from paceline.plan.job.attempts import comes_alone, gang_size, older_pods, unfinished
from paceline.plan.job.conditions import with_failure, with_progress
from paceline.plan.job.deadlines import check_stall
from paceline.plan.job.plan import NewPod, Plan, earliest
from paceline.plan.job.reporting import lost_replica_events, observed_status, transition_events
from paceline.plan.job.restart import is_restart_requested
from paceline.plan.job.restart_policy import backoff_until
from paceline.plan.job.snapshot import PodSnapshot
from paceline.plan.job.view import JobView


def reconcile_replicas(view: JobView, now: datetime) -> Plan:
    """Create missing pods once the pods of earlier attempts have ended, and report the progress."""
    old = tuple(pod for pod in older_pods(view, view.replicas) if not pod.phase.is_final)
    # A requested restart ends the back-off.
    not_before = None if is_restart_requested(view) else backoff_until(view.status, now)
    create = () if not_before else _missing(view, old)
    status = observed_status(view, now).but(start_after=not_before)
    status = with_failure(view.gang, status, view.replicas, now)
    status = with_progress(view.gang, status, view.replicas, now, old=old)
    stall = check_stall(view, now)
    return Plan(
        status=status,
        delete=unfinished(old),
        create=create,
        wake_at=earliest(status.start_after, stall.check_at),
        check_logs=stall.logs,
        events=(*transition_events(view.status, status), *lost_replica_events(view)),
    )


def _missing(view: JobView, old: tuple[PodSnapshot, ...]) -> tuple[NewPod, ...]:
    # Old and new ranks must never share a rendezvous, nor two attempts one replica: the old ones end first.
    if old and _is_new_rendezvous(view):
        return ()
    taken = {pod.place for pod in old}
    size, is_alone = gang_size(view.gang, view.replicas), comes_alone(view.gang, view.replicas)
    return tuple(
        NewPod(
            place=replica.place,
            attempt=replica.attempt,
            gang_size=1 if is_alone and view.gang.watches(replica.place) else size,
        )
        for replica in view.replicas
        if replica.phase is ReplicaPhase.CREATING and replica.place not in taken
    )


def _is_new_rendezvous(view: JobView) -> bool:
    """Return whether new pods form a new group: in Gang scope always, in elastic jobs when the leader is new."""
    is_leader_new = any(
        replica.place == view.gang.leader and replica.phase is ReplicaPhase.CREATING for replica in view.replicas
    )
    return view.gang.scope is RestartScope.GANG or (view.gang.is_elastic and is_leader_new)
