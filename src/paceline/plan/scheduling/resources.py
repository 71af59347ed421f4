"""Resources: what pods request, what nodes have, and whether a gang fits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from paceline.apimachinery.meta import (
    Key,
    Object,
    annotations_of,
    controller_of,
    is_deleting,
    key_of,
    labels_of,
    uid_of,
)
from paceline.apimachinery.pods import is_ready, is_sidecar, is_terminal, spec_containers
from paceline.apimachinery.quantity import parse
from paceline.model import well_known_labels as labels
from paceline.plan.scheduling.node_affinity import NodeRequirements, Taint, taints_of, why_not_schedulable, wishes_of

Amounts = Mapping[str, Decimal]

PODS = "pods"
# The resource name of a host port: "port 8080/TCP".
PORT = "port "
# Priorities within a queue go from 0 to 100.
QUEUE_STEPS = 101


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRequest:
    """A pod that is to be scheduled."""

    key: Key
    requests: Amounts
    wishes: NodeRequirements = field(default_factory=NodeRequirements)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """Pods that are scheduled together or not at all."""

    name: str
    asks: tuple[PodRequest, ...]
    # How many pods belong together, and how many of them exist.
    size: int = 1
    present: int = 1
    # How many of them have a node already.
    placed: int = 0
    since: str = ""
    priority: int = 0
    # The job of the pods; their Kubernetes priority, and whether they may preempt others.
    family: str = ""
    rank: int = 0
    preempts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResources:
    """A node: its capacity and what is used."""

    node: str
    capacity: Amounts
    used: Amounts = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()

    def free(self, resource: str) -> Decimal:
        """Return the free amount of a resource; a node without a pod limit takes any number."""
        if resource == PODS and PODS not in self.capacity:
            return Decimal("Infinity")
        return self.has(resource) - self.used.get(resource, Decimal(0))

    def has(self, resource: str) -> Decimal:
        """Return the capacity of a resource: every node has every port once."""
        return Decimal(1) if resource.startswith(PORT) else self.capacity.get(resource, Decimal(0))


def rooms_of(nodes: Iterable[Object], pods: Iterable[Object]) -> tuple[NodeResources, ...]:
    """Return the schedulable nodes, with what their pods use."""
    used: dict[str, dict[str, Decimal]] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and not is_terminal(pod):
            used[node] = add(used.get(node, {}), requests_of(pod["spec"]))
    return tuple(
        NodeResources(
            node=node["metadata"]["name"],
            capacity=_amounts((node.get("status") or {}).get("allocatable")),
            used=used.get(node["metadata"]["name"], {}),
            labels=labels_of(node),
            taints=taints_of(node.get("spec") or {}),
        )
        for node in nodes
        if is_ready(node) and not (node.get("spec") or {}).get("unschedulable")
    )


def asks_of(pods: Iterable[Object]) -> tuple[PodGroup, ...]:
    """Return the pods to schedule, by gang.

    A gang is one attempt of one job. A member that is already at a later attempt counts as there: it will not come
    back to this one. Where nobody of the job has a node yet, all are one gang, whichever attempts they are.
    """
    families: dict[str, list[Object]] = {}
    for pod in pods:
        families.setdefault(family_of(pod), []).append(pod)
    return tuple(ask for family in families.values() for ask in _gangs(family))


def requests_of(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return the requests of a pod: of all its containers, or of an init container and its sidecars if larger."""
    beside: dict[str, Decimal] = {}
    first: dict[str, Decimal] = {}
    for container in spec.get("initContainers") or ():
        requests = _container_requests(container)
        if is_sidecar(container):
            beside = add(beside, requests)
            requests = {}
        now = add(beside, requests)
        first = {name: max(first.get(name, Decimal(0)), now.get(name, Decimal(0))) for name in {**first, **now}}
    together = beside
    for container in spec.get("containers") or ():
        together = add(together, _container_requests(container))
    most = {name: max(together.get(name, Decimal(0)), first.get(name, Decimal(0))) for name in {**together, **first}}
    overhead = _amounts(spec.get("overhead"))
    return {PODS: Decimal(1), **add(most, overhead), **dict.fromkeys(_host_ports(spec), Decimal(1))}


def _host_ports(spec: Mapping[str, Any]) -> Iterable[str]:
    """Yield the host ports of a pod."""
    for container in spec_containers(spec):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield f"{PORT}{port['hostPort']}/{port.get('protocol') or 'TCP'}"


def add(one: Amounts, other: Amounts) -> dict[str, Decimal]:
    """Return the sum of two amounts."""
    return {name: one.get(name, Decimal(0)) + other.get(name, Decimal(0)) for name in {**one, **other}}


def _gangs(family: list[Object]) -> Iterable[PodGroup]:
    waiting = [pod for pod in family if waits(pod)]
    attempts = sorted({_attempt(pod) for pod in waiting})
    is_begun = any(_holds(pod) for pod in family)
    for attempt in attempts if is_begun else attempts[:1]:
        members = sorted((pod for pod in waiting if _attempt(pod) == attempt or not is_begun), key=key_of)
        first = members[0]
        yield PodGroup(
            name=labels_of(first).get(labels.OWNER_NAME) or key_of(first)[1],
            asks=tuple(
                PodRequest(key=key_of(pod), requests=requests_of(pod["spec"]), wishes=wishes_of(pod["spec"]))
                for pod in members
            ),
            size=max(_size(pod) for pod in members),
            present=len({_place(pod) for pod in family if _attempt(pod) >= attempt}),
            placed=len({_place(pod) for pod in family if _attempt(pod) >= attempt and not waits(pod)}),
            since=min(str(pod["metadata"].get("creationTimestamp", "")) for pod in members),
            priority=min(_priority(pod) for pod in members),
            family=family_of(first),
            rank=min(rank_of(pod) for pod in members),
            preempts=all(pod["spec"].get("preemptionPolicy") != "Never" for pod in members),
        )


def _priority(pod: Object) -> int:
    """Return the scheduling priority: the pod's priority, then that of its queue."""
    return rank_of(pod) * QUEUE_STEPS + _number(annotations_of(pod).get(labels.QUEUE_PRIORITY), otherwise=0)


def rank_of(pod: Object) -> int:
    """Return spec.priority, which admission sets from the priority class."""
    priority = pod["spec"].get("priority")
    return priority if isinstance(priority, int) else 0


def family_of(pod: Object) -> str:
    """Return the key of the pods that are scheduled together: all of a job, or one alone."""
    owner = controller_of(pod)
    is_member = labels.GANG_SIZE in annotations_of(pod)
    return str(owner["uid"]) if owner is not None and is_member else uid_of(pod)


def _place(pod: Object) -> tuple[str, str]:
    pod_labels = labels_of(pod)
    return pod_labels.get(labels.REPLICA_TYPE, ""), pod_labels.get(labels.REPLICA_INDEX, "")


def _attempt(pod: Object) -> int:
    return _number(labels_of(pod).get(labels.ATTEMPT), otherwise=0)


def _size(pod: Object) -> int:
    return _number(annotations_of(pod).get(labels.GANG_SIZE), otherwise=1)


def _number(text: str | None, *, otherwise: int) -> int:
    # Users may write any label or annotation.
    return int(text) if text and text.isdecimal() and len(text) < 10 else otherwise


def waits(pod: Object) -> bool:
    """Return whether a pod is to be scheduled."""
    spec = pod["spec"]
    return not (spec.get("nodeName") or spec.get("schedulingGates") or is_terminal(pod) or is_deleting(pod))


def _holds(pod: Object) -> bool:
    """Return whether a pod has a node and has not ended."""
    return bool(pod["spec"].get("nodeName")) and not is_terminal(pod) and not is_deleting(pod)


def _container_requests(container: Mapping[str, Any]) -> dict[str, Decimal]:
    resources = container.get("resources") or {}
    # A resource with only a limit requests as much.
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(wire: Mapping[str, Any] | None) -> dict[str, Decimal]:
    return {name: parse(value) for name, value in (wire or {}).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The nodes found for the pods of one gang, what remains of the nodes, and the first pod without a node."""

    nodes: Mapping[Key, str]
    rooms: tuple[NodeResources, ...]
    stuck: PodRequest | None = None


def is_enough(gang: PodGroup, fit: Fit) -> bool:
    """Return whether a gang may start or grow with those of its pods that find a node."""
    return fit.stuck is None or (bool(fit.nodes) and gang.placed + len(fit.nodes) >= gang.size)


def fit_of(gang: PodGroup, rooms: tuple[NodeResources, ...], shared: frozenset[str]) -> Fit:
    """Return nodes for the pods of a gang, one after the other; shared resources never run out."""
    nodes: dict[Key, str] = {}
    free = {room.node: room for room in rooms}
    for ask in gang.asks:
        room = next((candidate for candidate in free.values() if _has_room(candidate, ask, shared)), None)
        if room is None:
            return Fit(nodes=nodes, rooms=tuple(free.values()), stuck=ask)
        nodes[ask.key] = room.node
        free[room.node] = replace(room, used=add(room.used, ask.requests))
    return Fit(nodes=nodes, rooms=tuple(free.values()))


def refusal(room: NodeResources, ask: PodRequest) -> str:
    """Return why a pod can never run on a node, even an empty one; empty when it can."""
    return why_not_schedulable(ask.wishes, node=room.node, labels=room.labels, taints=room.taints)


def short_of(room: NodeResources, needs: Amounts, shared: frozenset[str]) -> list[str]:
    """Return the resources of which a node has too little."""
    return [name for name, amount in needs.items() if name not in shared and amount > room.free(name)]


def _has_room(room: NodeResources, ask: PodRequest, shared: frozenset[str]) -> bool:
    return not refusal(room, ask) and not short_of(room, ask.requests, shared)
