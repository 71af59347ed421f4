"""What the containers of a pod ask for, and what follows from it."""

from typing import Any

from paceline.apimachinery.meta import Object
from paceline.apimachinery.pods import containers_of
from paceline.apimachinery.quantity import parse

_COUNTED = ("cpu", "memory")


def qos_class(pod: Object) -> str:
    """Tell how a pod ranks when resources run out, as Kubernetes names it."""
    each = [container.get("resources") for container in containers_of(pod)]
    if not any(_amounts(one, which) for one in each for which in ("requests", "limits")):
        return "BestEffort"
    guaranteed = all(
        set(limits := _amounts(one, "limits")) == set(_COUNTED) and (_amounts(one, "requests") or limits) == limits
        for one in each
    )
    return "Guaranteed" if guaranteed else "Burstable"


def is_extended(resource: str) -> bool:
    """Tell whether a resource is a vendor's own, of which nodes say how many they have."""
    vendor, _, name = resource.partition("/")
    return bool(name) and not f".{vendor}".endswith(".kubernetes.io")


def _amounts(resources: Any, which: str) -> dict[str, Any]:
    """Give the amounts above zero that decide the rank; what cannot be read does not count."""
    found = resources.get(which) if isinstance(resources, dict) else None
    if not isinstance(found, dict):
        return {}
    amounts = {}
    for name in _COUNTED:
        try:
            amount = parse(found[name])
        except (KeyError, ValueError):
            continue
        if amount > 0:
            amounts[name] = amount
    return amounts
