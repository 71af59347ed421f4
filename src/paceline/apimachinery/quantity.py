"""Resource quantities of Kubernetes: `500m`, `1.5Gi`, `2e3`."""

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal, localcontext

RULE = "must be a number with an optional unit, like 2, 500m, 1.5Gi or 200M"

_FORM = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_UNITS = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}
_KIBI = 1024
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
# Kubernetes stores quantities in 64 bits.
_LARGEST = 2**63 - 1
_MAX_CHARS = 64


def parse(amount: str | float) -> Decimal:
    """Return the value of a quantity; raise ValueError with the expected format."""
    text = str(amount)
    match = _FORM.fullmatch(text) if len(text) <= _MAX_CHARS else None
    if match is None:
        raise ValueError(RULE)
    sign, digits, exponent, unit = match.groups()
    with localcontext() as exact:
        exact.prec = 2 * _MAX_CHARS
        value = Decimal(digits) * _UNITS[unit or ""] * Decimal(10) ** int(exponent or 0)
        if value > _LARGEST:
            raise ValueError(f"must be at most {_LARGEST}")
        return -value if sign == "-" else value


def canonical(amount: str | float, *, finest: int = 9) -> str:
    """Return a quantity in the canonical form of Kubernetes: in the largest unit without a fraction.

    It is rounded up to `finest` decimal places.
    """
    text = str(amount).strip()
    value = parse(text).quantize(Decimal(1).scaleb(-finest), rounding=ROUND_CEILING)
    match = _FORM.fullmatch(text)
    is_binary = bool(match and (match[4] or "").endswith("i"))
    if is_binary and abs(value) >= _KIBI and value == value.to_integral_value():
        number, power = int(value), 0
        while number % _KIBI == 0 and power < len(_BINARY) - 1:
            number, power = number // _KIBI, power + 1
        return f"{number}{_BINARY[power]}"
    number, power = int(value.scaleb(9)), -3
    while number and number % 1000 == 0 and power < len(_DECIMAL) - 4:
        number, power = number // 1000, power + 1
    if not number:
        return "0"
    if match and match[3] and not is_binary:
        return f"{number}e{3 * power}" if power else str(number)
    return f"{number}{_DECIMAL[power + 3]}"


def is_quantity(text: str) -> bool:
    """Return whether text is a valid quantity."""
    try:
        parse(text)
    except ValueError:
        return False
    return True


def milli(amount: str | float) -> int:
    """Return a quantity in thousandths, rounded up, as for CPUs."""
    return whole(parse(amount) * 1000)


def whole(amount: str | float | Decimal) -> int:
    """Return a quantity in whole units, rounded up, as for bytes and devices."""
    value = amount if isinstance(amount, Decimal) else parse(amount)
    return int(value.to_integral_value(rounding=ROUND_CEILING))


def amounts(quantities: Mapping[str, str] | None) -> dict[str, float]:
    """Return requests or limits as numbers: cores, and whole units of all others; without those that are malformed."""
    numbers = {}
    for name, quantity in (quantities or {}).items():
        try:
            numbers[name] = milli(quantity) / 1000 if name == "cpu" else float(whole(quantity))
        except ValueError:
            continue
    return numbers
