"""Amounts as Kubernetes writes them: `500m`, `1.5Gi`, `2e3`."""

import re
from decimal import ROUND_CEILING, Decimal, localcontext

RULE = "write a number with an optional unit, like 2, 500m, 1.5Gi or 200M"

_FORM = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_UNITS = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}
# What no machine has; Kubernetes holds amounts in 64 bits.
_LARGEST = 2**63 - 1
_MAX_CHARS = 64


def parse(amount: str | float) -> Decimal:
    """Read an amount; ValueError says how to write one."""
    text = str(amount)
    match = _FORM.fullmatch(text) if len(text) <= _MAX_CHARS else None
    if match is None:
        raise ValueError(RULE)
    sign, digits, exponent, unit = match.groups()
    with localcontext() as exact:
        exact.prec = 2 * _MAX_CHARS
        value = Decimal(digits) * _UNITS[unit or ""] * Decimal(10) ** int(exponent or 0)
        if value > _LARGEST:
            raise ValueError(f"the largest amount is {_LARGEST}")
        return -value if sign == "-" else value


def is_quantity(text: str) -> bool:
    """Tell whether text is an amount."""
    try:
        parse(text)
    except ValueError:
        return False
    return True


def milli(amount: str | float) -> int:
    """Read an amount in thousandths, rounded up, as CPUs are counted."""
    return whole(parse(amount) * 1000)


def whole(amount: str | float | Decimal) -> int:
    """Read an amount in whole units, rounded up, as bytes and devices are counted."""
    value = amount if isinstance(amount, Decimal) else parse(amount)
    return int(value.to_integral_value(rounding=ROUND_CEILING))
