"""The scale subresource: the replica counts of an object, and their validation."""

from collections.abc import Iterator
from typing import Any

from paceline.apimachinery.field_errors import invalid
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import ScalePaths
from paceline.errors import Fault

MOST = 2**31 - 1
# Names of decoded JSON types in Go.
_TYPES = {bool: "bool", float: "float64", str: "string", list: "[]interface {}", dict: "map[string]interface {}"}


def at(obj: Any, path: str) -> Any:
    """Return the value at a simple path, or None."""
    for step in path[1:].split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def scale_faults(obj: Object, paths: ScalePaths, *, status: bool = False) -> Iterator[Fault]:
    """Yield the faults of a replica count, in the spec or in the status."""
    path = paths.status if status else paths.spec
    holder, value = obj, at(obj, path)
    steps = path[1:].split(".")
    for step in steps[:-1]:
        holder = holder.get(step, {})
        if not isinstance(holder, dict):
            problem = f"{holder} is of the type {_named(holder)}, expected map[string]interface{{}}"
            yield invalid(path, 0, f"{path} accessor error: {problem}")
            return
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        shown = f"{value:g}" if isinstance(value, float) else value
        problem = f"{shown} is of the type {_named(value)}, expected int64"
        yield invalid(path, 0, f"{path} accessor error: {problem}")
    elif value < 0:
        yield invalid(path, value, "should be a non-negative integer")
    elif value > MOST:
        yield invalid(path, value, f"should be less than or equal to {MOST}")


def _named(value: Any) -> str:
    return _TYPES.get(type(value), "int64")
