"""The current attempt of every replica: its pod, or what the last status recorded of it.

A missing pod was either never created or was deleted, and the pods alone cannot tell which. The last status can: it
records the uids of pods that existed. A pod name is never used twice; every attempt has its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from paceline.model import reasons
from paceline.model.gang import FLUSH, Gang, Member, ReplicaId, RestartPolicy, RestartScope
from paceline.model.job_status import JobStatus
from paceline.model.replica_record import ContainerState, ReplicaPhase, ReplicaRecord
from paceline.plan.job.snapshot import Disruption, JobSnapshot, PodPhase, PodSnapshot

# The reason of a container that exceeded its memory limit.
MEMORY_KILL = "OOMKilled"
# A job may have thousands of replicas, and its status must stay small.
MAX_MESSAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaAttempt:
    """The current attempt of one replica."""

    place: ReplicaId
    attempt: int
    name: str
    uid: str = ""
    phase: ReplicaPhase
    containers: tuple[ContainerState, ...] = ()
    reason: str = ""
    message: str = ""
    # Our own init containers and sidecars.
    stages: tuple[ContainerState, ...] = ()
    # Why the cluster takes its pod away; None if it does not.
    disruption: Disruption | None = None
    # The container whose exit code counts if several failed.
    main: str = ""
    restart: RestartPolicy = RestartPolicy.ON_FAILURE

    @property
    def has_failed(self) -> bool:
        """Whether this attempt ended without success, or its pod was deleted."""
        return self.phase in (ReplicaPhase.FAILED, ReplicaPhase.DELETED)

    @property
    def is_over(self) -> bool:
        """Whether this attempt has ended."""
        return self.has_failed or self.phase is ReplicaPhase.SUCCEEDED

    @property
    def has_started(self) -> bool:
        """Whether the pod of this attempt is no longer pending."""
        return self.phase not in (ReplicaPhase.CREATING, ReplicaPhase.PENDING)

    @property
    def exit_code(self) -> int | None:
        """The exit code of the container that determined the pod's result, if known."""
        ended = self._decisive()
        return ended.exit_code if ended else None

    @property
    def container(self) -> str:
        """The name of the container that determined the pod's result; empty if none did."""
        ended = self._decisive()
        return ended.name if ended else ""

    @property
    def killed_container(self) -> str | None:
        """The name of the OOM-killed container of a failed attempt, if there is one."""
        killed = (container.name for container in self.containers if container.reason == MEMORY_KILL)
        return next(killed, None) if self.has_failed else None

    @property
    def why(self) -> tuple[str, str]:
        """Reason and message of the pod, or else of the container that determined its result."""
        if self.reason:
            return self.reason, self.message
        ended = self._decisive()
        return (ended.reason, ended.message) if ended else ("", self.message)

    def _decisive(self) -> ContainerState | None:
        ended = [container for container in self.containers if container.exit_code is not None]
        failed = [container for container in ended if container.exit_code != 0]
        return next(
            (container for container in failed if container.name == self.main), next(iter(failed or ended), None)
        )


def begin_all(status: JobStatus, gang: Gang) -> JobStatus:
    """Return the status with the next attempt of all members, which are scheduled as one gang."""
    places = {member.place for member in gang.members}
    number = max((record.attempt for record in status.replicas if record.place in places), default=0) + 1
    return with_attempts(status.but(attempt=status.attempt + 1), dict.fromkeys(places, number))


def begin_together(
    status: JobStatus, replicas: tuple[ReplicaAttempt, ...], restarting: tuple[ReplicaAttempt, ...]
) -> JobStatus:
    """Return the status with the next attempt of some members, scheduled as one gang with those that are pending."""
    number = max(replica.attempt + (replica.has_started or replica in restarting) for replica in replicas)
    return with_attempts(status, {replica.place: number for replica in restarting})


def with_attempts(status: JobStatus, numbers: Mapping[ReplicaId, int]) -> JobStatus:
    """Return the status with new attempts of some replicas; those with the same number form a gang."""
    records = {record.place: record for record in status.replicas}
    for place, number in numbers.items():
        records[place] = records.get(place, ReplicaRecord(place=place)).at(number)
    return status.but(replicas=tuple(records.values()))


def with_records(status: JobStatus, replicas: tuple[ReplicaAttempt, ...]) -> JobStatus:
    """Return the status with the members recorded as they are now; records of other replicas stay."""
    records = {record.place: record for record in status.replicas}
    members = tuple(_recorded(records.pop(replica.place, None), replica) for replica in replicas)
    return status.but(replicas=(*members, *sorted(records.values(), key=lambda record: record.place)))


def is_up(gang: Gang, replicas: tuple[ReplicaAttempt, ...]) -> bool:
    """Return whether as many members have started as the job needs."""
    return sum(replica.has_started for replica in replicas) >= gang.needed


def gang_size(gang: Gang, replicas: tuple[ReplicaAttempt, ...]) -> int:
    """Return how many pods are scheduled together; 1 for a member that rejoins a running gang."""
    if gang.scope is RestartScope.GANG:
        return gang.needed
    under_way = [replica for replica in replicas if not replica.is_over]
    if any(replica.has_started for replica in under_way) or len({replica.attempt for replica in under_way}) != 1:
        return 1
    return max(gang.needed - (len(replicas) - len(under_way)), 1)


def comes_alone(gang: Gang, replicas: tuple[ReplicaAttempt, ...]) -> bool:
    """Return whether an observer (e.g. an evaluator) is on another attempt and is scheduled alone."""
    is_watched = bool(gang.observer_roles) and gang.scope is RestartScope.GANG
    return is_watched and len({replica.attempt for replica in replicas}) > 1


def current_attempts(view: JobSnapshot, status: JobStatus | None = None) -> tuple[ReplicaAttempt, ...]:
    """Return the current attempt of every member, by default according to the last status."""
    status = view.status if status is None else status
    pods = {pod.name: pod for pod in view.pods}
    numbers = {record.place: record.attempt for record in status.replicas}
    records = {record.place: record for record in view.status.replicas}
    # A new member joins the gang that its leader is in.
    first = numbers.get(view.gang.leader, 0)
    replicas = []
    for member in view.gang.members:
        attempt = numbers.get(member.place, first)
        record = records.get(member.place)
        if record is None or record.attempt != attempt:
            record = ReplicaRecord(place=member.place, attempt=attempt)
        name = view.naming.pod(member.place, attempt)
        if pod := pods.get(name):
            replica = _from_pod(pod, member, attempt)
            was_stopped = view.status.phase.is_final and pod.is_deleting
            replicas.append(_stopped(replica, record) if was_stopped else replica)
        else:
            replica = _from_record(record, member, name)
            is_lost = replica.phase is ReplicaPhase.DELETED
            disruption = view.departed.get(record.uid) if is_lost else None
            replicas.append(replace(replica, disruption=disruption))
    return tuple(_flushed(view, member, replica) for member, replica in zip(view.gang.members, replicas, strict=True))


def older_pods(view: JobSnapshot, replicas: tuple[ReplicaAttempt, ...]) -> tuple[PodSnapshot, ...]:
    """Return the pods that belong to no current attempt."""
    current = {replica.name for replica in replicas}
    return tuple(pod for pod in view.pods if pod.name not in current)


def unfinished(pods: tuple[PodSnapshot, ...]) -> tuple[str, ...]:
    """Return the names of pods that may still run and are not being deleted yet."""
    return tuple(pod.name for pod in pods if not pod.phase.is_final and not pod.is_deleting)


def _recorded(record: ReplicaRecord | None, replica: ReplicaAttempt) -> ReplicaRecord:
    return replace(
        record or ReplicaRecord(place=replica.place),
        attempt=replica.attempt,
        uid=replica.uid,
        phase=replica.phase,
        containers=tuple(replace(container, message="") for container in _ended(replica, replica.containers)),
        stages=_ended(replica, replica.stages),
        reason=replica.reason if replica.is_over else "",
        message=replica.message[:MAX_MESSAGE] if replica.is_over else "",
        is_scaled_down=False,
        has_output=False,
    )


def _ended(replica: ReplicaAttempt, containers: tuple[ContainerState, ...]) -> tuple[ContainerState, ...]:
    """Return the containers to record: all of an ended attempt, else those that have terminated."""
    return tuple(
        replace(container, message=container.message[:MAX_MESSAGE], started_at=None, finished_at=None)
        for container in containers
        if replica.phase.is_final or container.exit_code is not None
    )


def _flushed(view: JobSnapshot, member: Member, replica: ReplicaAttempt) -> ReplicaAttempt:
    """Return the replica with its sidecar completed if another pod has copied its output."""
    if member.keeping is None:
        return replica
    flushes = (
        auxiliary
        for auxiliary in view.auxiliary_pods
        if auxiliary.phase is PodPhase.SUCCEEDED and auxiliary.name == f"{FLUSH}{member.place}"
    )
    flush = next(flushes, None)
    if flush is None:
        return replica
    name = member.keeping.container
    sidecar = ContainerState(name=name, state="Terminated", exit_code=0, reason="Completed", message=flush.message)
    return replace(replica, stages=(*(stage for stage in replica.stages if stage.name != name), sidecar))


def _from_pod(pod: PodSnapshot, member: Member, attempt: int) -> ReplicaAttempt:
    return ReplicaAttempt(
        place=member.place,
        attempt=attempt,
        name=pod.name,
        uid=pod.uid,
        phase=ReplicaPhase(pod.phase.value),
        containers=pod.containers,
        reason=pod.reason,
        message=pod.message,
        stages=pod.stages,
        disruption=pod.disruption,
        main=member.main,
        restart=member.restart,
    )


def _stopped(replica: ReplicaAttempt, record: ReplicaRecord) -> ReplicaAttempt:
    """Return a replica that was stopped because the job ended as deleted, not failed."""
    if replica.phase is not ReplicaPhase.FAILED or record.phase is ReplicaPhase.FAILED:
        return replica
    return replace(replica, phase=ReplicaPhase.DELETED, reason=reasons.DELETED, message="")


def _from_record(record: ReplicaRecord, member: Member, name: str) -> ReplicaAttempt:
    """Return an attempt without a pod: its result outlives the pod; without a result it is lost with the pod."""
    phase = record.phase if record.phase.is_final else ReplicaPhase.DELETED if record.uid else ReplicaPhase.CREATING
    is_deleted = phase is ReplicaPhase.DELETED
    return ReplicaAttempt(
        place=member.place,
        attempt=record.attempt,
        name=name,
        main=member.main,
        restart=member.restart,
        uid=record.uid,
        phase=phase,
        containers=record.containers,
        reason=reasons.DELETED if is_deleted else record.reason,
        message="" if is_deleted else record.message,
        stages=record.stages,
    )
