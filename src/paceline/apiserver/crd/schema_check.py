"""What of a definition only a validator can tell: whether its schemas work, and whether its defaults satisfy them."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from paceline.apimachinery.crd import crd
from paceline.apimachinery.crd.validation import part_path
from paceline.apimachinery.field_errors import invalid
from paceline.apimachinery.meta import Object
from paceline.apimachinery.schema import Shapes, as_json_schema, prune
from paceline.apiserver.crd.regex_support import without_unsupported_patterns
from paceline.apiserver.crd.schema_validation import faults_of
from paceline.apiserver.crd.validator import Validator, compile_schema
from paceline.errors import Fault

NOTHING: Mapping[str, Any] = {}


def definition_faults(obj: Object) -> tuple[Fault, ...]:
    """Return the errors in the schemas of a definition."""
    versions = crd.versions_of(obj)
    faults: list[Fault] = []
    for index, version in enumerate(versions):
        path = part_path(versions, index, "schema")
        if path is not None:
            faults.extend(_faults(crd.schema_of(version), f"{path}.openAPIV3Schema"))
    return tuple(faults)


def _faults(schema: Mapping[str, Any], path: str) -> Iterator[Fault]:
    try:
        _validator(schema)
    except ValueError as error:
        yield invalid(path, "schema", f"cannot be used: {_first_line(error)}")
        return
    yield from _default_faults(schema, path)


def _default_faults(schema: Mapping[str, Any], path: str) -> Iterator[Fault]:
    if schema.get("default") is not None:
        yield from _default_fault(schema, f"{path}.default")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _default_faults(inner, f"{path}.properties[{name}]")
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), Mapping):
            yield from _default_faults(schema[part], f"{path}.{part}")


def _default_fault(schema: Mapping[str, Any], path: str) -> Iterator[Fault]:
    value = schema["default"]
    faults = [fault for error in _validator(schema).iter_errors(value) for fault in faults_of(error)]
    if faults:
        yield from (replace(fault, path=f"{path}.{fault.path}" if fault.path else path) for fault in faults)
    elif isinstance(value, dict):
        # Wrap the value: the shape of an object always has the fields of metadata, which a default does not.
        wrapped = {"value": deepcopy(value)}
        shape = Shapes(NOTHING).of_object({"type": "object", "properties": {"value": schema}}, structural=True)
        if prune(wrapped, shape):
            yield invalid(path, value, "must not have unknown fields")


def _validator(schema: Mapping[str, Any]) -> Validator:
    return compile_schema(without_unsupported_patterns(as_json_schema(schema, NOTHING)))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
