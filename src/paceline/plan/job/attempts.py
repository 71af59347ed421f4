"""The current attempt of every replica: its pod, or what the last status recorded of it.

A missing pod was either never created or was deleted, and the pods alone cannot tell which. The last status can: it
records the uids of pods that existed. A pod name is never used twice; every attempt has its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from paceline.model import reasons
from paceline.model.gang import FLUSH, Gang, Member, ReplicaId, RestartPolicy, RestartScope
from paceline.model.job_status import JobStatus, ReplicaPhase
from paceline.plan.job.snapshot import ContainerState, JobSnapshot, PodPhase, PodSnapshot

# The reason of a container that exceeded its memory limit.
MEMORY_KILL = "OOMKilled"


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
    # Why its pod is preempted; empty if it is not.
    preemption: str = ""
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


def attempt_of(status: JobStatus, place: ReplicaId) -> int:
    """Return the number of a replica's current attempt; it never decreases, so no pod name is used twice."""
    name = str(place)
    return status.attempt + status.member_attempts.get(name, 0) + status.releases.get(name, 0)


def begin_all(status: JobStatus, gang: Gang) -> JobStatus:
    """Return the status with the next attempt of all members, which are scheduled as one gang."""
    places = tuple(member.place for member in gang.members)
    number = max(attempt_of(status, place) for place in places) + 1
    return _numbered(status.but(attempt=status.attempt + 1), places, number)


def begin_together(
    status: JobStatus, replicas: tuple[ReplicaAttempt, ...], restarting: tuple[ReplicaAttempt, ...]
) -> JobStatus:
    """Return the status with the next attempt of some members, scheduled as one gang with those that are pending."""
    number = max(replica.attempt + (replica.has_started or replica in restarting) for replica in replicas)
    return _numbered(status, tuple(replica.place for replica in restarting), number)


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
    rows = {row["name"]: row for task in view.status.tasks for row in task.get("replicas") or ()}
    replicas = []
    for member in view.gang.members:
        attempt = attempt_of(status, member.place)
        name = view.naming.pod(member.place, attempt)
        if pod := pods.get(name):
            replica = _from_pod(pod, member, attempt)
            was_ended = view.status.phase.is_final and pod.is_deleting
            replicas.append(_cleaned(replica, rows.get(name, {})) if was_ended else replica)
        else:
            replicas.append(_from_row(rows.get(name, {}), member, attempt=attempt, name=name))
    return tuple(_flushed(view, member, replica) for member, replica in zip(view.gang.members, replicas, strict=True))


def older_pods(view: JobSnapshot, replicas: tuple[ReplicaAttempt, ...]) -> tuple[PodSnapshot, ...]:
    """Return the pods that belong to no current attempt."""
    current = {replica.name for replica in replicas}
    return tuple(pod for pod in view.pods if pod.name not in current)


def unfinished(pods: tuple[PodSnapshot, ...]) -> tuple[str, ...]:
    """Return the names of pods that may still run and are not being deleted yet."""
    return tuple(pod.name for pod in pods if not pod.phase.is_final and not pod.is_deleting)


def _numbered(status: JobStatus, places: tuple[ReplicaId, ...], number: int) -> JobStatus:
    """Return the status with one attempt number for all places: pods that share it form a gang."""
    spent = {str(place): status.attempt + status.member_attempts.get(str(place), 0) for place in places}
    releases = {**status.releases, **{name: number - spent_attempts for name, spent_attempts in spent.items()}}
    return status.but(releases={name: count for name, count in releases.items() if count})


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
        preemption=pod.preemption,
        main=member.main,
        restart=member.restart,
    )


def _cleaned(replica: ReplicaAttempt, row: Mapping[str, Any]) -> ReplicaAttempt:
    """Return a replica that was stopped because the job ended as deleted, not failed."""
    if replica.phase is not ReplicaPhase.FAILED or row.get("phase") == ReplicaPhase.FAILED.value:
        return replica
    return replace(replica, phase=ReplicaPhase.DELETED, reason=reasons.DELETED, message="")


def _from_row(row: Mapping[str, Any], member: Member, *, attempt: int, name: str) -> ReplicaAttempt:
    if not row.get("uid"):
        return ReplicaAttempt(place=member.place, attempt=attempt, name=name, phase=ReplicaPhase.CREATING)
    phase = ReplicaPhase(row["phase"])
    gone = not phase.is_final
    return ReplicaAttempt(
        place=member.place,
        attempt=attempt,
        name=name,
        main=member.main,
        restart=member.restart,
        uid=row["uid"],
        # The result of an attempt outlives its pod; an attempt without a result is lost with its pod.
        phase=ReplicaPhase.DELETED if gone else phase,
        containers=tuple(_container(entry) for entry in row.get("containers") or ()),
        reason=reasons.DELETED if gone else row.get("reason", ""),
        message="" if gone else row.get("message", ""),
        stages=tuple(_container(entry) for entry in row.get("stages") or ()),
    )


def _container(row: Mapping[str, Any]) -> ContainerState:
    return ContainerState(
        name=row["name"],
        state=row["state"],
        exit_code=row.get("exitCode"),
        reason=row.get("reason", ""),
        message=row.get("message", ""),
    )
