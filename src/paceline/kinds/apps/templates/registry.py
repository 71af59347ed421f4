"""The registry of templates, and their documentation: value tables, JSON schema and values.yaml."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from paceline.apimachinery.field_errors import FieldFault, Problem, did_you_mean
from paceline.errors import Invalid
from paceline.kinds.apps.templates import model_training, tensorflow_training
from paceline.kinds.apps.templates.types import Template, Value
from paceline.kinds.schema import spec_schema

TEMPLATES: tuple[Template, ...] = (tensorflow_training.TEMPLATE, model_training.TEMPLATE)


def find(name: str, path: str = "template") -> Template:
    """Return a template by name, with or without a repository prefix; raise Invalid with a suggestion."""
    bare = name.rpartition("/")[2]
    for template in TEMPLATES:
        if bare in (template.name, *template.also):
            return template
    names = [alias for template in TEMPLATES for alias in (template.name, *template.also)]
    listed = ", ".join(template.name for template in TEMPLATES)
    hint = f"unknown template{did_you_mean(bare, names) or f'; the templates are: {listed}'}"
    raise Invalid((FieldFault(path, name, hint, Problem.NOT_FOUND),))


Row = tuple[str, str, str]
DRAFT = "http://json-schema.org/draft-07/schema#"


def rows_of(template: Template) -> list[Row]:
    """Return a row for every value: its path, its default, and its help text."""
    return list(_rows(template.values, template.defaults(), ""))


def values_schema(template: Template) -> dict[str, Any]:
    """Return the values.schema.json of a chart, with which Helm validates values before it renders."""
    schema = _strict(spec_schema(template.values))
    return {"$schema": DRAFT, "title": template.name, **schema}


def values_text(template: Template) -> str:
    """Return the values.yaml of a chart: every default, with its help text above it."""
    return "\n".join(_lines(template.values, template.defaults(), 0)) + "\n"


def _rows(kind: type[Value], defaults: Mapping[str, Any], path: str) -> Iterator[Row]:
    for field in _fields(kind):
        value_path = f"{path}{field.encode_name}"
        default = defaults.get(field.encode_name)
        if (inner := _part(field.type)) is not None:
            yield from _rows(inner, default or {}, f"{value_path}.")
        else:
            yield value_path, _default(default), _help(field.type)


def _lines(kind: type[Value], defaults: Mapping[str, Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for field in _fields(kind):
        name, default = field.encode_name, defaults.get(field.encode_name)
        yield f"{indent}# {_help(field.type)}"
        if (inner := _part(field.type)) is not None:
            yield f"{indent}{name}:"
            yield from _lines(inner, default or {}, depth + 1)
        elif default is None:
            yield f"{indent}# {name}: (not set)"
        else:
            yield f"{indent}{name}: {_default(default)}"


def _fields(kind: type[Value]) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(kind)
    return info.fields if isinstance(info, inspect.StructType) else ()


def _part(kind: inspect.Type) -> type[Value] | None:
    """Return the type of a nested object; None for a single value."""
    if isinstance(kind, inspect.Metadata):
        return _part(kind.type)
    return kind.cls if isinstance(kind, inspect.StructType) and issubclass(kind.cls, Value) else None


def _help(kind: inspect.Type) -> str:
    """Return the help text of a field, at any depth of its type."""
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return str((extra or {}).get("description") or _help(inner))
        case inspect.UnionType(types=arms):
            return next((text for arm in arms if (text := _help(arm))), "")
    return ""


def _default(value: Any) -> str:
    """Return a default in the syntax of a values file."""
    if value is None:
        return ""
    return msgspec.json.encode(value).decode()


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema for Helm: without the extensions of Kubernetes, and with unknown fields forbidden."""
    strict = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    if "properties" in strict:
        strict["properties"] = {name: _strict(field) for name, field in strict["properties"].items()}
        strict["additionalProperties"] = False
    elif isinstance(strict.get("additionalProperties"), dict):
        strict["additionalProperties"] = _strict(strict["additionalProperties"])
    if isinstance(strict.get("items"), dict):
        strict["items"] = _strict(strict["items"])
    return strict
