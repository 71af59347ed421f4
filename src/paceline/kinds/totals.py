"""What all replicas of a job ask for together, and what they may use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from paceline.objects.gang import Gang
from paceline.objects.quantity import parse

Amounts = dict[str, Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Amounts by resource."""

    requests: Mapping[str, Decimal]
    limits: Mapping[str, Decimal]


def totals(gang: Gang) -> Totals:
    """Add up the containers of all members; what has only a limit asks for as much."""
    resources = [
        container.get("resources") or {}
        for member in gang.members
        for container in member.template["spec"]["containers"]
    ]
    limits = [dict(each.get("limits") or {}) for each in resources]
    requests = [{**limit, **(each.get("requests") or {})} for limit, each in zip(limits, resources, strict=True)]
    return Totals(requests=_sum(requests), limits=_sum(limits))


def _sum(amounts: Iterable[Mapping[str, Any]]) -> Amounts:
    total: Amounts = {}
    for each in amounts:
        for name, amount in each.items():
            total[name] = total.get(name, Decimal(0)) + parse(amount)
    return total
