"""PodGroups: the objects by which several schedulers learn which pods start all together or not at all.

A job names its scheduler as every pod does, by `schedulerName` in its templates, or by T9k's `spec.scheduler`. Pods of
the default scheduler get a native PodGroup of Kubernetes where the cluster has that kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from paceline.apimachinery.meta import Object, owned_metadata
from paceline.model import well_known_labels
from paceline.model.gang import Gang, JobNaming, Member

NATIVE_GROUP = "scheduling.k8s.io"
# The versions of native PodGroups that we can write, the preferred one first.
NATIVE_VERSIONS = ("v1beta1", "v1alpha3", "v1alpha2")
DEFAULT_SCHEDULER = "default-scheduler"
# How a pod names its group: Volcano by an annotation, scheduler-plugins by a label.
VOLCANO_MARK, PLUGINS_MARK = "scheduling.k8s.io/group-name", "scheduling.x-k8s.io/pod-group"
VOLCANO_QUEUES = ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKind:
    """The PodGroups of one scheduler."""

    group: str
    version: str
    # Who reads them, as messages name it.
    scheduler: str
    # Whether a job whose scheduler is not there starts without its group.
    is_optional: bool = False


T9K = GroupKind(group="scheduler.tensorstack.dev", version="v1beta1", scheduler="T9k's scheduler", is_optional=True)
VOLCANO = GroupKind(group="scheduling.volcano.sh", version="v1beta1", scheduler="volcano")
PLUGINS = GroupKind(group="scheduling.x-k8s.io", version="v1alpha1", scheduler="scheduler-plugins-scheduler")
BY_SCHEDULER = {kind.scheduler: kind for kind in (VOLCANO, PLUGINS)}


def group_kind(gang: Gang, naming: JobNaming, native: str = "") -> GroupKind | None:
    """Return the kind of a gang's PodGroup; None if it has none, or its author writes it.

    `native` is the version of Kubernetes' own PodGroups in this cluster; empty if it has none.
    """
    if gang.queue:
        return T9K
    template = gang.members[0].template
    if _marks(template) - {naming.stem}:
        return None
    scheduler = str(template["spec"].get("schedulerName") or DEFAULT_SCHEDULER)
    if scheduler == DEFAULT_SCHEDULER and native and len(gang.members) > 1:
        return GroupKind(group=NATIVE_GROUP, version=native, scheduler=DEFAULT_SCHEDULER, is_optional=True)
    return BY_SCHEDULER.get(scheduler)


def grouped(gang: Gang, naming: JobNaming, native: str = "") -> Gang:
    """Return the gang with its pods marked as members of its PodGroup."""
    kind = group_kind(gang, naming, native)
    if kind is None or kind is T9K:
        return gang
    return replace(gang, members=tuple(_marked(member, kind, group_name(kind, naming)) for member in gang.members))


def group_name(kind: GroupKind, naming: JobNaming) -> str:
    """Return the name of a job's PodGroup; T9k's is named as the job."""
    return naming.job if kind is T9K else naming.stem


def group_manifest(naming: JobNaming, gang: Gang, kind: GroupKind = T9K, *, owner: Mapping[str, Any]) -> Object:
    """Return the PodGroup of a job: how many pods are scheduled together, and their queue; it goes with the job."""
    labels = {well_known_labels.OWNER_NAME: naming.job, well_known_labels.OWNER_KIND: str(owner["kind"])}
    return {
        "apiVersion": f"{kind.group}/{kind.version}",
        "kind": "PodGroup",
        "metadata": owned_metadata(group_name(kind, naming), naming.namespace, labels, owner),
        "spec": _spec(gang, kind),
    }


def why_no_group(kind: GroupKind) -> str:
    """Return the message for a job whose scheduler's PodGroups do not exist in its cluster."""
    return (
        f"the pods name the scheduler {kind.scheduler}, but this cluster has no podgroups.{kind.group}; "
        "install that scheduler, or remove schedulerName from the templates"
    )


def _spec(gang: Gang, kind: GroupKind) -> Object:
    if kind is T9K:
        return {"minMember": gang.needed, "queue": gang.queue, "priority": gang.priority}
    if kind.group == NATIVE_GROUP:
        return {"schedulingPolicy": {"gang": {"minCount": gang.needed}}}
    if kind is PLUGINS:
        return {"minMember": gang.needed}
    template = gang.members[0].template
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    queue = next((annotations[name] for name in VOLCANO_QUEUES if annotations.get(name)), "")
    priority = template["spec"].get("priorityClassName") or ""
    optional = {"queue": queue, "priorityClassName": priority}
    return {"minMember": gang.needed, **{name: value for name, value in optional.items() if value}}


def _marks(template: Mapping[str, Any]) -> set[str]:
    """Return the names of the groups that a pod says it belongs to."""
    metadata = template.get("metadata") or {}
    names = (
        (metadata.get("annotations") or {}).get(VOLCANO_MARK),
        (metadata.get("labels") or {}).get(PLUGINS_MARK),
        (template["spec"].get("schedulingGroup") or {}).get("podGroupName"),
    )
    return {str(name) for name in names if name}


def _marked(member: Member, kind: GroupKind, name: str) -> Member:
    template = member.template
    if kind.group == NATIVE_GROUP:
        spec = {**template["spec"], "schedulingGroup": {"podGroupName": name}}
        return replace(member, template={**template, "spec": spec})
    part, mark = ("annotations", VOLCANO_MARK) if kind is VOLCANO else ("labels", PLUGINS_MARK)
    metadata = template.get("metadata") or {}
    marked = {**metadata, part: {**(metadata.get(part) or {}), mark: name}}
    return replace(member, template={**template, "metadata": marked})
