"""Current resource usage of jobs, pods and nodes, from the metrics API."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from paceline.apimachinery.meta import Object, labels_of, name_of, namespace_of
from paceline.apimachinery.quantity import milli, whole
from paceline.client.interface import NODES as CLUSTER_NODES
from paceline.client.interface import Collection, Page, Select
from paceline.client.sync import DirectCluster
from paceline.errors import MethodNotAllowed, NotFound
from paceline.model import well_known_labels

PODS = Collection(group="metrics.k8s.io", version="v1beta1", plural="pods")
NODES = Collection(group="metrics.k8s.io", version="v1beta1", plural="nodes", namespaced=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUsage:
    """Resource usage: millicores of CPU and bytes of memory."""

    namespace: str
    name: str
    pods: int = 1
    cpu_milli: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimUsage:
    """How full a claim is."""

    namespace: str
    name: str
    used_bytes: int
    capacity_bytes: int


def claim_usages(cluster: DirectCluster, namespace: str) -> tuple[ClaimUsage, ...]:
    """Return how full the claims of a namespace are (all if empty), as far as nodes measure them."""
    claims: dict[tuple[str, str], ClaimUsage] = {}
    for node in cluster.list(CLUSTER_NODES).items:
        path = f"{CLUSTER_NODES.path('', name_of(node))}/proxy/stats/summary"
        summary = json.loads(b"".join(cluster.stream(path, {})))
        pods = (volume for pod in summary.get("pods") or () for volume in pod.get("volume") or ())
        for volume in (*pods, *(summary.get("claims") or ())):
            about = volume.get("pvcRef") or {}
            key = (str(about.get("namespace")), str(about.get("name")))
            if about and namespace in ("", key[0]):
                used, capacity = int(volume.get("usedBytes") or 0), int(volume.get("capacityBytes") or 0)
                claims[key] = ClaimUsage(namespace=key[0], name=key[1], used_bytes=used, capacity_bytes=capacity)
    return tuple(claims[key] for key in sorted(claims))


def pod_usages(cluster: DirectCluster, namespace: str) -> tuple[ResourceUsage, ...]:
    """Return the usage of every pod in a namespace (all if empty)."""
    return tuple(_sum(namespace_of(pod), name_of(pod), _usages(pod)) for pod in _read(cluster, PODS, namespace).items)


def node_usages(cluster: DirectCluster) -> tuple[ResourceUsage, ...]:
    """Return the usage of every node."""
    return tuple(_sum("", name_of(node), (node["usage"],)) for node in _read(cluster, NODES, "").items)


def job_usages(cluster: DirectCluster, namespace: str) -> tuple[ResourceUsage, ...]:
    """Return the total usage of the running pods of every job; pods without a job are left out."""
    by_job: dict[tuple[str, str, str], list[Object]] = {}
    for pod in _read(cluster, PODS, namespace).items:
        labels = labels_of(pod)
        if owner := labels.get(well_known_labels.OWNER_NAME):
            by_job.setdefault((namespace_of(pod), owner, labels.get(well_known_labels.OWNER_KIND, "")), []).append(pod)
    return tuple(
        _sum(where, name, (usage for pod in pods for usage in _usages(pod)), pods=len(pods))
        for (where, name, _), pods in sorted(by_job.items())
    )


def _read(cluster: DirectCluster, where: Collection, namespace: str) -> Page:
    try:
        return cluster.list(where, Select(namespace=namespace))
    except NotFound as error:
        raise MethodNotAllowed(
            "this cluster has no metrics API (metrics.k8s.io), so resource usage is not available"
        ) from error


def _usages(pod: Object) -> tuple[Object, ...]:
    return tuple(container["usage"] for container in pod.get("containers") or ())


def _sum(namespace: str, name: str, usages: Iterable[Object], *, pods: int = 1) -> ResourceUsage:
    listed = tuple(usages)
    return ResourceUsage(
        namespace=namespace,
        name=name,
        pods=pods,
        cpu_milli=sum(milli(usage.get("cpu", "0")) for usage in listed),
        memory_bytes=sum(whole(usage.get("memory", "0")) for usage in listed),
    )
