"""Quality of service classes, extended resources, priority classes and the not-ready taint."""

from collections.abc import Mapping
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.apimachinery.pods import containers_of
from paceline.apimachinery.quantity import parse

NOT_READY = "node.kubernetes.io/not-ready"
NO_SCHEDULE = "NoSchedule"
_QOS_RESOURCES = ("cpu", "memory")


def qos_class(pod: Object) -> str:
    """Return the quality of service class of a pod, which need not be valid."""
    resources = [container.get("resources") for container in containers_of(pod)]
    if not any(_amounts(of_one, field) for of_one in resources for field in ("requests", "limits")):
        return "BestEffort"
    is_guaranteed = all(
        set(limits := _amounts(of_one, "limits")) == set(_QOS_RESOURCES)
        and (_amounts(of_one, "requests") or limits) == limits
        for of_one in resources
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _amounts(resources: Any, field: str) -> dict[str, Any]:
    """Return the CPU and memory above zero; amounts that are not quantities do not count."""
    wire = resources.get(field) if isinstance(resources, dict) else None
    if not isinstance(wire, dict):
        return {}
    amounts = {}
    for name in _QOS_RESOURCES:
        try:
            amount = parse(wire[name])
        except (KeyError, ValueError):
            continue
        if amount > 0:
            amounts[name] = amount
    return amounts


def is_extended(resource: str) -> bool:
    """Return whether a resource is a vendor's, such as nvidia.com/gpu."""
    vendor, _, name = resource.partition("/")
    return bool(name) and not f".{vendor}".endswith(".kubernetes.io")


def without_not_ready(node: Mapping[str, Any]) -> list[Any] | None:
    """Return a node's taints without not-ready, or None if it does not have it."""
    taints = (node.get("spec") or {}).get("taints") or []
    others = [taint for taint in taints if (taint.get("key"), taint.get("effect")) != (NOT_READY, NO_SCHEDULE)]
    return None if len(others) == len(taints) else others


def _system_priority(name: str, value: int, use: str) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": f"Used for system critical pods that must {use}.",
        "preemptionPolicy": "PreemptLowerPriority",
    }


_NODE_CRITICAL = "not be moved from their current node"
_CLUSTER_CRITICAL = "run in the cluster, but can be moved to another node if necessary"
# The two priority classes that every cluster has, by name.
SYSTEM_PRIORITIES: Mapping[str, Object] = {
    "system-node-critical": _system_priority("system-node-critical", 2_000_001_000, _NODE_CRITICAL),
    "system-cluster-critical": _system_priority("system-cluster-critical", 2_000_000_000, _CLUSTER_CRITICAL),
}
