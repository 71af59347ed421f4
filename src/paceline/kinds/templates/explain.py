"""A template's values, explained: rows for people, a JSON schema and a file of defaults for a chart."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from paceline.kinds.schema import spec_schema
from paceline.kinds.templates.mould import Template, Value

Row = tuple[str, str, str]
DRAFT = "http://json-schema.org/draft-07/schema#"


def rows_of(template: Template) -> list[Row]:
    """Give every value: where it stands, its default, and what it means."""
    return list(_rows(template.values, template.defaults(), ""))


def values_schema(template: Template) -> dict[str, Any]:
    """Write what a chart's values.schema.json says: Helm refuses what does not fit before it renders."""
    schema = _strict(spec_schema(template.values))
    return {"$schema": DRAFT, "title": template.name, **schema}


def values_text(template: Template) -> str:
    """Write a chart's values.yaml: every default, with what it means above it."""
    return "\n".join(_lines(template.values, template.defaults(), 0)) + "\n"


def _rows(kind: type[Value], defaults: Mapping[str, Any], path: str) -> Iterator[Row]:
    for field in _fields(kind):
        where = f"{path}{field.encode_name}"
        default = defaults.get(field.encode_name)
        if (inner := _part(field.type)) is not None:
            yield from _rows(inner, default or {}, f"{where}.")
        else:
            yield where, _said(default), _told(field.type)


def _lines(kind: type[Value], defaults: Mapping[str, Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for field in _fields(kind):
        name, default = field.encode_name, defaults.get(field.encode_name)
        yield f"{indent}# {_told(field.type)}"
        if (inner := _part(field.type)) is not None:
            yield f"{indent}{name}:"
            yield from _lines(inner, default or {}, depth + 1)
        elif default is None:
            yield f"{indent}# {name}: (not set)"
        else:
            yield f"{indent}{name}: {_said(default)}"


def _fields(kind: type[Value]) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(kind)
    return info.fields if isinstance(info, inspect.StructType) else ()


def _part(kind: inspect.Type) -> type[Value] | None:
    """Give the part that a field holds; None for a single value."""
    if isinstance(kind, inspect.Metadata):
        return _part(kind.type)
    return kind.cls if isinstance(kind, inspect.StructType) and issubclass(kind.cls, Value) else None


def _told(kind: inspect.Type) -> str:
    """Give the help that stands on a field, however deep in its type."""
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return str((extra or {}).get("description") or _told(inner))
        case inspect.UnionType(types=arms):
            return next((told for arm in arms if (told := _told(arm))), "")
    return ""


def _said(value: Any) -> str:
    """Write a default as a values file would."""
    if value is None:
        return ""
    return msgspec.json.encode(value).decode()


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Turn a schema for Kubernetes into one for Helm: nothing that has no name, and no words of Kubernetes."""
    kept = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    if "properties" in kept:
        kept["properties"] = {name: _strict(each) for name, each in kept["properties"].items()}
        kept["additionalProperties"] = False
    elif isinstance(kept.get("additionalProperties"), dict):
        kept["additionalProperties"] = _strict(kept["additionalProperties"])
    if isinstance(kept.get("items"), dict):
        kept["items"] = _strict(kept["items"])
    return kept
