"""Amounts as Kubernetes writes them: `500m`, `2Gi`, `1e3`, 4."""

import re
from decimal import Decimal

BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal("1e3"),
    "M": Decimal("1e6"),
    "G": Decimal("1e9"),
    "T": Decimal("1e12"),
    "P": Decimal("1e15"),
    "E": Decimal("1e18"),
}
UNITS = {**DECIMAL, **{unit: Decimal(size) for unit, size in BINARY.items()}}

# Lengths are bounded so that no amount costs more than a glance.
FORM = re.compile(
    r"([+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20}))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,2}))?",
    re.ASCII,
)


def parse(value: object) -> Decimal:
    """Read an amount; ValueError when it is none."""
    found = FORM.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    if found is None or isinstance(value, bool):
        raise ValueError(f"{value!r} is not an amount; write it like 2, 500m or 4Gi")
    number, unit, exponent = found.groups()
    if exponent:
        return Decimal(number) * Decimal(10) ** int(exponent)
    return Decimal(number) * UNITS[unit or ""]


def show(amount: Decimal, *, binary: bool = False) -> str:
    """Write an amount for people, to two digits after the point: `1.5Gi` when binary, else `0.5`."""
    unit = ""
    if binary:
        unit = next((u for u, size in reversed(BINARY.items()) if abs(amount) >= size), "")
        amount /= UNITS[unit]
    return f"{amount:.2f}".rstrip("0").rstrip(".") + unit
