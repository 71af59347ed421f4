"""Scales: where an object says how many replicas it wants and has, and what may stand there."""

from collections.abc import Iterator
from typing import Any

from paceline.errors import Fault
from paceline.objects.faults import invalid
from paceline.objects.meta import Object
from paceline.objects.scheme import ScalePaths

MOST = 2**31 - 1
# As Go calls what it reads out of JSON.
_TYPES = {bool: "bool", float: "float64", str: "string", list: "[]interface {}", dict: "map[string]interface {}"}


def at(obj: Any, path: str) -> Any:
    """Give what lies at a simple path, or nothing."""
    for step in path[1:].split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def scale_faults(obj: Object, paths: ScalePaths, *, status: bool = False) -> Iterator[Fault]:
    """Find what no scale could say, in the spec or in the status."""
    path = paths.status if status else paths.spec
    holder, found = obj, at(obj, path)
    steps = path[1:].split(".")
    for step in steps[:-1]:
        holder = holder.get(step, {})
        if not isinstance(holder, dict):
            said = f"{holder} is of the type {_named(holder)}, expected map[string]interface{{}}"
            yield invalid(path, 0, f"{path} accessor error: {said}")
            return
    if found is None:
        return
    if not isinstance(found, int) or isinstance(found, bool):
        shown = f"{found:g}" if isinstance(found, float) else found
        said = f"{shown} is of the type {_named(found)}, expected int64"
        yield invalid(path, 0, f"{path} accessor error: {said}")
    elif found < 0:
        yield invalid(path, found, "should be a non-negative integer")
    elif found > MOST:
        yield invalid(path, found, f"should be less than or equal to {MOST}")


def _named(value: Any) -> str:
    return _TYPES.get(type(value), "int64")
