"""Tables for `kubectl get`: columns, cells and ages."""

import json
import re
from collections.abc import Iterator
from typing import Any

from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.scheme import Column, Resource
from paceline.apimachinery.timestamps import from_wire

UNKNOWN = "<unknown>"
NONE = "<none>"

_NAME = Column(name="Name", path=".metadata.name")
AGE = Column(name="Age", path=".metadata.creationTimestamp", type="date")
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_STEP = re.compile(
    r"\.(?P<name>(?:[^.\[\]\\]|\\.)+)"
    r"|\[(?P<index>-?\d{1,9})\]"
    r"|\['(?P<quoted>[^']*)'\]"
    r"|\[(?P<all>\*)\]"
    r"|\[\?\(@\.(?P<field>[\w.]+)\s*==\s*(?P<mark>['\"])(?P<expected>.*?)(?P=mark)\)\]"
)


def columns_of(resource: Resource) -> tuple[Column, ...]:
    """Return the columns of a kind: its name and its own columns; a kind with a cells function lists all of them."""
    if resource.cells is not None:
        return resource.columns
    return (_NAME, *(resource.columns or (AGE,)))


def cells_of(resource: Resource, obj: Object, now: str) -> tuple[Any, ...]:
    """Return the cells of one row; `now` is in wire form."""
    if resource.cells is not None:
        return resource.cells(obj, now)
    columns = resource.columns or (AGE,)
    return (name_of(obj), *(_cell(column, obj, now) for column in columns))


def definition_of(column: Column) -> dict[str, Any]:
    """Return the column definition of a Table."""
    described = column.description or f"Custom resource definition column (in JSONPath format): {column.path}"
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if column.name == _NAME.name else column.format,
        "description": described,
        "priority": column.priority,
    }


def _cell(column: Column, obj: Object, now: str) -> Any:
    value = next(find_path(obj, column.path), None)
    if column.type == "date":
        return age(value, now)
    if value is None:
        return None
    if column.type in {"integer", "number"}:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return value if is_number else None
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) else json.dumps(value)


def find_path(obj: Any, path: str) -> Iterator[Any]:
    """Yield the values at a JSONPath of a CRD: names, indexes, `[*]` and `[?(@.a=="b")]`."""
    nodes, position = [obj], 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            return
        position = match.end()
        nodes = [inner for value in nodes for inner in _step(value, match)]
    yield from nodes


def _step(value: Any, step: re.Match[str]) -> Iterator[Any]:
    name = step["quoted"] or re.sub(r"\\(.)", r"\1", step["name"] or "")
    if name:
        if isinstance(value, dict) and name in value:
            yield value[name]
    elif isinstance(value, list):
        if step["all"]:
            yield from value
        elif step["index"]:
            yield from value[int(step["index"]) :][:1]
        else:
            expected, field_path = step["expected"], f".{step['field']}"
            yield from (item for item in value if expected in map(str, find_path(item, field_path)))


def created(obj: Object, now: str) -> str:
    """Return the age of an object."""
    return age(obj["metadata"].get("creationTimestamp"), now)


def age(since: Any, now: str) -> str:
    """Return the time since a timestamp, both in wire form."""
    if not isinstance(since, str):
        return UNKNOWN
    try:
        passed = from_wire(now) - from_wire(since)
    except ValueError:
        return UNKNOWN
    return human_duration(passed.total_seconds())


# Durations below the first number of seconds are shown in the large unit, and in the small one if there is one.
_UNITS: tuple[tuple[float, tuple[int, str], tuple[int, str] | None], ...] = (
    (2 * _MINUTE, (1, "s"), None),
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
    (float("inf"), (_YEAR, "y"), None),
)


def human_duration(seconds: float) -> str:
    """Return a duration in one or two units, as kubectl prints it."""
    if seconds < -1:
        return "<invalid>"
    total = max(int(seconds), 0)
    large, small = next((large, small) for limit, large, small in _UNITS if total < limit)
    count, remainder = divmod(total, large[0])
    second = remainder // small[0] if small else 0
    return f"{count}{large[1]}{second}{small[1]}" if small and second else f"{count}{large[1]}"
