"""The pods of a job: which replica and attempt they are, their state, and which one is the leader."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paceline.apimachinery.meta import Object, is_deleting, labels_of, name_of
from paceline.apimachinery.pods import ORDINARY_WAITS, TERMINAL_PHASES, pod_reason
from paceline.apimachinery.timestamps import from_wire
from paceline.model import well_known_labels
from paceline.model.gang import ReplicaId

LEADER_ROLE = "master"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPod:
    """One attempt of a replica, read from its pod."""

    name: str
    place: ReplicaId
    attempt: int
    phase: str
    is_leader: bool = False
    is_deleting: bool = False
    # Restarts of its first container, inside the same pod.
    restarts: int = 0
    exit_code: int | None = None
    # Why it is waiting or has failed, as a reason and a message; empty if there is nothing to report.
    reason: str = ""
    message: str = ""
    node: str = ""
    # Whether a process has started, so that there is a log.
    has_started: bool = False
    started: datetime | None = None
    ended: datetime | None = None

    @property
    def is_final(self) -> bool:
        """Return True if this pod will never run again."""
        return self.phase in TERMINAL_PHASES


def replica_pods(pods: Iterable[Object]) -> tuple[ReplicaPod, ...]:
    """Return the replica pods of one job, ordered by role, index and attempt; other pods are left out."""
    read = [member for pod in pods if (member := replica_pod(pod)) is not None]
    return tuple(sorted(read, key=lambda member: (member.place, member.attempt)))


def replica_pod(pod: Object) -> ReplicaPod | None:
    """Return one replica pod; None if its labels do not name a replica."""
    labels = labels_of(pod)
    role, index = labels.get(well_known_labels.REPLICA_TYPE), labels.get(well_known_labels.REPLICA_INDEX, "")
    if not role or not index.isdigit():
        return None
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or []
    first: Mapping[str, Any] = containers[0] if containers else {}
    state = first.get("state") or {}
    ended = _ended(containers)
    reason, message = why(status)
    attempt = labels.get(well_known_labels.ATTEMPT, "0")
    return ReplicaPod(
        name=name_of(pod),
        place=ReplicaId(role, int(index)),
        attempt=int(attempt) if attempt.isdigit() else 0,
        phase=str(status.get("phase") or "Pending"),
        is_leader=labels.get(well_known_labels.JOB_ROLE) == LEADER_ROLE,
        is_deleting=is_deleting(pod),
        restarts=int(first.get("restartCount") or 0),
        exit_code=ended.get("exitCode"),
        reason=reason,
        message=message,
        node=str((pod.get("spec") or {}).get("nodeName") or ""),
        has_started=bool(state.get("running") is not None or state.get("terminated") or first.get("restartCount")),
        started=_moment((state.get("running") or state.get("terminated") or {}).get("startedAt")),
        ended=_moment(ended.get("finishedAt")),
    )


def latest(pods: Iterable[ReplicaPod]) -> tuple[ReplicaPod, ...]:
    """Return the last attempt of every replica."""
    by_place: dict[ReplicaId, ReplicaPod] = {}
    for pod in pods:
        newest = by_place.get(pod.place)
        if newest is None or pod.attempt >= newest.attempt:
            by_place[pod.place] = pod
    return tuple(by_place[place] for place in sorted(by_place))


def last_attempts(pods: Iterable[ReplicaPod]) -> tuple[ReplicaPod, ...]:
    """Return the last attempt of every replica that has a log."""
    return latest(pod for pod in pods if pod.has_started)


def previous_attempts(pods: Iterable[ReplicaPod]) -> tuple[ReplicaPod, ...]:
    """Return the previous attempt of every replica: an earlier pod, or the same pod restarted in place."""
    started = [pod for pod in pods if pod.has_started]
    last = {pod.place: pod for pod in latest(started)}
    earlier = latest(pod for pod in started if pod.attempt < last[pod.place].attempt and not last[pod.place].restarts)
    restarted = [pod for pod in last.values() if pod.restarts]
    return tuple(sorted((*earlier, *restarted), key=lambda pod: pod.place))


def no_log(job: str, pods: Iterable[ReplicaPod], selected: Iterable[ReplicaPod], *, is_previous: bool) -> str:
    """Return why there is no log to show, and what is available."""
    members = sorted({str(pod.place) for pod in pods})
    if not members:
        return f"{job} has no pods, so it has no log; see `paceline describe`"
    waiting = list(selected)
    if not waiting:
        return f"{job} has no such replica; it has: {', '.join(members)}"
    if is_previous:
        return f"{waiting[0].place} of {job} has run only once, so it has no previous log"
    if waiting[0].phase == "Failed":
        return f"{waiting[0].place} of {job} failed before its command started; see `paceline describe` for the stage"
    reason = f": {waiting[0].reason}" if waiting[0].reason else ""
    return f"{waiting[0].place} of {job} has not started yet{reason}; add -f to wait for it"


def leader_id(pods: Iterable[ReplicaPod]) -> ReplicaId | None:
    """Return the leader: the replica labelled as such, or the first one."""
    ordered = sorted(pods, key=lambda pod: (not pod.is_leader, pod.place))
    return ordered[0].place if ordered else None


def first_failed(pods: Iterable[ReplicaPod]) -> ReplicaPod | None:
    """Return the pod that failed first: others were often stopped because of it."""
    failed = [pod for pod in pods if pod.phase == "Failed"]
    timed = [pod for pod in failed if pod.ended is not None]
    if timed:
        return min(timed, key=lambda pod: (pod.ended, pod.place))
    return failed[0] if failed else None


def waiting_of(pods: Iterable[ReplicaPod]) -> str:
    """Return what the first pending pod is waiting for; empty if unknown."""
    for pod in pods:
        if pod.phase == "Pending" and pod.reason:
            return f"{pod.place}: {pod.reason}{': ' + pod.message if pod.message else ''}"
    return ""


def why(status: Mapping[str, Any]) -> tuple[str, str]:
    """Return the most specific reason and message of a pod: its own, its scheduling, then a container's."""
    reason, message = pod_reason(status)
    if reason:
        return reason, message
    # Init containers may wait for an image that does not exist. How they ended is reported elsewhere.
    for container in status.get("initContainerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason", "PodInitializing") not in ORDINARY_WAITS:
            return str(waiting["reason"]), str(waiting.get("message") or "")
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        details = state.get("waiting") or state.get("terminated") or {}
        reason = str(details.get("reason") or "")
        is_ordinary = reason in ORDINARY_WAITS and not details.get("message")
        if reason and not is_ordinary and not (reason == "Completed" and not details.get("exitCode")):
            return reason, str(details.get("message") or "")
    return "", ""


def _ended(containers: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the terminated state of the containers: the first failure, or else the first exit."""
    ends = [(container.get("state") or {}).get("terminated") for container in containers]
    terminated = [end for end in ends if end]
    return next((end for end in terminated if end.get("exitCode")), terminated[0] if terminated else {})


def _moment(text: object) -> datetime | None:
    try:
        return from_wire(str(text)) if text else None
    except ValueError:
        return None
