"""Turn what the caches hold into what a decision may look at."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from paceline.errors import Invalid
from paceline.kinds import catalog
from paceline.objects import labels
from paceline.objects.gang import Place
from paceline.objects.meta import Object, annotations_of, is_deleting, labels_of, name_of, uid_of
from paceline.objects.status import JobStatus
from paceline.objects.times import from_wire
from paceline.plan.seen import ContainerSeen, PodPhase, PodSeen, Seen


def look(job: Object, pods: tuple[Object, ...], last_lines: Mapping[str, tuple[str, ...]]) -> Seen:
    """Expand the job and read its pods; Invalid when the job breaks a rule of its kind.

    The rules are checked here again because a real Kubernetes checks only the schema.
    """
    if faults := catalog.faults(job):
        raise Invalid(faults)
    status = JobStatus.from_wire(job.get("status") or {})
    site, gang = catalog.expand(job, status.ports, is_resumed=status.resumes > 0)
    return Seen(
        site=site,
        gang=gang,
        pods=tuple(seen for pod in pods if (seen := pod_seen(pod)) is not None),
        status=status,
        generation=int(job["metadata"].get("generation", 1)),
        is_paused=catalog.is_paused(job),
        is_suspended=catalog.is_suspended(job),
        created_at=_created_at(job),
        restart_wish=annotations_of(job).get(labels.RESTART, ""),
        last_lines=last_lines,
    )


def _created_at(job: Object) -> datetime | None:
    told = job["metadata"].get("creationTimestamp")
    return from_wire(told) if told else None


def pod_seen(pod: Object) -> PodSeen | None:
    """Read one pod of a job; None for a pod that does not say which member it is."""
    told = labels_of(pod)
    if labels.REPLICA_TYPE not in told or not told.get(labels.REPLICA_INDEX, "").isdigit():
        return None
    status = pod.get("status") or {}
    reason, message = why_of(status)
    attempt = told.get(labels.ATTEMPT, "0")
    return PodSeen(
        name=name_of(pod),
        uid=uid_of(pod),
        place=Place(told[labels.REPLICA_TYPE], int(told[labels.REPLICA_INDEX])),
        attempt=int(attempt) if attempt.isdigit() else 0,
        phase=PodPhase(status.get("phase") or PodPhase.PENDING),
        containers=tuple(_container(each) for each in status.get("containerStatuses") or ()),
        is_deleting=is_deleting(pod),
        reason=reason,
        message=message,
    )


def _container(wire: dict[str, Any]) -> ContainerSeen:
    for word, told in (wire.get("state") or {}).items():
        return ContainerSeen(
            name=str(wire.get("name", "")),
            state=word[:1].upper() + word[1:],
            exit_code=told.get("exitCode"),
            reason=str(told.get("reason") or ""),
            message=str(told.get("message") or ""),
            finished_at=from_wire(told["finishedAt"]) if told.get("finishedAt") else None,
        )
    return ContainerSeen(name=str(wire.get("name", "")), state="Unknown")


# A container that waits only because it is being made tells nobody anything.
_ORDINARY_WAITS = frozenset({"ContainerCreating", "PodInitializing"})


def why_of(status: dict[str, Any]) -> tuple[str, str]:
    """Find the most telling reason a pod gives: its own, its placement's, then a container's."""
    if status.get("reason"):
        return str(status["reason"]), str(status.get("message") or "")
    for condition in status.get("conditions") or ():
        # Also that volumes are missing, which only our own node agent says there.
        is_telling = condition.get("type") in ("PodScheduled", "PodReadyToStartContainers") and condition.get("reason")
        if is_telling and condition.get("status") == "False":
            return str(condition["reason"]), str(condition.get("message") or "")
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") and waiting["reason"] not in _ORDINARY_WAITS:
            return str(waiting["reason"]), str(waiting.get("message") or "")
    return "", ""
