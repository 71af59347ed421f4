"""Schema validation: reports all errors, with path, value and the expected form."""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol

from paceline.apimachinery.crd import crd
from paceline.apimachinery.crd.validation import part_path
from paceline.apimachinery.field_errors import FieldFault, Problem, invalid, required, unsupported
from paceline.apimachinery.meta import Object
from paceline.apimachinery.quantity import RULE, is_quantity
from paceline.apimachinery.schema import META, REF, Shapes, as_json_schema, prune, spell
from paceline.apimachinery.scheme import ByKind, Resource
from paceline.errors import Fault

Formats = Mapping[str, Callable[[str], bool]]


class ValidationError(Protocol):
    instance: Any
    instance_path: Sequence[str | int]
    message: str
    kind: Any


class Validator(Protocol):
    def is_valid(self, instance: Any) -> bool: ...

    def iter_errors(self, instance: Any) -> Iterator[ValidationError]: ...


def compile_schema(schema: Any, formats: Formats | None = None) -> Validator:
    """Return the validator of a schema; raise ValueError if the schema is invalid."""
    # Imported on first use: a cluster without custom resources does not need it.
    draft7: Callable[..., Validator] = import_module("jsonschema_rs").Draft7Validator
    return draft7(schema, validate_formats=True, formats=formats)


# A hostile object may have millions.
MAX_FAULTS = 50
NOTHING: Mapping[str, Any] = {}

_JSON_TYPES: Mapping[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
}
_FORMATS = {"byte": "must be base64", "date-time": "must be a time like 2030-01-31T12:00:00Z", "quantity": RULE}
# Kubernetes' path for an error that is not about a single field.
_NO_FIELD = "<nil>"
# Messages, in Kubernetes' form.
_BOUNDS = {
    "minimum": "should be greater than or equal to {limit}",
    "maximum": "should be less than or equal to {limit}",
    "exclusiveMinimum": "should be greater than {limit}",
    "exclusiveMaximum": "should be less than {limit}",
    "minItems": "should have at least {limit} items",
    "minLength": "should be at least {limit} chars long",
    "minProperties": "should have at least {limit} properties",
    "pattern": "should match '{pattern}'",
    "multipleOf": "should be a multiple of {multiple_of}",
    "uniqueItems": "shouldn't contain duplicates",
}


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except ValueError:
        return False
    return True


_UUID = re.compile(r"[0-9A-Fa-f]{8}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{12}")
# Formats of Kubernetes that the validator does not support.
_EXTRA_FORMATS = {"byte": _is_base64, "quantity": is_quantity, "uuid": lambda text: _UUID.fullmatch(text) is not None}


class Validators:
    """One compiled validator per kind, created on first use."""

    def __init__(self, components: Mapping[str, Any]) -> None:
        self._components = components
        self._validators = ByKind(self._compiled)

    def faults(self, resource: Resource, obj: Object) -> tuple[FieldFault, ...]:
        validator = self._validators.of(resource)
        if validator.is_valid(obj):
            return ()
        faults: list[FieldFault] = []
        for error in validator.iter_errors(obj):
            faults.extend(faults_of(error, is_custom=resource.is_structural))
            if len(faults) >= MAX_FAULTS:
                break
        return tuple(sorted(faults, key=lambda fault: fault.path))

    def _compiled(self, resource: Resource) -> Validator:
        parts: list[Mapping[str, Any]] = [resource.schema]
        if META in self._components:
            parts.append({"properties": {"metadata": {"$ref": REF + META}}})
        schema: Any = as_json_schema({"allOf": parts}, self._components)
        if resource.is_structural:
            schema = without_unsupported_patterns(schema)
        return compile_schema(schema, _EXTRA_FORMATS)


def faults_of(error: ValidationError, *, is_custom: bool = False) -> Iterator[FieldFault]:
    """Yield the field errors of a validation error, for custom resources in Kubernetes' form."""
    kind, attributes = error.kind.name, error.kind.as_dict()
    path = spell(error.instance_path)
    match kind:
        case "required":
            yield required(f"{path}.{attributes['property']}" if path else str(attributes["property"]))
        case "type":
            yield _type_fault(path, error.instance, attributes["types"])
        case "enum":
            yield unsupported(path, error.instance, attributes["options"])
        case "format":
            yield _format_fault(path, error.instance, attributes["format"], is_custom=is_custom)
        case "anyOf" | "oneOf" if attributes.get("context"):
            yield from _closest(error, attributes["context"], is_custom=is_custom)
        case "not":
            yield FieldFault(_NO_FIELD, "", f'"{path}" must not validate the schema (not)')
        case _:
            yield _bound_fault(error, kind, attributes)


def _bound_fault(error: ValidationError, kind: str, attributes: Mapping[str, Any]) -> FieldFault:
    path, value = spell(error.instance_path), error.instance
    if kind == "maxLength":
        return FieldFault(path, value, f"may not be more than {attributes['limit']} bytes", Problem.TOO_LONG)
    if kind in {"maxItems", "maxProperties"}:
        hint = f"must have at most {attributes['limit']} {'item' if attributes['limit'] == 1 else 'items'}"
        return FieldFault(path, _size(value), hint, Problem.TOO_MANY)
    if kind in _BOUNDS:
        shown = _size(value) if kind in {"minItems", "minProperties"} else value
        return invalid(path, shown, f"{path} in body {_BOUNDS[kind].format(**attributes)}")
    return invalid(path, value, error.message)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, (dict, list)) else 0


def _type_fault(path: str, value: Any, types: list[str]) -> FieldFault:
    """Return a type error in Kubernetes' form, with a suggestion if there is an obvious one."""
    actual, expected = json_type_of(value), ",".join(dict.fromkeys(name for name in types if name != "null"))
    hint = f'{path} in body must be of type {expected}: "{actual}"{_advice(types, value)}'
    return FieldFault(path, actual, hint, Problem.TYPE)


def _format_fault(path: str, value: Any, form: str, *, is_custom: bool) -> FieldFault:
    if is_custom and form != "quantity":
        return FieldFault(path, value, f'{path} in body must be of type {form}: "{value}"', Problem.TYPE)
    return invalid(path, value, _FORMATS.get(form, f"must be of the form {form}"))


def _closest(error: ValidationError, branches: list[list[ValidationError]], *, is_custom: bool) -> Iterator[FieldFault]:
    """Yield the error of anyOf or oneOf: all accepted types, or the errors of the closest branch."""
    path, valid = spell(error.instance_path), sum(not branch for branch in branches)
    types = [
        branch_error.kind.as_dict()["types"]
        for branch in branches
        for branch_error in branch
        if branch_error.kind.name == "type" and list(branch_error.instance_path) == list(error.instance_path)
    ]
    if len(types) == len(branches):
        expected = [name for names in types for name in names]
        yield _type_fault(path, error.instance, expected)
        return
    if valid:
        hint = f'"{path}" must validate one and only one schema (oneOf). Found {valid} valid alternatives'
        yield FieldFault(_NO_FIELD, "", hint)
        return
    is_any = error.kind.name == "anyOf"
    expectation = "at least one schema (anyOf)" if is_any else "one and only one schema (oneOf). Found none valid"
    yield FieldFault(_NO_FIELD, "", f'"{path}" must validate {expectation}')
    nearest = max(branches, key=lambda branch: max(len(list(branch_error.instance_path)) for branch_error in branch))
    for branch_error in nearest:
        yield from faults_of(branch_error, is_custom=is_custom)


def _advice(types: list[str], value: Any) -> str:
    if isinstance(value, str) and {"integer", "number"} & set(types) and value.strip().isdigit():
        return f"; write {value.strip()} without quotes"
    if "string" in types and isinstance(value, (bool, int, float)):
        return "; put it in quotes"
    return ""


def json_type_of(value: Any) -> str:
    return _JSON_TYPES.get(type(value), "object")


def without_unsupported_patterns(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_unsupported_patterns(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    supported = {name: without_unsupported_patterns(inner) for name, inner in schema.items()}
    if isinstance(pattern := supported.get("pattern"), str) and not _is_supported(pattern):
        del supported["pattern"]
    return supported


@lru_cache(maxsize=1024)
def _is_supported(pattern: str) -> bool:
    try:
        compile_schema({"pattern": pattern})
    except ValueError:
        return False
    return True


def definition_faults(obj: Object) -> tuple[Fault, ...]:
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
        problem = str(error).partition("\n")[0]
        yield invalid(path, "schema", f"cannot be used: {problem}")
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
