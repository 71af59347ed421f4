"""Members as manifests: the pod of one try, and the service that gives all of them names."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.model import well_known_labels
from paceline.model.gang import Gang, JobNaming, Member, RemoteLaunch
from paceline.plan.job.plan import AuxiliaryPod, NewPod
from paceline.plan.job.pods.auxiliary_pods import template_of

LEADER_ROLE = "master"
USER = "user"


def pod_manifest(site: JobNaming, gang: Gang, new: NewPod, *, owner: Mapping[str, Any]) -> Object:
    """Write the pod of one try; its host name is that of its place, the same for every try."""
    template = gang.member(new.place).template
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": site.pod(new.place, new.attempt),
            "namespace": site.namespace,
            "labels": {**(metadata.get("labels") or {}), **pod_labels(site, gang, new, owner=owner)},
            "annotations": {**(metadata.get("annotations") or {}), **_for_scheduler(gang, new)},
            "ownerReferences": [dict(owner)],
        },
        "spec": {
            **template["spec"],
            # Restarts are the controller's: a new pod, with a log of its own.
            "restartPolicy": "Never",
            "hostname": site.hostname(new.place),
            "subdomain": site.stem,
        },
    }


def pod_labels(site: JobNaming, gang: Gang, new: NewPod, *, owner: Mapping[str, Any]) -> dict[str, str]:
    """Write the labels by which a pod is found and told apart."""
    role = {well_known_labels.JOB_ROLE: LEADER_ROLE} if new.place == gang.leader else {}
    queue_labels = {
        well_known_labels.QUEUE: gang.queue,
        well_known_labels.QUEUE_GROUP: site.job,
        well_known_labels.QUEUE_ROLE: new.place.role,
    }
    queued = queue_labels if gang.queue else {}
    return {
        **job_labels(site, owner),
        **queued,
        **role,
        well_known_labels.REPLICA_TYPE: new.place.role,
        well_known_labels.REPLICA_INDEX: str(new.place.index),
        well_known_labels.ATTEMPT: str(new.attempt),
    }


def job_labels(site: JobNaming, owner: Mapping[str, Any]) -> dict[str, str]:
    """Write the labels that everything of one job carries."""
    return {
        well_known_labels.OWNER_NAME: site.job,
        well_known_labels.OWNER_KIND: str(owner["kind"]),
        well_known_labels.COMPONENT: str(owner["kind"]).lower(),
        well_known_labels.COMPONENT_TYPE: USER,
    }


def errand_manifest(site: JobNaming, gang: Gang, new: AuxiliaryPod, *, owner: Mapping[str, Any]) -> Object:
    """Write the pod of one try of an errand; it is no member, and nobody knows it by name."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": site.errand(new.name, new.attempt),
            "namespace": site.namespace,
            "labels": {
                **job_labels(site, owner),
                well_known_labels.ERRAND: new.name,
                well_known_labels.ATTEMPT: str(new.attempt),
            },
            "ownerReferences": [dict(owner)],
        },
        "spec": {**template_of(gang, new.name)["spec"], "restartPolicy": "Never"},
    }


def claim_manifest(site: JobNaming, member: Member, spec: Mapping[str, Any], *, owner: Mapping[str, Any]) -> Object:
    """Write the claim that a member's output lies on until it is copied; it stays until the job goes."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": site.staging(member.place),
            "namespace": site.namespace,
            "labels": job_labels(site, owner),
            "ownerReferences": [dict(owner)],
        },
        "spec": dict(spec),
    }


def service_manifest(site: JobNaming, *, owner: Mapping[str, Any]) -> Object:
    """Write the headless service under whose name the members' host names lie."""
    labels = job_labels(site, owner)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": site.stem,
            "namespace": site.namespace,
            "labels": labels,
            "ownerReferences": [dict(owner)],
        },
        "spec": {
            "clusterIP": "None",
            # Members look each other up before any of them is ready.
            "publishNotReadyAddresses": True,
            "selector": labels,
        },
    }


def _for_scheduler(gang: Gang, new: NewPod) -> dict[str, str]:
    annotations = {well_known_labels.GANG_SIZE: str(new.gang_size)}
    return {**annotations, well_known_labels.QUEUE_PRIORITY: str(gang.priority)} if gang.queue else annotations


def launch_manifest(
    site: JobNaming, launch: RemoteLaunch, program: Mapping[str, str], *, owner: Mapping[str, Any]
) -> Object:
    """Write the secret whose folder members mount that start processes in each other: files, key and stand-ins."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": site.launch_secret,
            "namespace": site.namespace,
            "labels": job_labels(site, owner),
            "ownerReferences": [dict(owner)],
        },
        "data": {name: b64encode(text.encode()).decode() for name, text in {**program, **launch.files}.items()},
    }


def group_manifest(site: JobNaming, gang: Gang, *, owner: Mapping[str, Any]) -> Object:
    """Write what T9k's scheduler reads of a job: how many pods it places together, in which queue, and how soon."""
    return {
        "apiVersion": "scheduler.tensorstack.dev/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": site.job,
            "namespace": site.namespace,
            "labels": job_labels(site, owner),
            "ownerReferences": [dict(owner)],
        },
        "spec": {"minMember": gang.needed, "queue": gang.queue, "priority": gang.priority},
    }
