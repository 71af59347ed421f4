"""How much is kept of the past, as people write it into settings.yaml."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from paceline.apimachinery.quantity import parse
from paceline.cluster.config.config_file import NAME, chosen_table
from paceline.errors import Fault, Invalid
from paceline.node.logs.archive import RetentionPolicy
from paceline.settings import Settings

HINT = "write how much is kept of pods that are gone, as in `history: {age: 30d, size: 10Gi, pods: 1000}`"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def chosen_policy(settings: Settings) -> RetentionPolicy:
    """Give the policy of settings.yaml, or the shipped one; Invalid says what is wrong with it."""
    table = chosen_table(settings, "history", HINT)
    where = f"{settings.home / NAME}: history"
    for name in table:
        if name not in READERS:
            raise Invalid((Fault(f"{where}.{name}", table[name], f"is not a setting; {HINT}"),))
    found = {}
    for name, (field, read, hint) in READERS.items():
        if name in table:
            try:
                found[field] = read(table[name])
            except ValueError as error:
                raise Invalid((Fault(f"{where}.{name}", table[name], hint),)) from error
    return RetentionPolicy(**found)


def _age(value: Any) -> timedelta:
    parts = re.fullmatch(r"(\d+)([smhd])", str(value))
    if parts is None:
        raise ValueError(value)
    return timedelta(seconds=int(parts[1]) * UNITS[parts[2]])


def _size(value: Any) -> int:
    return _not_negative(int(parse(str(value))))


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(value)  # noqa: TRY004 - one error for all that is wrong with a value
    return _not_negative(value)


def _not_negative(value: int) -> int:
    if value < 0:
        raise ValueError(value)
    return value


READERS: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "age": ("age", _age, "write a duration, such as 12h or 30d"),
    "size": ("bytes", _size, "write a size, such as 500Mi or 10Gi"),
    "pods": ("pods", _count, "write a whole number"),
}
