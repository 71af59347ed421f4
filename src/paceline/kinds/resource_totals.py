"""Resource requests and limits of all replicas of a job together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from paceline.apimachinery.quantity import parse
from paceline.model.gang import Gang

Amounts = dict[str, Decimal]

UNITS, KIBI = ("", "Ki", "Mi", "Gi", "Ti", "Pi"), 1024
# Resources that are counted. The others are bytes, except for devices, whose names contain a slash.
COUNTED = frozenset({"cpu", "pods"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Amounts by resource."""

    requests: Mapping[str, Decimal]
    limits: Mapping[str, Decimal]


def totals(gang: Gang) -> Totals:
    """Return the sums over the containers of all members; a request defaults to the limit."""
    resources = [
        container.get("resources") or {}
        for member in gang.members
        for container in member.template["spec"]["containers"]
    ]
    limits = [dict(container.get("limits") or {}) for container in resources]
    requests = [
        {**limit, **(container.get("requests") or {})} for limit, container in zip(limits, resources, strict=True)
    ]
    return Totals(requests=_sum(requests), limits=_sum(limits))


def say(total: Totals) -> str:
    """Return totals for display, requests / limits: `cpu 8 / 16, memory 4Gi / 8Gi`."""
    names = dict.fromkeys([*total.requests, *total.limits])
    return ", ".join(f"{name} {_format(total.requests, name)} / {_format(total.limits, name)}" for name in names)


def _format(amounts: Mapping[str, Decimal], name: str) -> str:
    if name not in amounts:
        return "-"
    amount, unit = amounts[name], 0
    while name not in COUNTED and amount >= KIBI and unit < len(UNITS) - 1 and "/" not in name:
        amount, unit = amount / KIBI, unit + 1
    return f"{amount:.2f}".rstrip("0").rstrip(".") + UNITS[unit]


def _sum(amounts: Iterable[Mapping[str, Any]]) -> Amounts:
    total: Amounts = {}
    for resources in amounts:
        for name, amount in resources.items():
            total[name] = total.get(name, Decimal(0)) + parse(amount)
    return total
