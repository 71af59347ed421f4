"""The manifests of everything that belongs to a job, and the ports it uses."""

from base64 import b64encode
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.errors import HostError
from paceline.model import well_known_labels
from paceline.model.gang import Gang, JobNaming, Member, RemoteLaunch
from paceline.plan.job.auxiliary_pods import template_of
from paceline.plan.job.plan import AuxiliaryPod, NewPod

LEADER_ROLE = "master"
USER = "user"


def pod_manifest(naming: JobNaming, gang: Gang, new: NewPod, *, owner: Mapping[str, Any]) -> Object:
    """Return the pod of one attempt; its host name is the same for every attempt of the replica."""
    template = gang.member(new.place).template
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": naming.pod(new.place, new.attempt),
            "namespace": naming.namespace,
            "labels": {**(metadata.get("labels") or {}), **pod_labels(naming, gang, new, owner=owner)},
            "annotations": {**(metadata.get("annotations") or {}), **_for_scheduler(gang, new)},
            "ownerReferences": [dict(owner)],
        },
        "spec": {
            **template["spec"],
            # The controller restarts: every attempt is a new pod with its own log.
            "restartPolicy": "Never",
            "hostname": naming.hostname(new.place),
            "subdomain": naming.stem,
        },
    }


def pod_labels(naming: JobNaming, gang: Gang, new: NewPod, *, owner: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of a replica's pod."""
    role = {well_known_labels.JOB_ROLE: LEADER_ROLE} if new.place == gang.leader else {}
    queue_labels = {
        well_known_labels.QUEUE: gang.queue,
        well_known_labels.QUEUE_GROUP: naming.job,
        well_known_labels.QUEUE_ROLE: new.place.role,
    }
    queued = queue_labels if gang.queue else {}
    return {
        **job_labels(naming, owner),
        **queued,
        **role,
        well_known_labels.REPLICA_TYPE: new.place.role,
        well_known_labels.REPLICA_INDEX: str(new.place.index),
        well_known_labels.ATTEMPT: str(new.attempt),
    }


def job_labels(naming: JobNaming, owner: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels that everything of one job carries."""
    return {
        well_known_labels.OWNER_NAME: naming.job,
        well_known_labels.OWNER_KIND: str(owner["kind"]),
        well_known_labels.COMPONENT: str(owner["kind"]).lower(),
        well_known_labels.COMPONENT_TYPE: USER,
    }


def auxiliary_pod_manifest(naming: JobNaming, gang: Gang, new: AuxiliaryPod, *, owner: Mapping[str, Any]) -> Object:
    """Return the pod of one attempt of work for the whole job; it is not a member and has no host name."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": naming.auxiliary_pod(new.name, new.attempt),
            "namespace": naming.namespace,
            "labels": {
                **job_labels(naming, owner),
                well_known_labels.ERRAND: new.name,
                well_known_labels.ATTEMPT: str(new.attempt),
            },
            "ownerReferences": [dict(owner)],
        },
        "spec": {**template_of(gang, new.name)["spec"], "restartPolicy": "Never"},
    }


def claim_manifest(naming: JobNaming, member: Member, spec: Mapping[str, Any], *, owner: Mapping[str, Any]) -> Object:
    """Return the claim that holds a member's output until it is uploaded; it is deleted with the job."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": naming.staging(member.place),
            "namespace": naming.namespace,
            "labels": job_labels(naming, owner),
            "ownerReferences": [dict(owner)],
        },
        "spec": dict(spec),
    }


def service_manifest(naming: JobNaming, *, owner: Mapping[str, Any]) -> Object:
    """Return the headless service that gives the members their DNS names."""
    labels = job_labels(naming, owner)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": naming.stem,
            "namespace": naming.namespace,
            "labels": labels,
            "ownerReferences": [dict(owner)],
        },
        "spec": {
            "clusterIP": "None",
            # Members resolve each other's names before any of them is ready.
            "publishNotReadyAddresses": True,
            "selector": labels,
        },
    }


def _for_scheduler(gang: Gang, new: NewPod) -> dict[str, str]:
    annotations = {well_known_labels.GANG_SIZE: str(new.gang_size)}
    return {**annotations, well_known_labels.QUEUE_PRIORITY: str(gang.priority)} if gang.queue else annotations


def launch_manifest(
    naming: JobNaming, launch: RemoteLaunch, program: Mapping[str, str], *, owner: Mapping[str, Any]
) -> Object:
    """Return the secret that members mount to start processes in each other: files, key and the ssh replacement."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": naming.launch_secret,
            "namespace": naming.namespace,
            "labels": job_labels(naming, owner),
            "ownerReferences": [dict(owner)],
        },
        "data": {name: b64encode(text.encode()).decode() for name, text in {**program, **launch.files}.items()},
    }


def group_manifest(naming: JobNaming, gang: Gang, *, owner: Mapping[str, Any]) -> Object:
    """Return the PodGroup for T9k's scheduler: how many pods to schedule together, queue and priority."""
    return {
        "apiVersion": "scheduler.tensorstack.dev/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": naming.job,
            "namespace": naming.namespace,
            "labels": job_labels(naming, owner),
            "ownerReferences": [dict(owner)],
        },
        "spec": {"minMember": gang.needed, "queue": gang.queue, "priority": gang.priority},
    }


def allocate_ports(names: tuple[str, ...], taken: AbstractSet[int], *, start: int, size: int) -> dict[str, int]:
    """Return the next free port of the range for each name; raise HostError if the range is used up.

    Jobs whose members share one network get their ports before any pod is created, so that all members know them.
    """
    free = (port for port in range(start, start + size) if port not in taken)
    chosen = dict(zip(names, free, strict=False))
    if len(chosen) < len(names):
        raise HostError(f"all {size} ports from {start} are taken by jobs; delete jobs that are no longer needed")
    return chosen
