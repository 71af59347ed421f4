"""Lists that stand for sets and maps: no member may be there twice."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.errors import Fault
from paceline.objects.faults import duplicate
from paceline.objects.meta import Object
from paceline.objects.scheme import Lookup


def list_faults(obj: Object, _lookup: Lookup, *, schema: Mapping[str, Any]) -> tuple[Fault, ...]:
    """Find every member of a set or map that is there already."""
    return tuple(_faults(obj, schema, ""))


def _faults(value: Any, schema: Any, path: str) -> Iterator[Fault]:
    if not isinstance(schema, Mapping):
        return
    if isinstance(value, dict):
        fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, inner in value.items():
            where = f"{path}[{name}]" if name not in fields else f"{path}.{name}" if path else name
            yield from _faults(inner, fields.get(name, others), where)
    elif isinstance(value, list):
        yield from _twice(value, schema, path)
        for index, inner in enumerate(value):
            yield from _faults(inner, schema.get("items"), f"{path}[{index}]")


def _twice(members: list[Any], schema: Mapping[str, Any], path: str) -> Iterator[Fault]:
    sort = schema.get("x-kubernetes-list-type")
    if sort not in {"map", "set"}:
        return
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    seen: set[str] = set()
    for index, member in enumerate(members):
        known = {key: member[key] for key in keys if key in member} if sort == "map" else member
        # Told apart by type as well: 1, "1" and True are different members.
        spelled = repr(known)
        if spelled in seen:
            yield duplicate(f"{path}[{index}]", known)
        seen.add(spelled)
