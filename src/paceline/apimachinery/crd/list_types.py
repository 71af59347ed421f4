"""Uniqueness of the items of lists with list type `set` or `map`."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.apimachinery.field_errors import duplicate
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Lookup
from paceline.errors import Fault


def list_faults(obj: Object, _lookup: Lookup, *, schema: Mapping[str, Any]) -> tuple[Fault, ...]:
    """Return a fault for every repeated item of a set or map."""
    return tuple(_faults(obj, schema, ""))


def _faults(value: Any, schema: Any, path: str) -> Iterator[Fault]:
    if not isinstance(schema, Mapping):
        return
    if isinstance(value, dict):
        fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, inner in value.items():
            inner_path = f"{path}[{name}]" if name not in fields else f"{path}.{name}" if path else name
            yield from _faults(inner, fields.get(name, others), inner_path)
    elif isinstance(value, list):
        yield from _duplicates(value, schema, path)
        for index, inner in enumerate(value):
            yield from _faults(inner, schema.get("items"), f"{path}[{index}]")


def _duplicates(members: list[Any], schema: Mapping[str, Any], path: str) -> Iterator[Fault]:
    list_type = schema.get("x-kubernetes-list-type")
    if list_type not in {"map", "set"}:
        return
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    seen: set[str] = set()
    for index, member in enumerate(members):
        identity = {key: member[key] for key in keys if key in member} if list_type == "map" else member
        # The type counts too: 1, "1" and True are different items.
        text = repr(identity)
        if text in seen:
            yield duplicate(f"{path}[{index}]", identity)
        seen.add(text)
