"""The view of one job that all rules share, computed once per decision.

Before any rule looks at a job, three things are put into its status: the output of replicas that were scaled down and
still has to be uploaded, the attempt numbers that removed replicas have used, and new attempts for pods that were
deleted before anything of their gang ran. Such a pod says nothing about its program, so no restart is counted; without
it the others would wait forever, since a gang is scheduled only as a whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime

from paceline.model import reasons
from paceline.model.gang import FLUSH, ReplicaId, RestartScope
from paceline.model.job_status import JobStatus, Phase
from paceline.model.replica_record import ReplicaPhase, ReplicaRecord
from paceline.plan.job.attempts import ReplicaAttempt, current_attempts, with_attempts
from paceline.plan.job.conditions import SUSPENDED
from paceline.plan.job.restart_policy import RestartVerdict, evaluate
from paceline.plan.job.snapshot import Disruption, JobSnapshot, PodPhase, is_overdue, pod_name

# Phases of a first attempt that has written nothing.
UNSTARTED = (ReplicaPhase.CREATING, ReplicaPhase.PENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView(JobSnapshot):
    """A snapshot of a job with everything that follows from it; `status` is the one that rules build on."""

    # The status as it was read.
    stored: JobStatus
    replicas: tuple[ReplicaAttempt, ...]
    verdict: RestartVerdict
    # Attempts whose pods were deleted before they ran, and which are created again.
    recreated: tuple[ReplicaAttempt, ...] = ()
    # Overdue pods on lost nodes, by name, each with an explanation.
    lost: Mapping[str, str] = field(default_factory=dict)


def view_of(snapshot: JobSnapshot, now: datetime) -> JobView:
    """Return the view of a job."""
    stored, lost = snapshot.status, _lost(snapshot, now)
    pods = (
        replace(pod, disruption=Disruption(reason=reasons.NODE_LOST, message=lost[pod.name]))
        if pod.name in lost
        else pod
        for pod in snapshot.pods
    )
    snapshot = replace(snapshot, pods=tuple(pods))
    snapshot = replace(snapshot, status=_with_removed(snapshot, _unsaved_output(snapshot)))
    recreated = _unstarted(snapshot)
    status = with_attempts(snapshot.status, {replica.place: replica.attempt + 1 for replica in recreated})
    status = status.but(observed_generation=snapshot.generation)
    snapshot = replace(snapshot, status=status)
    replicas = current_attempts(snapshot)
    return JobView(
        **{entry.name: getattr(snapshot, entry.name) for entry in fields(JobSnapshot)},
        stored=stored,
        replicas=replicas,
        verdict=evaluate(snapshot.gang, status, replicas),
        recreated=recreated,
        lost=lost,
    )


def _lost(snapshot: JobSnapshot, now: datetime) -> dict[str, str]:
    """Return the pods that should have ended long ago on a lost node, each with an explanation."""
    lost = {}
    for pod in snapshot.ending_pods:
        node = (snapshot.nodes or {}).get(pod.node)
        if node is None or not is_overdue(pod, now) or not node.is_lost:
            continue
        if snapshot.waits_for_nodes and not node.is_certain:
            continue
        state = "is gone" if node.is_gone else f"is not ready{f' since {node.since}' if node.since else ''}"
        lost[pod_name(pod)] = f"node {pod.node} {state}, and pod {pod_name(pod)} has not ended there"
    return lost


def _with_removed(snapshot: JobSnapshot, unsaved: frozenset[ReplicaId]) -> JobStatus:
    """Return the status with a record of every replica that has or had pods.

    A removed replica is at an attempt that no pod has had, since it may be added again. A member without a record, as
    in a status that another version wrote, is at the attempt of its last pod.
    """
    members = {member.place for member in snapshot.gang.members}
    records = {record.place: record for record in snapshot.status.replicas}
    last: dict[ReplicaId, int] = {}
    for pod in snapshot.pods:
        last[pod.place] = max(pod.attempt, last.get(pod.place, 0))
    for place in sorted(members & last.keys() - records.keys()):
        records[place] = ReplicaRecord(place=place, attempt=last[place])
    for place in sorted({*records, *last} - members):
        record = records.get(place) or ReplicaRecord(place=place)
        number = max(record.attempt + bool(record.uid), last.get(place, -1) + 1)
        records[place] = replace(record.at(number), is_scaled_down=True, has_output=place in unsaved)
    return snapshot.status.but(replicas=tuple(records.values()))


def _unsaved_output(snapshot: JobSnapshot) -> frozenset[ReplicaId]:
    """Return the removed replicas that may have output that is not uploaded."""
    status = snapshot.status
    sidecars = {member.keeping.container for member in snapshot.gang.members if member.keeping is not None}
    if not snapshot.gang.is_elastic or not sidecars or status.phase.is_final:
        return frozenset(status.scaled_down)
    wrote = {
        *status.scaled_down,
        *(
            record.place
            for record in status.replicas
            if record.uid and (record.attempt or record.phase not in UNSTARTED)
        ),
        *(pod.place for pod in snapshot.pods if pod.attempt or pod.phase is not PodPhase.PENDING),
    }
    members = {member.place for member in snapshot.gang.members}
    return frozenset(place for place in wrote - members if not _is_uploaded(snapshot, place, sidecars))


def _is_uploaded(snapshot: JobSnapshot, place: ReplicaId, sidecars: set[str]) -> bool:
    """Return whether all output of a replica was uploaded, by its last pod or by an auxiliary pod."""
    if any(
        auxiliary.phase is PodPhase.SUCCEEDED
        for auxiliary in snapshot.auxiliary_pods
        if auxiliary.name == f"{FLUSH}{place}"
    ):
        return True
    pods = sorted((pod for pod in snapshot.pods if pod.place == place), key=lambda pod: pod.attempt)
    return bool(pods) and any(stage.name in sidecars and stage.exit_code == 0 for stage in pods[-1].stages)


def _unstarted(snapshot: JobSnapshot) -> tuple[ReplicaAttempt, ...]:
    """Return the attempts whose pods were deleted before anything of the gang ran."""
    status = snapshot.status
    # We delete pods ourselves of a job that is on hold or has ended. In a gang that restarts together only observers
    # are recreated alone.
    is_held = status.phase.is_final or status.phase is Phase.PAUSED or status.is_true(SUSPENDED) or status.ending
    is_gang = snapshot.gang.scope is RestartScope.GANG
    if is_held or (is_gang and not snapshot.gang.observer_roles):
        return ()
    pending = {record.place for record in status.replicas if record.phase is ReplicaPhase.PENDING}
    replicas = current_attempts(snapshot, status)
    single = (replica for replica in replicas if not is_gang or snapshot.gang.watches(replica.place))
    deleted = tuple(replica for replica in single if replica.phase is ReplicaPhase.DELETED and replica.place in pending)
    places = {replica.place for replica in deleted}
    return () if any(replica.has_started for replica in replicas if replica.place not in places) else deleted
