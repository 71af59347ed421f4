"""Build the snapshot of a job from the caches."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from sys import intern
from typing import Any

from paceline.apimachinery.meta import Object, annotations_of, condition_of, is_deleting, labels_of, name_of, uid_of
from paceline.apimachinery.pods import ORDINARY_WAITS, pod_reason, sidecars_of
from paceline.apimachinery.timestamps import from_wire
from paceline.apimachinery.untrusted import untrusted
from paceline.errors import Invalid
from paceline.kinds import registry
from paceline.model import reasons, well_known_labels
from paceline.model.gang import Gang, JobNaming, JobProgress, PodTools, ReplicaId
from paceline.model.job_status import JobStatus
from paceline.model.replica_record import ContainerState
from paceline.plan.job.disruption import OUT_OF_SERVICE
from paceline.plan.job.plan import LogRef
from paceline.plan.job.snapshot import (
    AuxiliaryPodSnapshot,
    Disruption,
    JobSnapshot,
    LogActivity,
    NodeSnapshot,
    PodPhase,
    PodSnapshot,
)
from paceline.plan.queueing.kueue import QueueState, placed

# Prefix of our own init containers and sidecars.
STAGE = "paceline-"
# Kubernetes' scheduler, which places pod by pod, and Kueue's label, by which it admits a job as a whole.
DEFAULT_SCHEDULER, KUEUE = "default-scheduler", "kueue.x-k8s.io/queue-name"
# What Kubernetes' scheduler says of a pod whose claims have no volumes; it does not say which claims.
UNBOUND = "unbound immediate PersistentVolumeClaims"
# The volume sources that are claims.
CLAIM_SOURCES = ("persistentVolumeClaim", "ephemeral")
# The fields that snapshots of pods are made of; and of the lists among them, the fields of their entries.
_PARTS = (
    (
        "metadata",
        (
            *("name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences"),
            *("deletionTimestamp", "deletionGracePeriodSeconds"),
        ),
    ),
    ("spec", ("nodeName", "initContainers", "volumes")),
    ("status", ("phase", "reason", "message", "conditions", "initContainerStatuses", "containerStatuses")),
)
_LISTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("metadata", "ownerReferences", ()),
    ("spec", "initContainers", ("name", "restartPolicy")),
    ("spec", "volumes", ("name", *CLAIM_SOURCES)),
    ("status", "conditions", ("type", "status", "reason", "message")),
    ("status", "initContainerStatuses", ("name", "state", "lastState")),
    ("status", "containerStatuses", ("name", "state", "lastState")),
)

# The number of jobs whose expanded specs are cached.
MAX_READINGS = 1000


@dataclass(kw_only=True)
class Reading:
    """One generation of a job's spec; derived values are computed on first use.

    The rules are checked here again because a real Kubernetes checks only the schema.
    """

    job: Object
    tools: PodTools = field(default_factory=PodTools)
    _is_checked: bool = field(init=False, default=False)
    _expanded: tuple[JobNaming, Gang] | None = field(init=False, default=None)

    def is_of(self, job: Object) -> bool:
        """Return whether this is the current generation of a job."""
        mine, other = self.job["metadata"], job["metadata"]
        return bool(mine["uid"] == other["uid"] and mine.get("generation") == other.get("generation") is not None)

    @cached_property
    def usual_ports(self) -> Mapping[str, int]:
        """The ports that the members agree on, with default numbers; Invalid if the spec has faults."""
        ports = registry.ports_of(self.job)
        self._is_checked = True
        return ports

    @cached_property
    def is_paused(self) -> bool:
        """Whether the job's author wants it paused."""
        return registry.is_paused(self.job)

    def expanded(self, status: JobStatus) -> tuple[JobNaming, Gang]:
        """Return the job as a gang, given its status; raise Invalid if it breaks a rule of its kind."""
        if not self._is_checked and (faults := registry.faults(self.job)):
            raise Invalid(faults)
        self._is_checked = True
        expanded = self._expanded
        progress = JobProgress(
            resumes=status.resumes, commit=status.source.get("commit", ""), scaled_down=status.scaled_down
        )
        if expanded is None or (expanded[0].ports, expanded[0].progress) != (status.ports, progress):
            expanded = self._expanded = registry.expand(self.job, status.ports, progress=progress, tools=self.tools)
        return expanded


class Readings:
    """A cache of the specs of recently reconciled jobs."""

    def __init__(self, tools: PodTools) -> None:
        self._tools = tools
        # At most one per job, least recently used first.
        self._known: dict[Hashable, Reading] = {}

    def of(self, key: Hashable, job: Object) -> Reading:
        """Return the reading of a job, from the cache if it is current."""
        reading = self._known.pop(key, None)
        if reading is None or not reading.is_of(job):
            reading = Reading(job=job, tools=self._tools)
        self._known[key] = reading
        if len(self._known) > MAX_READINGS:
            del self._known[next(iter(self._known))]
        return reading

    def forget(self, key: Hashable) -> None:
        """Drop a job from the cache."""
        self._known.pop(key, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsRead:
    """What was found in logs, beside the loop: by pod, and by container."""

    last_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    activity: Mapping[LogRef, LogActivity] = field(default_factory=dict)


def look(
    job: Object,
    reading: Reading,
    pods: tuple[Object, ...],
    *,
    logs: LogsRead,
    queueing: QueueState | None = None,
) -> JobSnapshot:
    """Put together what a job says, its status and its pods.

    Invalid when the job breaks a rule of its kind, Malformed when nobody can read what others wrote on it or its pods.
    What goes wrong in between is a bug of ours: a spec without faults can be expanded.
    """
    status = JobStatus.from_wire(job.get("status") or {})
    naming, gang = reading.expanded(status)
    auxiliary_pods = tuple(auxiliary for pod in pods if (auxiliary := auxiliary_pod_snapshot(pod)) is not None)
    annotations = annotations_of(job)
    is_admitted = queueing is None or queueing.is_admitted
    return JobSnapshot(
        naming=naming,
        gang=placed(gang, queueing.placements) if queueing is not None and queueing.placements else gang,
        pods=tuple(member_pod for pod in pods if (member_pod := pod_snapshot(pod)) is not None),
        status=status,
        auxiliary_pods=tuple(pod for pod in auxiliary_pods if pod.ends_at is None),
        ending_auxiliary_pods=tuple(pod for pod in auxiliary_pods if pod.ends_at is not None),
        waits_for_nodes=annotations.get(well_known_labels.NODE_LOST) == "Wait",
        generation=_generation(job),
        is_paused=reading.is_paused,
        is_suspended=registry.is_suspended(job) or not is_admitted,
        queueing=queueing,
        created_at=_created_at(job),
        restart_request=annotations.get(well_known_labels.RESTART, ""),
        asked_by=annotations.get(well_known_labels.ASKED_BY, ""),
        last_lines=logs.last_lines,
        log_activity=logs.activity,
    )


def has_gang_scheduler(job: Object, gang: Gang) -> bool:
    """Return whether the job says who starts all its pods or none: a queue, Kueue, or a scheduler of its own."""
    template = gang.member(gang.leader).template
    labels = {**labels_of(job), **((template.get("metadata") or {}).get("labels") or {})}
    scheduler = template["spec"].get("schedulerName") or DEFAULT_SCHEDULER
    return bool(gang.queue) or KUEUE in labels or scheduler != DEFAULT_SCHEDULER


@untrusted
def _generation(job: Object) -> int:
    return int(job["metadata"].get("generation", 1))


@untrusted
def _created_at(job: Object) -> datetime | None:
    created = job["metadata"].get("creationTimestamp")
    return from_wire(created) if created else None


def trimmed_pod(pod: Object) -> Object:
    """Return the fields of a pod that snapshots are made of; a trimmed pod stays as it is.

    A pod as the server sends it takes several times the memory, and jobs have many.
    """
    trimmed: Object = {part: _fields(pod.get(part) or {}, names) for part, names in _PARTS}
    if labels := trimmed["metadata"].get("labels"):
        trimmed["metadata"]["labels"] = _shared(labels)
    if volumes := trimmed["spec"].pop("volumes", None):
        trimmed["spec"]["volumes"] = [volume for volume in volumes if not volume.keys().isdisjoint(CLAIM_SOURCES)]
    for part, name, names in _LISTS:
        if entries := trimmed[part].get(name):
            trimmed[part][name] = [_shared(entry, names) for entry in entries]
    return trimmed


def _fields(obj: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: obj[name] for name in names if name in obj}


def _shared(obj: Mapping[str, Any], names: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return these fields of an object, or all, with strings that are kept once for all objects."""
    return {
        name: intern(value) if isinstance(value, str) else value
        for name, value in obj.items()
        if not names or name in names
    }


@untrusted
def pod_snapshot(pod: Object) -> PodSnapshot | None:
    """Return the snapshot of a member's pod; None for any other pod."""
    labels = labels_of(pod)
    if well_known_labels.REPLICA_TYPE not in labels or not labels.get(well_known_labels.REPLICA_INDEX, "").isdigit():
        return None
    status = pod.get("status") or {}
    reason, message = why_of(status)
    attempt = labels.get(well_known_labels.ATTEMPT, "0")
    return PodSnapshot(
        name=name_of(pod),
        uid=uid_of(pod),
        place=ReplicaId(labels[well_known_labels.REPLICA_TYPE], int(labels[well_known_labels.REPLICA_INDEX])),
        attempt=int(attempt) if attempt.isdigit() else 0,
        phase=PodPhase(status.get("phase") or PodPhase.PENDING),
        containers=(
            *_failed_first(pod),
            *(_container(status_entry) for status_entry in status.get("containerStatuses") or ()),
        ),
        is_deleting=is_deleting(pod),
        ends_at=_ends_at(pod),
        reason=reason,
        message=message,
        stages=tuple(_stage(stage) for stage in _inits(status) if str(stage.get("name")).startswith(STAGE)),
        disruption=disruption_of(pod),
        node=node_of(pod),
        is_forced=_is_forced(pod),
    )


@untrusted
def auxiliary_pod_snapshot(pod: Object) -> AuxiliaryPodSnapshot | None:
    """Return the snapshot of an auxiliary pod; None for any other pod."""
    labels = labels_of(pod)
    attempt = labels.get(well_known_labels.ATTEMPT, "0")
    if well_known_labels.ERRAND not in labels or not attempt.isdigit():
        return None
    status = pod.get("status") or {}
    ends = [
        container
        for wire in status.get("containerStatuses") or ()
        if (container := _container(wire)).exit_code is not None
    ]
    reason, message = why_of(status)
    return AuxiliaryPodSnapshot(
        name=labels[well_known_labels.ERRAND],
        pod=name_of(pod),
        attempt=int(attempt),
        phase=PodPhase(status.get("phase") or PodPhase.PENDING),
        message=ends[0].message if ends else message,
        reason="" if ends else reason,
        finished_at=ends[0].finished_at if ends else None,
        uid=uid_of(pod),
        ends_at=_ends_at(pod),
        node=node_of(pod),
        is_forced=_is_forced(pod),
    )


def node_of(pod: Object) -> str:
    """Return the node that a pod is assigned to; empty if there is none yet."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _ends_at(pod: Object) -> datetime | None:
    """Return when the grace period of a deleted pod ends, which is what Kubernetes writes as its deletion time."""
    return from_wire(pod["metadata"]["deletionTimestamp"]) if is_deleting(pod) else None


def _is_forced(pod: Object) -> bool:
    return is_deleting(pod) and pod["metadata"].get("deletionGracePeriodSeconds") == 0


def disruption_of(pod: Object) -> Disruption | None:
    """Return why the cluster takes a pod away; None if it does not.

    The scheduler marks a pod before it is deleted. Other marks count once the pod is being deleted or has ended: the
    deletion that they announce may fail.
    """
    condition = condition_of(pod, "DisruptionTarget") or {}
    if condition.get("status") != "True":
        return None
    reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
    if reason == reasons.PREEMPTION_BY_SCHEDULER:
        return Disruption(reason=reason, message=message or reason)
    if not is_deleting(pod) and not PodPhase((pod.get("status") or {}).get("phase") or PodPhase.PENDING).is_final:
        return None
    text = ": ".join(part for part in (reason, message) if part)
    where = f" from node {node}" if (node := node_of(pod)) else ""
    return Disruption(reason=reason, message=f"pod {name_of(pod)} was taken{where} ({text})")


@untrusted
def node_snapshot(node: Object) -> NodeSnapshot:
    """Return the snapshot of a node."""
    ready = condition_of(node, "Ready") or {}
    taints = (node.get("spec") or {}).get("taints") or ()
    return NodeSnapshot(
        is_ready=ready.get("status") == "True",
        is_out_of_service=any(taint.get("key") == OUT_OF_SERVICE for taint in taints),
        since=str(ready.get("lastTransitionTime") or ""),
    )


@untrusted
def unbound_claim(claim: Object) -> str:
    """Return which claim has no volume, and of which storage class it wants one; empty if it is bound."""
    if (claim.get("status") or {}).get("phase") == "Bound":
        return ""
    storage_class = (claim.get("spec") or {}).get("storageClassName")
    wanted = f"of storage class {storage_class}" if storage_class else "without a storage class"
    return f"claim {name_of(claim)}, {wanted}, is not bound"


def _inits(status: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return tuple(status.get("initContainerStatuses") or ())


def _failed_first(pod: Object) -> tuple[ContainerState, ...]:
    """Return the failed init containers; sidecars do not count."""
    sidecars = sidecars_of(pod)
    inits = (
        _container(container) for container in _inits(pod.get("status") or {}) if container.get("name") not in sidecars
    )
    return tuple(container for container in inits if container.exit_code)


def _stage(wire: dict[str, Any]) -> ContainerState:
    """Return the state of one of our own containers; one that waits for its restart counts as terminated."""
    container = _container(wire)
    is_past = container.state == "Waiting" and "terminated" in (wire.get("lastState") or {})
    return replace(container, state="Terminated") if is_past else container


def _container(wire: dict[str, Any]) -> ContainerState:
    for state, details in (wire.get("state") or {}).items():
        return ContainerState(
            name=str(wire.get("name", "")),
            state=state[:1].upper() + state[1:],
            exit_code=details.get("exitCode"),
            reason=str(details.get("reason") or ""),
            message=str(details.get("message") or ""),
            started_at=from_wire(details["startedAt"]) if details.get("startedAt") else None,
            finished_at=from_wire(details["finishedAt"]) if details.get("finishedAt") else None,
        )
    return ContainerState(name=str(wire.get("name", "")), state="Unknown")


def why_of(status: dict[str, Any]) -> tuple[str, str]:
    """Return the most specific reason of a pod: its own, that of its scheduling, then that of a container."""
    reason, message = pod_reason(status)
    if reason:
        return reason, message
    # Init containers come first: their image may be missing.
    first = _inits(status) if status.get("phase") == PodPhase.PENDING else ()
    for container in (*first, *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") and waiting["reason"] not in ORDINARY_WAITS:
            return str(waiting["reason"]), str(waiting.get("message") or "")
    return "", ""
