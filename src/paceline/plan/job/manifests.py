"""The manifests of everything that belongs to a job, and the ports it uses."""

from base64 import b64encode
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from paceline.apimachinery.meta import Object, owned_metadata
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
    labels = {**(metadata.get("labels") or {}), **_member_labels(naming, gang, new)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **_metadata(naming, naming.pod(new.place, new.attempt), owner, labels=labels),
            "annotations": {**(metadata.get("annotations") or {}), **_for_scheduler(gang, new)},
        },
        "spec": {
            **template["spec"],
            # The controller restarts: every attempt is a new pod with its own log.
            "restartPolicy": "Never",
            "hostname": naming.hostname(new.place),
            "subdomain": naming.stem,
        },
    }


def _member_labels(naming: JobNaming, gang: Gang, new: NewPod) -> dict[str, str]:
    role = {well_known_labels.JOB_ROLE: LEADER_ROLE} if new.place == gang.leader else {}
    queue_labels = {
        well_known_labels.QUEUE: gang.queue,
        well_known_labels.QUEUE_GROUP: naming.job,
        well_known_labels.QUEUE_ROLE: new.place.role,
    }
    return {
        **(queue_labels if gang.queue else {}),
        **role,
        well_known_labels.REPLICA_TYPE: new.place.role,
        well_known_labels.REPLICA_INDEX: str(new.place.index),
        well_known_labels.ATTEMPT: str(new.attempt),
    }


def owner_labels(name: str, owner: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of everything that belongs to a job, TensorBoard or Notebook."""
    return {
        well_known_labels.OWNER_NAME: name,
        well_known_labels.OWNER_KIND: str(owner["kind"]),
        well_known_labels.COMPONENT: str(owner["kind"]).lower(),
        well_known_labels.COMPONENT_TYPE: USER,
    }


def _metadata(
    naming: JobNaming, name: str, owner: Mapping[str, Any], *, labels: Mapping[str, str] | None = None
) -> Object:
    return owned_metadata(name, naming.namespace, {**(labels or {}), **owner_labels(naming.job, owner)}, owner)


def auxiliary_pod_manifest(naming: JobNaming, gang: Gang, new: AuxiliaryPod, *, owner: Mapping[str, Any]) -> Object:
    """Return the pod of one attempt of work for the whole job; it is not a member and has no host name."""
    labels = {well_known_labels.ERRAND: new.name, well_known_labels.ATTEMPT: str(new.attempt)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(naming, naming.auxiliary_pod(new.name, new.attempt), owner, labels=labels),
        "spec": {**template_of(gang, new.name)["spec"], "restartPolicy": "Never"},
    }


def claim_manifest(naming: JobNaming, member: Member, spec: Mapping[str, Any], *, owner: Mapping[str, Any]) -> Object:
    """Return the claim that holds a member's output until it is uploaded; it is deleted with the job."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _metadata(naming, naming.staging(member.place), owner),
        "spec": dict(spec),
    }


def service_manifest(naming: JobNaming, *, owner: Mapping[str, Any]) -> Object:
    """Return the headless service that gives the members their DNS names."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(naming, naming.stem, owner),
        "spec": {
            "clusterIP": "None",
            # Members resolve each other's names before any of them is ready.
            "publishNotReadyAddresses": True,
            "selector": owner_labels(naming.job, owner),
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
        "metadata": _metadata(naming, naming.launch_secret, owner),
        "data": {name: b64encode(text.encode()).decode() for name, text in {**program, **launch.files}.items()},
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
