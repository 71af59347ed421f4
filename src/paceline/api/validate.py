"""Schema validation: every fault at once, with its path, its value and what would be right."""

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema_rs import Draft7Validator, ValidationError

from paceline.objects.faults import FieldFault, Problem, invalid, required, unsupported
from paceline.objects.meta import Object
from paceline.objects.quantity import RULE, is_quantity
from paceline.objects.schema import META, REF, as_json_schema, spell
from paceline.objects.scheme import Resource, Scheme

# More would not help anyone, and a hostile object could have millions.
MAX_FAULTS = 50

_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "a mapping of fields",
    "string": "a string",
}
_FORMATS = {
    "byte": "must be base64",
    "date-time": "must be a time like 2030-01-31T12:00:00Z",
    "quantity": RULE,
}
_BOUNDS = {
    "minimum": "must be greater than or equal to {limit}",
    "maximum": "must be less than or equal to {limit}",
    "exclusiveMinimum": "must be greater than {limit}",
    "exclusiveMaximum": "must be less than {limit}",
    "minItems": "must have at least {limit} items",
    "maxItems": "must have at most {limit} items",
    "minLength": "must be at least {limit} characters long",
    "maxLength": "may not be longer than {limit} characters",
    "minProperties": "must have at least {limit} fields",
    "maxProperties": "may not have more than {limit} fields",
    "pattern": "must match the pattern {pattern}",
    "multipleOf": "must be a multiple of {multiple_of}",
    "uniqueItems": "every item must be different",
}


class Validators:
    """One compiled validator per kind, made when it is first needed."""

    def __init__(self, scheme: Scheme) -> None:
        self._components = scheme.components
        # By kind, hence as many as the scheme has.
        self._made: dict[tuple[str, str, str], Draft7Validator] = {}

    def faults(self, resource: Resource, obj: Object) -> tuple[FieldFault, ...]:
        """Find everything in an object that its schema does not allow."""
        validator = self._validator(resource)
        if validator.is_valid(obj):
            return ()
        found: list[FieldFault] = []
        for error in validator.iter_errors(obj):
            found.extend(_faults(error))
            if len(found) >= MAX_FAULTS:
                break
        return tuple(sorted(found, key=lambda fault: fault.path))

    def _validator(self, resource: Resource) -> Draft7Validator:
        key = (resource.group, resource.version, resource.kind)
        if key not in self._made:
            parts: list[Mapping[str, Any]] = [resource.schema]
            if META in self._components:
                parts.append({"properties": {"metadata": {"$ref": REF + META}}})
            schema = as_json_schema({"allOf": parts}, self._components)
            self._made[key] = Draft7Validator(schema, validate_formats=True, formats={"quantity": is_quantity})
        return self._made[key]


def _faults(error: ValidationError) -> Iterator[FieldFault]:
    kind, said = error.kind.name, error.kind.as_dict()
    path = spell(error.instance_path)
    match kind:
        case "required":
            yield required(f"{path}.{said['property']}" if path else str(said["property"]))
        case "type":
            yield FieldFault(path, error.instance, _type_hint(said["types"], error.instance), Problem.TYPE)
        case "enum":
            yield unsupported(path, error.instance, said["options"])
        case "format":
            hint = _FORMATS.get(said["format"], f"must be of the form {said['format']}")
            yield invalid(path, error.instance, hint)
        case "anyOf" | "oneOf" if said.get("context"):
            yield from _closest(error, said["context"])
        case _ if kind in _BOUNDS:
            yield invalid(path, error.instance, _BOUNDS[kind].format(**said))
        case _:
            yield invalid(path, error.instance, error.message)


def _closest(error: ValidationError, branches: list[list[ValidationError]]) -> Iterator[FieldFault]:
    """Say what would be right for the value: all types that may stand here, or what one branch lacks."""
    types = [
        each.kind.as_dict()["types"]
        for branch in branches
        for each in branch
        if each.kind.name == "type" and list(each.instance_path) == list(error.instance_path)
    ]
    if len(types) == len(branches):
        wanted = [name for names in types for name in names]
        path = spell(error.instance_path)
        yield FieldFault(path, error.instance, _type_hint(wanted, error.instance), Problem.TYPE)
        return
    nearest = max(branches, key=lambda branch: max(len(list(each.instance_path)) for each in branch))
    for each in nearest:
        yield from _faults(each)


def _type_hint(types: list[str], value: Any) -> str:
    wanted = " or ".join(dict.fromkeys(_TYPES.get(name, name) for name in types))
    hint = f"must be {wanted}, not {_TYPES[type_of(value)]}"
    if isinstance(value, str) and {"integer", "number"} & set(types) and value.strip().isdigit():
        return f"{hint}; write {value.strip()} without quotes"
    if "string" in types and isinstance(value, (bool, int, float)):
        return f"{hint}; put it in quotes"
    return hint


def type_of(value: Any) -> str:
    """Name the JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
