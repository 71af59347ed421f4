"""Tables as `kubectl get` shows them: columns, cells, ages."""

import json
import re
from collections.abc import Iterator
from typing import Any

from paceline.objects.meta import Object, name_of
from paceline.objects.scheme import Column, Resource
from paceline.objects.times import from_wire

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
    r"|\[\?\(@\.(?P<field>[\w.]+)\s*==\s*(?P<mark>['\"])(?P<wanted>.*?)(?P=mark)\)\]"
)


def columns_of(resource: Resource) -> tuple[Column, ...]:
    """Give a kind's columns. Plain ones come after its name; a kind with cells lists all its own."""
    if resource.cells is not None:
        return resource.columns
    return (_NAME, *(resource.columns or (AGE,)))


def cells_of(resource: Resource, obj: Object, now: str) -> tuple[Any, ...]:
    """Give the cells of one row, at a moment in wire form."""
    if resource.cells is not None:
        return resource.cells(obj, now)
    columns = resource.columns or (AGE,)
    return (name_of(obj), *(_cell(column, obj, now) for column in columns))


def definition_of(column: Column) -> dict[str, Any]:
    """Write a column as the head of a table has it."""
    described = column.description or f"Custom resource definition column (in JSONPath format): {column.path}"
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if column.name == _NAME.name else column.format,
        "description": described,
        "priority": column.priority,
    }


def _cell(column: Column, obj: Object, now: str) -> Any:
    found = next(find_path(obj, column.path), None)
    if column.type == "date":
        return age(found, now)
    if found is None:
        return None
    if column.type in {"integer", "number"}:
        is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
        return found if is_number else None
    if column.type == "boolean":
        return found if isinstance(found, bool) else None
    return found if isinstance(found, str) else json.dumps(found)


def find_path(obj: Any, path: str) -> Iterator[Any]:
    """Give what lies at a JSONPath as CRDs write it: names, indices, `[*]` and `[?(@.a=="b")]`."""
    found, at = [obj], 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return
        at = match.end()
        found = [inner for each in found for inner in _step(each, match)]
    yield from found


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
            wanted, where = step["wanted"], f".{step['field']}"
            yield from (each for each in value if wanted in map(str, find_path(each, where)))


def created(obj: Object, now: str) -> str:
    """Tell how long ago an object was created."""
    return age(obj["metadata"].get("creationTimestamp"), now)


def age(since: Any, now: str) -> str:
    """Tell how long ago a moment was, both in wire form."""
    if not isinstance(since, str):
        return UNKNOWN
    try:
        passed = from_wire(now) - from_wire(since)
    except ValueError:
        return UNKNOWN
    return human_duration(passed.total_seconds())


def human_duration(seconds: float) -> str:
    """Write a duration in the two largest units that matter, as kubectl does."""
    whole = int(seconds)
    if seconds < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(whole: int, large: int, large_name: str, small: int, small_name: str) -> str:
    first, rest = divmod(whole, large)
    second = rest // small
    return f"{first}{large_name}{second}{small_name}" if second else f"{first}{large_name}"
