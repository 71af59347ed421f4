"""The registry of templates, and the tables of their values."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from paceline.apimachinery.field_errors import FieldFault, Problem, did_you_mean
from paceline.errors import Invalid
from paceline.kinds.apps.templates import model_training, tensorflow_training
from paceline.kinds.apps.templates.types import Template, Value

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


def rows_of(template: Template) -> list[Row]:
    """Return a row for every value: its path, its default, and its help text."""
    return list(rows_below(template.values, template.defaults(), ""))


def rows_below(kind: type[Value], defaults: Mapping[str, Any], path: str) -> Iterator[Row]:
    """Yield a row for every value of a type; `path` is where it stands."""
    for field in fields_of(kind):
        value_path = f"{path}{field.encode_name}"
        default = defaults.get(field.encode_name)
        if (inner := nested_type(field.type)) is not None:
            yield from rows_below(inner, default or {}, f"{value_path}.")
        else:
            yield value_path, default_text(default), help_of(field.type)


def fields_of(kind: type[Value]) -> tuple[inspect.Field, ...]:
    """Return the values that an object of a template has."""
    info = inspect.type_info(kind)
    return info.fields if isinstance(info, inspect.StructType) else ()


def nested_type(kind: inspect.Type) -> type[Value] | None:
    """Return the type of a nested object; None for a single value."""
    if isinstance(kind, inspect.Metadata):
        return nested_type(kind.type)
    return kind.cls if isinstance(kind, inspect.StructType) and issubclass(kind.cls, Value) else None


def help_of(kind: inspect.Type) -> str:
    """Return the help text of a field, at any depth of its type."""
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return str((extra or {}).get("description") or help_of(inner))
        case inspect.UnionType(types=arms):
            return next((text for arm in arms if (text := help_of(arm))), "")
    return ""


def default_text(value: Any) -> str:
    """Return a default in the syntax of a values file."""
    if value is None:
        return ""
    return msgspec.json.encode(value).decode()
