"""The overview's machine: what nodes have, what pods request of it, and what is used now."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.pods import is_ready, is_terminal
from paceline.apimachinery.quantity import parse
from paceline.apimachinery.timestamps import to_wire

Amounts = dict[str, Decimal]
# Resources that everybody asks for; devices, whose names contain a slash, come after them.
USUAL = ("cpu", "memory")


def overview_page(
    nodes: Iterable[Object], pods: Iterable[Object], usage: Iterable[Object] | None, now: datetime
) -> dict[str, Any]:
    """Return the resources of all nodes; `usage` are NodeMetrics, None if the cluster has no metrics API."""
    machines, placed = list(nodes), [pod for pod in pods if not is_terminal(pod)]
    allocatable = _sum((node.get("status") or {}).get("allocatable") or {} for node in machines)
    requested = _sum(_requests(pod) for pod in placed if (pod.get("spec") or {}).get("nodeName"))
    waiting = _sum(_requests(pod) for pod in placed if not (pod.get("spec") or {}).get("nodeName"))
    used = None if usage is None else _sum(metrics.get("usage") or {} for metrics in usage)
    return {
        "now": to_wire(now),
        "nodes": [{"name": name_of(node), "isReady": is_ready(node)} for node in machines],
        "pods": {"placed": sum(1 for pod in placed if (pod.get("spec") or {}).get("nodeName")), "all": len(placed)},
        "hasUsage": used is not None,
        "resources": [
            {
                "resource": resource,
                "allocatable": float(allocatable[resource]),
                "requested": float(requested.get(resource, 0)),
                "waiting": float(waiting.get(resource, 0)),
                "used": float(used[resource]) if used and resource in used else None,
            }
            for resource in _shown(allocatable)
        ],
    }


def _shown(allocatable: Mapping[str, Decimal]) -> list[str]:
    devices = sorted(name for name, amount in allocatable.items() if "/" in name and amount > 0)
    return [*(name for name in USUAL if name in allocatable), *devices]


def _requests(pod: Object) -> Amounts:
    """Return what a pod reserves on its node: the sum of its containers."""
    return _sum(_container_requests(container) for container in (pod.get("spec") or {}).get("containers") or ())


def _container_requests(container: Mapping[str, Any]) -> dict[str, Any]:
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def _sum(amounts: Iterable[Mapping[str, Any]]) -> Amounts:
    total: Amounts = {}
    for entry in amounts:
        for name, amount in entry.items():
            total[name] = total.get(name, Decimal(0)) + (amount if isinstance(amount, Decimal) else parse(amount))
    return total
