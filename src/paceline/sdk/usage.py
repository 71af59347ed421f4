"""What jobs, pods and nodes use right now, as the cluster measures it."""

from collections.abc import Iterable
from dataclasses import dataclass

from paceline.client.cluster import Collection, Page, Select
from paceline.client.direct import DirectCluster
from paceline.errors import Missing, NotOffered
from paceline.objects import labels
from paceline.objects.meta import Object, labels_of, name_of, namespace_of
from paceline.objects.quantity import milli, whole

PODS = Collection(group="metrics.k8s.io", version="v1beta1", plural="pods")
NODES = Collection(group="metrics.k8s.io", version="v1beta1", plural="nodes", namespaced=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What something uses: thousandths of a processor, and bytes of memory."""

    namespace: str
    name: str
    pods: int = 1
    cpu_milli: int
    memory_bytes: int


def used_by_pods(cluster: DirectCluster, namespace: str) -> tuple[Used, ...]:
    """Tell what every pod of a namespace uses; of all namespaces when none is named."""
    return tuple(_pod(each) for each in _read(cluster, PODS, namespace).items)


def used_by_nodes(cluster: DirectCluster) -> tuple[Used, ...]:
    """Tell what every node uses."""
    return tuple(_sum("", name_of(each), (each["usage"],)) for each in _read(cluster, NODES, "").items)


def used_by_jobs(cluster: DirectCluster, namespace: str) -> tuple[Used, ...]:
    """Tell what the running pods of every job use together; pods of no job are left out."""
    by_job: dict[tuple[str, str, str], list[Object]] = {}
    for pod in _read(cluster, PODS, namespace).items:
        told = labels_of(pod)
        if owner := told.get(labels.OWNER_NAME):
            by_job.setdefault((namespace_of(pod), owner, told.get(labels.OWNER_KIND, "")), []).append(pod)
    return tuple(
        _sum(where, name, (usage for pod in pods for usage in _usages(pod)), pods=len(pods))
        for (where, name, _), pods in sorted(by_job.items())
    )


def _read(cluster: DirectCluster, where: Collection, namespace: str) -> Page:
    try:
        return cluster.list(where, Select(namespace=namespace))
    except Missing as error:
        raise NotOffered("this cluster does not measure what pods use: it has no metrics.k8s.io") from error


def _pod(pod: Object) -> Used:
    return _sum(namespace_of(pod), name_of(pod), _usages(pod))


def _usages(pod: Object) -> tuple[Object, ...]:
    return tuple(each["usage"] for each in pod.get("containers") or ())


def _sum(namespace: str, name: str, usages: Iterable[Object], *, pods: int = 1) -> Used:
    listed = tuple(usages)
    return Used(
        namespace=namespace,
        name=name,
        pods=pods,
        cpu_milli=sum(milli(each.get("cpu", "0")) for each in listed),
        memory_bytes=sum(whole(each.get("memory", "0")) for each in listed),
    )
