"""What all replicas of a job ask for together, and what they may use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from paceline.objects.gang import Gang
from paceline.objects.quantity import parse

Amounts = dict[str, Decimal]

UNITS, KIBI = ("", "Ki", "Mi", "Gi", "Ti", "Pi"), 1024
# Resources that are numbers of something; the others are bytes, but for devices, whose names have a slash.
COUNTED = frozenset({"cpu", "pods"})


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


def say(found: Totals) -> str:
    """Write totals for people: `cpu 8 / 16, memory 4Gi / 8Gi`, what is asked for and what may be used."""
    names = dict.fromkeys([*found.requests, *found.limits])
    return ", ".join(f"{name} {_said(found.requests, name)} / {_said(found.limits, name)}" for name in names)


def _said(amounts: Mapping[str, Decimal], name: str) -> str:
    if name not in amounts:
        return "-"
    amount, unit = amounts[name], 0
    while name not in COUNTED and amount >= KIBI and unit < len(UNITS) - 1 and "/" not in name:
        amount, unit = amount / KIBI, unit + 1
    return f"{amount:.2f}".rstrip("0").rstrip(".") + UNITS[unit]


def _sum(amounts: Iterable[Mapping[str, Any]]) -> Amounts:
    total: Amounts = {}
    for each in amounts:
        for name, amount in each.items():
            total[name] = total.get(name, Decimal(0)) + parse(amount)
    return total
