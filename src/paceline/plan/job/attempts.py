"""One try per place: the pod that is at it now, or what the last status remembers of it.

A pod that is not there was either never made or has vanished, and pods alone cannot tell which. The last status can:
its rows name the pods that were seen, by uid. A name that was seen once is never made again; the next try has its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from paceline.model.gang import FLUSH, Gang, Member, ReplicaId, RestartScope
from paceline.model.job_status import JobStatus, ReplicaPhase
from paceline.plan.job.view import ContainerSeen, JobView, PodPhase, PodSeen

DELETED_REASON = "Deleted"
# What Kubernetes says of a container that used more memory than it may.
MEMORY_KILL = "OOMKilled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """The current try of one place."""

    place: ReplicaId
    attempt: int
    name: str
    uid: str = ""
    phase: ReplicaPhase
    containers: tuple[ContainerSeen, ...] = ()
    reason: str = ""
    message: str = ""
    # What runs before and beside the author's containers.
    stages: tuple[ContainerSeen, ...] = ()
    # Why its pod gives way to somebody more important, if it does.
    gives_way: str = ""
    # The container whose end counts when several have failed.
    main: str = ""

    @property
    def has_failed(self) -> bool:
        """Return whether this try is over without success; a pod that somebody deleted is."""
        return self.phase in (ReplicaPhase.FAILED, ReplicaPhase.DELETED)

    @property
    def is_over(self) -> bool:
        """Return whether this try has ended, one way or the other."""
        return self.has_failed or self.phase is ReplicaPhase.SUCCEEDED

    @property
    def has_started(self) -> bool:
        """Return whether this try is past waiting."""
        return self.phase not in (ReplicaPhase.CREATING, ReplicaPhase.PENDING)

    @property
    def exit_code(self) -> int | None:
        """Return the exit code of the container that decided over the pod, if one is known."""
        ended = self._decisive()
        return ended.exit_code if ended else None

    @property
    def container(self) -> str:
        """Return the container that decided over the pod, if one did."""
        ended = self._decisive()
        return ended.name if ended else ""

    @property
    def killed_container(self) -> str | None:
        """Return the container that was killed for using too much memory, if one was and the try failed by it."""
        killed = (container.name for container in self.containers if container.reason == MEMORY_KILL)
        return next(killed, None) if self.has_failed else None

    @property
    def why(self) -> tuple[str, str]:
        """Return reason and message, the pod's own first, then those of the container that decided over it."""
        if self.reason:
            return self.reason, self.message
        ended = self._decisive()
        return (ended.reason, ended.message) if ended else ("", self.message)

    def _decisive(self) -> ContainerSeen | None:
        ended = [container for container in self.containers if container.exit_code is not None]
        failed = [container for container in ended if container.exit_code != 0]
        return next(
            (container for container in failed if container.name == self.main), next(iter(failed or ended), None)
        )


def attempt_of(status: JobStatus, place: ReplicaId) -> int:
    """Count the tries of a place; the sum never falls, so no name comes twice."""
    name = str(place)
    return status.attempt + status.member_attempts.get(name, 0) + status.releases.get(name, 0)


def begin_all(status: JobStatus, gang: Gang) -> JobStatus:
    """Begin the next try of all members, which are placed as one gang."""
    places = tuple(member.place for member in gang.members)
    number = max(attempt_of(status, place) for place in places) + 1
    return _numbered(status.but(attempt=status.attempt + 1), places, number)


def begin_together(status: JobStatus, replicas: tuple[Try, ...], restarting: tuple[Try, ...]) -> JobStatus:
    """Begin the next try of some members, which are placed as one gang, with those that wait for room already."""
    number = max(replica.attempt + (replica.has_started or replica in restarting) for replica in replicas)
    return _numbered(status, tuple(replica.place for replica in restarting), number)


def gang_size(gang: Gang, replicas: tuple[Try, ...]) -> int:
    """Count the pods that get room together; a member that comes back to others which run waits for nobody."""
    if gang.scope is RestartScope.GANG:
        return gang.needed
    under_way = [replica for replica in replicas if not replica.is_over]
    if any(replica.has_started for replica in under_way) or len({replica.attempt for replica in under_way}) != 1:
        return 1
    return max(gang.needed - (len(replicas) - len(under_way)), 1)


def comes_alone(gang: Gang, replicas: tuple[Try, ...]) -> bool:
    """Return whether an observer (e.g. an evaluator) is on another attempt and is scheduled alone."""
    is_watched = bool(gang.observer_roles) and gang.scope is RestartScope.GANG
    return is_watched and len({replica.attempt for replica in replicas}) > 1


def tries_of(view: JobView, status: JobStatus | None = None) -> tuple[Try, ...]:
    """Return the current try of every member, in their order; `status` is the one to go by, if not the last."""
    status = view.status if status is None else status
    pods = {pod.name: pod for pod in view.pods}
    rows = {row["name"]: row for task in view.status.tasks for row in task.get("replicas") or ()}
    replicas = []
    for member in view.gang.members:
        attempt = attempt_of(status, member.place)
        name = view.site.pod(member.place, attempt)
        if pod := pods.get(name):
            replica = _from_pod(pod, member, attempt)
            was_ended = view.status.phase.is_final and pod.is_deleting
            replicas.append(_cleaned(replica, rows.get(name, {})) if was_ended else replica)
        else:
            replicas.append(_from_row(rows.get(name, {}), member, attempt=attempt, name=name))
    return tuple(_flushed(view, member, replica) for member, replica in zip(view.gang.members, replicas, strict=True))


def older_pods(view: JobView, replicas: tuple[Try, ...]) -> tuple[PodSeen, ...]:
    """Return the pods that are no current try."""
    current = {replica.name for replica in replicas}
    return tuple(pod for pod in view.pods if pod.name not in current)


def _numbered(status: JobStatus, places: tuple[ReplicaId, ...], number: int) -> JobStatus:
    """Return the status with one attempt number for all places: pods that share it form a gang."""
    spent = {str(place): status.attempt + status.member_attempts.get(str(place), 0) for place in places}
    releases = {**status.releases, **{name: number - spent_attempts for name, spent_attempts in spent.items()}}
    return status.but(releases={name: count for name, count in releases.items() if count})


def _flushed(view: JobView, member: Member, replica: Try) -> Try:
    """Return the replica with its sidecar completed if another pod has copied its output."""
    flushes = (
        auxiliary
        for auxiliary in view.errands
        if auxiliary.phase is PodPhase.SUCCEEDED and auxiliary.name == f"{FLUSH}{member.place}"
    )
    errand = next(flushes, None)
    if errand is None or member.keeping is None:
        return replica
    name = member.keeping.container
    sidecar = ContainerSeen(name=name, state="Terminated", exit_code=0, reason="Completed", message=errand.message)
    return replace(replica, stages=(*(stage for stage in replica.stages if stage.name != name), sidecar))


def _from_pod(pod: PodSeen, member: Member, attempt: int) -> Try:
    return Try(
        place=member.place,
        attempt=attempt,
        name=pod.name,
        uid=pod.uid,
        phase=ReplicaPhase(pod.phase.value),
        containers=pod.containers,
        reason=pod.reason,
        message=pod.message,
        stages=pod.stages,
        gives_way=pod.gives_way,
        main=member.main,
    )


def _cleaned(replica: Try, row: Mapping[str, Any]) -> Try:
    """Return a replica that was stopped because the job ended as deleted, not failed."""
    if replica.phase is not ReplicaPhase.FAILED or row.get("phase") == ReplicaPhase.FAILED.value:
        return replica
    return replace(replica, phase=ReplicaPhase.DELETED, reason=DELETED_REASON, message="")


def _from_row(row: Mapping[str, Any], member: Member, *, attempt: int, name: str) -> Try:
    if not row.get("uid"):
        return Try(place=member.place, attempt=attempt, name=name, phase=ReplicaPhase.CREATING)
    phase = ReplicaPhase(row["phase"])
    gone = not phase.is_final
    return Try(
        place=member.place,
        attempt=attempt,
        name=name,
        main=member.main,
        uid=row["uid"],
        # How a try ended is remembered after its pod has gone; a try that had not ended is lost with its pod.
        phase=ReplicaPhase.DELETED if gone else phase,
        containers=tuple(_container(entry) for entry in row.get("containers") or ()),
        reason=DELETED_REASON if gone else row.get("reason", ""),
        message="" if gone else row.get("message", ""),
        stages=tuple(_container(entry) for entry in row.get("stages") or ()),
    )


def _container(row: Mapping[str, Any]) -> ContainerSeen:
    return ContainerSeen(
        name=row["name"],
        state=row["state"],
        exit_code=row.get("exitCode"),
        reason=row.get("reason", ""),
        message=row.get("message", ""),
    )
