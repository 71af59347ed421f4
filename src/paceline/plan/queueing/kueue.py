"""Kueue: one Workload per job; no pod is created before it is admitted, and an evicted job gives its quota back.

Kueue's own integrations do the same for batch/v1 Jobs: https://kueue.sigs.k8s.io/docs/concepts/workload/.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from paceline.apimachinery.meta import Object, condition_of, has_condition, is_deleting, owned_metadata
from paceline.apimachinery.timestamps import to_wire
from paceline.apimachinery.untrusted import untrusted
from paceline.model import well_known_labels
from paceline.model.gang import Gang, JobNaming, Member, RestartPolicy, RestartScope
from paceline.model.job_status import JobStatus, Phase
from paceline.model.replica_record import ReplicaPhase

GROUP = "kueue.x-k8s.io"
# The versions that we can write, the preferred one first.
VERSIONS = ("v1beta2", "v1beta1")
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
UID_LABEL = "kueue.x-k8s.io/job-uid"
ADMITTED, RESERVED, EVICTED = "Admitted", "QuotaReserved", "Evicted"
FINISHED, REQUEUED, PODS_READY = "Finished", "Requeued", "PodsReady"
# Evictions after which the Workload is queued again at once; after others Kueue decides when.
REQUEUED_AFTER = frozenset({"Preempted", "NodeFailures"})
WAIT_FOR_RECOVERY = "WaitForRecovery"
MAX_MESSAGE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlacement:
    """What an admission adds to the pods of one role."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """Whether a queued job may run, and where; otherwise why not."""

    queue: str
    is_admitted: bool = False
    # Why it waits, for the job's author.
    message: str = ""
    # By role.
    placements: Mapping[str, PodPlacement] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPriority:
    """The priority class of a Workload, and its value."""

    name: str
    value: int
    # Whether it is a WorkloadPriorityClass of Kueue, not a PriorityClass of pods.
    is_of_kueue: bool = False

    def fields(self, version: str) -> dict[str, Any]:
        """Return it as the fields of a Workload's spec."""
        group, kind = (GROUP, "WorkloadPriorityClass") if self.is_of_kueue else ("scheduling.k8s.io", "PriorityClass")
        if version == "v1beta1":
            source = "kueue.x-k8s.io/workloadpriorityclass" if self.is_of_kueue else "scheduling.k8s.io/priorityclass"
            return {"priority": self.value, "priorityClassName": self.name, "priorityClassSource": source}
        return {"priority": self.value, "priorityClassRef": {"group": group, "kind": kind, "name": self.name}}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadView:
    """Everything that a decision about a Workload may look at."""

    queue: str
    gang: Gang
    # The status of the job as it is written now.
    status: JobStatus
    workload: Object | None
    # Whether the job was suspended or paused, so that it needs no quota.
    is_on_hold: bool = False
    # Whether a pod of the job may still run.
    has_live_pods: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPlan:
    """What to do with a Workload: at most one of these."""

    creates: bool = False
    deletes: bool = False
    # Whether the Workload takes part in its queue; None leaves it.
    is_active: bool | None = None
    # The whole status to write.
    status: Object | None = None


NOTHING = WorkloadPlan()


@untrusted
def queue_state(queue: str, workload: Object | None, flavors: Mapping[str, Object]) -> QueueState:
    """Return whether a job may run according to its Workload; `flavors` are all ResourceFlavors by name."""
    if workload is None or is_deleting(workload):
        return QueueState(queue=queue, message=f"queue {queue}: its Workload is being created")
    if has_condition(workload, EVICTED):
        return QueueState(queue=queue, message=f"queue {queue}: evicted: {_text(condition_of(workload, EVICTED))}")
    if not has_condition(workload, ADMITTED):
        return QueueState(queue=queue, message=f"queue {queue}: {_why_waiting(workload)}")
    try:
        placements = dict(_placements(workload, flavors))
    except KeyError as error:
        # The flavor will appear in the cache, or the admission will change.
        return QueueState(queue=queue, message=f"queue {queue}: admitted, but ResourceFlavor {error} does not exist")
    return QueueState(queue=queue, is_admitted=True, placements=placements)


def placed(gang: Gang, placements: Mapping[str, PodPlacement]) -> Gang:
    """Return the gang with the node selectors and tolerations of its admission in the pod templates."""
    members = (_placed(member, placements.get(pod_set_name(member.place.role))) for member in gang.members)
    return replace(gang, members=tuple(members))


def workload_name(kind: str, stem: str) -> str:
    """Return the name of the Workload of a job, given its kind and the prefix of its pods' names."""
    return f"{kind.lower()}-{stem}"


def pod_set_name(role: str) -> str:
    """Return the name of the pod set of a role, which must be a DNS label."""
    return role.lower()


def workload_manifest(
    naming: JobNaming,
    view: WorkloadView,
    *,
    version: str,
    priority: WorkloadPriority | None,
    owner: Mapping[str, Any],
) -> Object:
    """Return the Workload of a job; it is deleted with the job."""
    labels = {
        UID_LABEL: str(owner["uid"]),
        QUEUE_LABEL: view.queue,
        well_known_labels.OWNER_NAME: naming.job,
        well_known_labels.OWNER_KIND: str(owner["kind"]),
    }
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Workload",
        "metadata": owned_metadata(workload_name(str(owner["kind"]), naming.stem), naming.namespace, labels, owner),
        "spec": {
            "queueName": view.queue,
            "active": not view.is_on_hold,
            "podSets": pod_sets(view.gang),
            **(priority.fields(version) if priority else {}),
        },
    }


def pod_sets(gang: Gang) -> list[Object]:
    """Return one pod set per role, in the order of the gang; all members of a role need the same."""
    roles: dict[str, list[Member]] = {}
    for member in gang.members:
        roles.setdefault(pod_set_name(member.place.role), []).append(member)
    return [{"name": name, "count": len(members), "template": _template(members[0])} for name, members in roles.items()]


@untrusted
def decide_workload(view: WorkloadView, now: datetime) -> WorkloadPlan:
    """Return what to do with the Workload of a job, after the job's own status was written."""
    workload, is_over = view.workload, view.status.phase.is_final
    if workload is None:
        return NOTHING if is_over else WorkloadPlan(creates=True)
    if is_deleting(workload):
        return NOTHING
    is_finished = has_condition(workload, FINISHED)
    if is_over:
        return NOTHING if is_finished else WorkloadPlan(status=_finished(workload, view.status, now))
    # A Workload cannot change its size or its queue while it has quota; one that has finished cannot start again.
    if is_finished or _shape(workload) != _wanted_shape(view):
        return WorkloadPlan(deletes=True)
    if bool((workload.get("spec") or {}).get("active", True)) is view.is_on_hold:
        return WorkloadPlan(is_active=not view.is_on_hold)
    status = _progressed(workload, view, now)
    return NOTHING if status == (workload.get("status") or {}) else WorkloadPlan(status=status)


def _progressed(workload: Object, view: WorkloadView, now: datetime) -> Object:
    """Return the status of a Workload whose job is under way: its eviction, its ended pods, whether all run."""
    status = dict(workload.get("status") or {})
    evicted = condition_of(workload, EVICTED)
    if evicted is not None and has_condition(workload, EVICTED):
        is_idle = has_condition(workload, RESERVED) and not view.has_live_pods
        return _given_back(workload, status, evicted, now) if is_idle else status
    if not has_condition(workload, ADMITTED):
        return status
    if reclaimable := _reclaimable(view):
        status["reclaimablePods"] = reclaimable
    if change := _readiness(workload, view):
        status = _with_condition(workload, status, now, change)
    return status


def _readiness(workload: Object, view: WorkloadView) -> tuple[str, str, str, str] | None:
    """Return what becomes of the condition PodsReady; Kueue evicts Workloads that are not ready for too long."""
    is_running, is_ready = view.status.phase is Phase.RUNNING, has_condition(workload, PODS_READY)
    if is_running is is_ready:
        return None
    if is_ready:
        return PODS_READY, "False", WAIT_FOR_RECOVERY, "Not all pods of the job run any more"
    reason = (condition_of(workload, PODS_READY) or {}).get("reason")
    return PODS_READY, "True", "Recovered" if reason == WAIT_FOR_RECOVERY else "Started", "All pods of the job run"


def _given_back(workload: Object, status: Object, evicted: Mapping[str, Any], now: datetime) -> Object:
    """Return the status of an evicted Workload whose pods have ended: its quota is free for others."""
    reason, message = str(evicted.get("reason") or "Evicted"), _text(evicted)
    is_requeued = "True" if reason in REQUEUED_AFTER else "False"
    status = {name: value for name, value in status.items() if name not in ("admission", "reclaimablePods")}
    for change in (
        (REQUEUED, is_requeued, reason, message),
        (RESERVED, "False", "Pending", message),
        (ADMITTED, "False", "NoReservation", "The workload has no reservation"),
        *([(PODS_READY, "False", "WaitForStart", message)] if has_condition(workload, PODS_READY) else ()),
    ):
        status = _with_condition(workload, status, now, change)
    return status


def _finished(workload: Object, status: JobStatus, now: datetime) -> Object:
    has_failed = status.phase is Phase.FAILED
    message = f"the job has {'failed' if has_failed else 'succeeded'}"
    change = (FINISHED, "True", "Failed" if has_failed else "Succeeded", message)
    return _with_condition(workload, dict(workload.get("status") or {}), now, change)


def _with_condition(workload: Object, status: Object, now: datetime, change: tuple[str, str, str, str]) -> Object:
    """Return a status with one condition set: type, status, reason and message."""
    kind, value, reason, message = change
    conditions = list(status.get("conditions") or ())
    old = next((condition for condition in conditions if condition.get("type") == kind), None)
    since = old["lastTransitionTime"] if old is not None and old.get("status") == value else to_wire(now)
    new = {
        "type": kind,
        "status": value,
        "reason": reason,
        "message": message[:MAX_MESSAGE],
        "lastTransitionTime": since,
        "observedGeneration": int(workload["metadata"].get("generation", 1)),
    }
    updated = [new if condition is old else condition for condition in conditions]
    return {**status, "conditions": updated if old is not None else [*updated, new]}


def _reclaimable(view: WorkloadView) -> list[Object]:
    """Return how many pods of each role have succeeded, and need their quota no more."""
    if view.gang.scope is RestartScope.GANG:
        # The failure of another member starts them again.
        return []
    again = {member.place for member in view.gang.members if member.restart is RestartPolicy.ALWAYS}
    counts: dict[str, int] = {}
    for record in view.status.replicas:
        if record.phase is ReplicaPhase.SUCCEEDED and not record.is_scaled_down and record.place not in again:
            name = pod_set_name(record.place.role)
            counts[name] = counts.get(name, 0) + 1
    return [{"name": name, "count": count} for name, count in sorted(counts.items())]


def _wanted_shape(view: WorkloadView) -> tuple[str, tuple[tuple[str, int], ...]]:
    return view.queue, tuple((str(pods["name"]), int(pods["count"])) for pods in pod_sets(view.gang))


def _shape(workload: Object) -> tuple[str, tuple[tuple[str, int], ...]]:
    spec = workload.get("spec") or {}
    pods = tuple((str(pods.get("name")), int(pods.get("count", 1))) for pods in spec.get("podSets") or ())
    return str(spec.get("queueName") or ""), pods


def _why_waiting(workload: Object) -> str:
    if not has_condition(workload, RESERVED):
        return _text(condition_of(workload, RESERVED)) or "waits for quota"
    checks = (workload.get("status") or {}).get("admissionChecks") or ()
    pending = ", ".join(str(check.get("name")) for check in checks if check.get("state") != "Ready")
    return f"has quota and waits for the admission checks {pending}" if pending else "has quota and is being admitted"


def _placements(workload: Object, flavors: Mapping[str, Object]) -> Iterator[tuple[str, PodPlacement]]:
    status = workload.get("status") or {}
    updates = [update for check in status.get("admissionChecks") or () for update in check.get("podSetUpdates") or ()]
    for assignment in (status.get("admission") or {}).get("podSetAssignments") or ():
        name = str(assignment.get("name"))
        used = dict.fromkeys(str(flavor) for flavor in (assignment.get("flavors") or {}).values())
        mine = [update for update in updates if update.get("name") == name]
        yield name, _placement([flavors[flavor].get("spec") or {} for flavor in used], mine)


def _placement(flavors: Iterable[Mapping[str, Any]], updates: Iterable[Mapping[str, Any]]) -> PodPlacement:
    selector: dict[str, str] = {}
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    tolerations: list[Mapping[str, Any]] = []
    for flavor in flavors:
        selector |= flavor.get("nodeLabels") or {}
        tolerations += flavor.get("tolerations") or ()
    for update in updates:
        selector |= update.get("nodeSelector") or {}
        labels |= update.get("labels") or {}
        annotations |= update.get("annotations") or {}
        tolerations += update.get("tolerations") or ()
    return PodPlacement(node_selector=selector, tolerations=tuple(tolerations), labels=labels, annotations=annotations)


def _placed(member: Member, placement: PodPlacement | None) -> Member:
    if placement is None or placement == PodPlacement():
        return member
    template, spec = member.template, member.template["spec"]
    metadata = template.get("metadata") or {}
    tolerations = [*(spec.get("tolerations") or ())]
    tolerations += [toleration for toleration in placement.tolerations if toleration not in tolerations]
    changed = {
        **template,
        "metadata": {
            **metadata,
            "labels": {**(metadata.get("labels") or {}), **placement.labels},
            "annotations": {**(metadata.get("annotations") or {}), **placement.annotations},
        },
        "spec": {
            **spec,
            "nodeSelector": {**(spec.get("nodeSelector") or {}), **placement.node_selector},
            "tolerations": tolerations,
        },
    }
    return replace(member, template=changed)


def _template(member: Member) -> Object:
    original = member.template.get("metadata") or {}
    metadata = {name: dict(original[name]) for name in ("labels", "annotations") if original.get(name)}
    return {"metadata": metadata, "spec": {**member.template["spec"], "restartPolicy": "Never"}}


def _text(condition: Mapping[str, Any] | None) -> str:
    return str((condition or {}).get("message") or (condition or {}).get("reason") or "")
