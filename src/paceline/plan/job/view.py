"""The view of one job that all rules share, computed once per decision.

Before any rule looks at a job, three things are put into its status: the output of replicas that were scaled down and
still has to be uploaded, the attempt numbers that removed replicas have used, and new attempts for pods that were
deleted before anything of their gang ran. Such a pod says nothing about its program, so no restart is counted; without
it the others would wait forever, since a gang is scheduled only as a whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from paceline.model.gang import FLUSH, ReplicaId, RestartScope
from paceline.model.job_status import JobStatus, Phase, ReplicaPhase
from paceline.plan.job.attempts import ReplicaAttempt, attempt_of, current_attempts
from paceline.plan.job.conditions import SUSPENDED, is_true
from paceline.plan.job.restart_policy import RestartVerdict, evaluate
from paceline.plan.job.snapshot import JobSnapshot, PodPhase, PodSnapshot

# Phases of a first attempt that has written nothing.
UNSTARTED = (ReplicaPhase.CREATING.value, ReplicaPhase.PENDING.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView(JobSnapshot):
    """A snapshot of a job with everything that follows from it; `status` is the one that rules build on."""

    # The status as it was read.
    stored: JobStatus
    replicas: tuple[ReplicaAttempt, ...]
    verdict: RestartVerdict
    # Attempts whose pods were deleted before they ran, and which are created again.
    recreated: tuple[ReplicaAttempt, ...] = ()


def view_of(snapshot: JobSnapshot) -> JobView:
    """Return the view of a job."""
    stored = snapshot.status
    snapshot = _with_scaled_down(snapshot)
    snapshot = _with_released_attempts(snapshot)
    recreated = _unstarted(snapshot)
    releases = dict(snapshot.status.releases)
    for replica in recreated:
        releases[str(replica.place)] = releases.get(str(replica.place), 0) + 1
    status = snapshot.status.but(releases=releases, observed_generation=snapshot.generation)
    replicas = current_attempts(snapshot, status)
    inputs = {entry.name: getattr(snapshot, entry.name) for entry in fields(JobSnapshot)}
    return JobView(
        **{**inputs, "status": status},
        stored=stored,
        replicas=replicas,
        verdict=evaluate(snapshot.gang, status, replicas),
        recreated=recreated,
    )


def recorded_replicas(status: JobStatus) -> dict[ReplicaId, bool]:
    """Return the replicas in the status, and of each whether its pod existed."""
    return {
        ReplicaId(str(task["type"]), index): bool(row.get("uid"))
        for task in status.tasks
        for index, row in enumerate(task.get("replicas") or ())
    }


def _with_released_attempts(snapshot: JobSnapshot) -> JobSnapshot:
    """Skip the attempt numbers of removed replicas, so that a replica that is added again has new pod names."""
    if snapshot.gang.scope is RestartScope.GANG:
        # All members restart there, under new names.
        return snapshot
    releases = dict(snapshot.status.releases)
    for place, count in _removed(snapshot):
        releases[str(place)] = releases.get(str(place), 0) + count
    return replace(snapshot, status=snapshot.status.but(releases=releases))


def _removed(snapshot: JobSnapshot) -> Iterator[tuple[ReplicaId, int]]:
    """Yield every replica that is no longer a member, and how many of its attempt numbers to skip."""
    members = {member.place for member in snapshot.gang.members}
    last: dict[ReplicaId, int] = {}
    for place, existed in recorded_replicas(snapshot.status).items():
        if existed:
            last[place] = attempt_of(snapshot.status, place)
    for pod in snapshot.pods:
        # A pod that was created but not recorded before the job shrank.
        last[pod.place] = max(pod.attempt, last.get(pod.place, 0))
    for place, attempt in last.items():
        missing = attempt - attempt_of(snapshot.status, place) + 1
        if place not in members and missing > 0:
            yield place, missing


def _with_scaled_down(snapshot: JobSnapshot) -> JobSnapshot:
    """Record the replicas that were removed and may have output that is not uploaded."""
    sidecars = {member.keeping.container for member in snapshot.gang.members if member.keeping is not None}
    if not snapshot.gang.is_elastic or not sidecars or snapshot.status.phase.is_final:
        return snapshot
    members = {member.place for member in snapshot.gang.members}
    wrote = {*snapshot.status.left, *_wrote(snapshot)} - members
    scaled_down = tuple(sorted(place for place in wrote if not _is_uploaded(snapshot, place, sidecars)))
    return replace(snapshot, status=snapshot.status.but(left=scaled_down))


def _wrote(snapshot: JobSnapshot) -> Iterator[ReplicaId]:
    """Yield the replicas that may have written output, according to status and pods."""
    for task in snapshot.status.tasks:
        for index, row in enumerate(task.get("replicas") or ()):
            place = ReplicaId(str(task["type"]), index)
            has_begun = row.get("phase") not in UNSTARTED or attempt_of(snapshot.status, place) > 0
            if row.get("uid") and has_begun:
                yield place
    yield from (pod.place for pod in snapshot.pods if pod.attempt or pod.phase is not PodPhase.PENDING)


def _is_uploaded(snapshot: JobSnapshot, place: ReplicaId, sidecars: set[str]) -> bool:
    """Return whether all output of a replica was uploaded, by its last pod or by an auxiliary pod."""
    if any(
        auxiliary.phase is PodPhase.SUCCEEDED
        for auxiliary in snapshot.auxiliary_pods
        if auxiliary.name == f"{FLUSH}{place}"
    ):
        return True
    pods = sorted((pod for pod in snapshot.pods if pod.place == place), key=lambda pod: pod.attempt)
    return bool(pods) and _has_uploaded(pods[-1], sidecars)


def _has_uploaded(pod: PodSnapshot, sidecars: set[str]) -> bool:
    return any(stage.name in sidecars and stage.exit_code == 0 for stage in pod.stages)


def _unstarted(snapshot: JobSnapshot) -> tuple[ReplicaAttempt, ...]:
    """Return the attempts whose pods were deleted before anything of the gang ran."""
    status = snapshot.status
    # We delete pods ourselves of a job that is on hold or has ended. In a gang that restarts together only observers
    # are recreated alone.
    is_held = status.phase.is_final or status.phase is Phase.PAUSED or is_true(status, SUSPENDED) or status.ending
    is_gang = snapshot.gang.scope is RestartScope.GANG
    if is_held or (is_gang and not snapshot.gang.observer_roles):
        return ()
    rows = (row for task in status.tasks for row in task.get("replicas") or ())
    pending = {row["name"] for row in rows if row.get("phase") == ReplicaPhase.PENDING.value}
    replicas = current_attempts(snapshot, status)
    single = (replica for replica in replicas if not is_gang or snapshot.gang.watches(replica.place))
    deleted = tuple(replica for replica in single if replica.phase is ReplicaPhase.DELETED and replica.name in pending)
    places = {replica.place for replica in deleted}
    return () if any(replica.has_started for replica in replicas if replica.place not in places) else deleted
