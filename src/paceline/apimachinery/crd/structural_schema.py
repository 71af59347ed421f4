"""Rules for the schema of a CustomResourceDefinition, which must be structural."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from warnings import catch_warnings

from paceline.apimachinery.field_errors import FieldFault, forbidden, invalid, required, unsupported
from paceline.errors import Fault

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("id", "patternProperties", "definitions", "dependencies", "additionalItems")
_BRANCHES = ("allOf", "anyOf", "oneOf")
_INT_OR_STRING_BRANCHES = [{"type": "integer"}, {"type": "string"}]
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_MAP_TYPE = "x-kubernetes-map-type"
_LIST_TYPE, _LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
# Keywords that are not allowed inside allOf, anyOf, oneOf and not.
_NOT_IN_BRANCHES = (
    *("description", "type", "default", "additionalProperties", "nullable"),
    *(_PRESERVE, _EMBEDDED, _INT_OR_STRING, _LIST_KEYS, _LIST_TYPE, _MAP_TYPE),
)
_METADATA_FIELDS = {"name", "generateName"}
# Types of the values of keywords; those of other keywords are checked by the validator.
_KEYWORD_TYPES: Mapping[type, tuple[str, ...]] = {
    str: ("$ref", "description", "format", "id", "pattern", "title", "type", _LIST_TYPE),
    bool: ("nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum", _PRESERVE, _EMBEDDED, _INT_OR_STRING),
    list: (*_BRANCHES, "enum", "required", _LIST_KEYS, "x-kubernetes-validations"),
    dict: ("properties", "patternProperties", "definitions", "dependencies"),
}
_TYPE_OF_KEYWORD = {keyword: expected for expected, keywords in _KEYWORD_TYPES.items() for keyword in keywords}
_TYPE_NAMES = {str: "a string", bool: "true or false", list: "a list", dict: "an object"}


def schema_faults(schema: Schema, path: str) -> tuple[Fault, ...]:
    """Return the faults of a schema."""
    if shape_faults := tuple(_shape_faults(schema, path)):
        return shape_faults
    return (*_faults(schema, path, is_root=True), *_root_faults(schema, path))


def _shape_faults(schema: Any, path: str) -> Iterator[Fault]:
    """Yield the faults of keywords whose values have the wrong type, so that other rules can rely on the types."""
    if not isinstance(schema, Mapping):
        yield invalid(path, schema, "must be a schema")
        return
    for keyword, value in schema.items():
        where = f"{path}.{keyword}"
        expected = _TYPE_OF_KEYWORD.get(keyword)
        if expected is not None and not isinstance(value, expected):
            yield invalid(where, value, f"must be {_TYPE_NAMES[expected]}")
        elif keyword == "properties":
            for name, inner in value.items():
                yield from _shape_faults(inner, f"{where}[{name}]")
        elif keyword in _BRANCHES or (keyword == "items" and isinstance(value, list)):
            for index, inner in enumerate(value):
                yield from _shape_faults(inner, f"{where}[{index}]")
        elif keyword in {"items", "not"} or (keyword == "additionalProperties" and not isinstance(value, bool)):
            yield from _shape_faults(value, where)


def _root_faults(schema: Schema, path: str) -> Iterator[Fault]:
    if schema.get("type") not in {None, "object"}:
        yield invalid(f"{path}.type", schema["type"], "must be object at the root")
    fields = schema.get("properties") or {}
    metadata = fields.get("metadata") or {}
    where = f"{path}.properties[metadata]"
    if metadata.get("type") not in {None, "object"}:
        yield invalid(f"{where}.type", metadata["type"], "must be object")
    elif (
        set(metadata) - {"type", "properties", "description"}
        or set(metadata.get("properties") or ()) - _METADATA_FIELDS
    ):
        yield forbidden(where, "only name and generateName of the metadata may have rules")
    for name in ("apiVersion", "kind"):
        if (field_type := (fields.get(name) or {}).get("type")) not in {None, "string"}:
            yield invalid(f"{path}.properties[{name}].type", field_type, "must be string")


def _faults(schema: Schema, path: str, *, is_root: bool = False) -> Iterator[Fault]:
    yield from _keyword_faults(schema, path)
    yield from _type_faults(schema, path, is_root=is_root)
    yield from _list_faults(schema, path)
    yield from _inner_faults(schema, path)
    is_int_or_string = bool(schema.get(_INT_OR_STRING))
    for keyword in _BRANCHES:
        if is_int_or_string and schema.get(keyword) == _INT_OR_STRING_BRANCHES:
            continue
        for index, branch in enumerate(schema.get(keyword) or ()):
            yield from _branch_faults(branch, f"{path}.{keyword}[{index}]", may_have_type=is_int_or_string)
    if isinstance(schema.get("not"), Mapping):
        yield from _branch_faults(schema["not"], f"{path}.not")


def _keyword_faults(schema: Schema, path: str) -> Iterator[Fault]:
    for keyword in ("$ref", *_UNSUPPORTED):
        if schema.get(keyword) or (keyword == "$ref" and keyword in schema):
            yield forbidden(f"{path}.{keyword}", f"{keyword} is not supported")
    if schema.get("uniqueItems"):
        yield forbidden(f"{path}.uniqueItems", f"checking it takes too long; use {_LIST_TYPE}: set")
    if (pattern := schema.get("pattern")) is not None and (problem := _pattern_problem(pattern)):
        yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression: {problem}")
    if schema.get(_PRESERVE) is False:
        yield invalid(f"{path}.{_PRESERVE}", value=False, hint="must be true or undefined")
    if (map_type := schema.get(_MAP_TYPE)) not in {None, "atomic", "granular"}:
        yield unsupported(f"{path}.{_MAP_TYPE}", map_type, ("atomic", "granular"))


# Errors that are errors for every regular expression engine. Go and Python differ in the others.
_PATTERN_ERRORS = {
    *("missing ), unterminated subpattern", "unbalanced parenthesis", "unterminated character set"),
    *("nothing to repeat", "multiple repeat"),
}


def _pattern_problem(pattern: str) -> str:
    try:
        with catch_warnings(action="ignore"):
            re.compile(pattern)
    except re.error as error:
        return error.msg if error.msg in _PATTERN_ERRORS else ""
    return ""


def _type_faults(schema: Schema, path: str, *, is_root: bool) -> Iterator[Fault]:
    schema_type = schema.get("type")
    if "$ref" in schema:
        return
    if not schema_type and not schema.get(_INT_OR_STRING) and (is_root or not schema.get(_PRESERVE)):
        yield required(f"{path}.type", "must not be empty")
    elif schema_type and schema_type not in _TYPES:
        yield unsupported(f"{path}.type", schema_type, _TYPES)
    if schema_type == "array" and "items" not in schema:
        yield required(f"{path}.items", "must be specified")
    if schema.get(_EMBEDDED):
        if not schema.get(_PRESERVE) and not schema.get("properties"):
            yield required(f"{path}.properties", f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}")
        if schema_type and schema_type != "object":
            yield invalid(f"{path}.type", schema_type, f"must be object if {_EMBEDDED} is true")


def _list_faults(schema: Schema, path: str) -> Iterator[Fault]:
    list_type, keys = schema.get(_LIST_TYPE), schema.get(_LIST_KEYS) or ()
    if list_type is None:
        return
    if list_type not in {"atomic", "set", "map"}:
        yield unsupported(f"{path}.{_LIST_TYPE}", list_type, ("atomic", "set", "map"))
    elif schema.get("type") != "array":
        yield invalid(f"{path}.type", schema.get("type", ""), f"must be array if {_LIST_TYPE} is specified")
    items: Schema = schema["items"] if isinstance(schema.get("items"), Mapping) else {}
    map_type = items.get(_MAP_TYPE)
    if list_type == "set" and items.get("type") == "object" and map_type != "atomic":
        yield FieldFault(f"{path}.items.{_MAP_TYPE}", map_type, f"must be atomic for items of {_LIST_TYPE} set")
    if list_type == "map":
        yield from _key_faults(items, tuple(keys), path)


def _key_faults(items: Schema, keys: tuple[str, ...], path: str) -> Iterator[Fault]:
    fields = items.get("properties") or {}
    if not keys:
        yield required(f"{path}.{_LIST_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    elif any(key not in fields for key in keys):
        yield invalid(f"{path}.{_LIST_KEYS}", list(keys), "entries must all be names of item properties")
    for key in keys:
        if key in fields and "default" not in fields[key] and key not in (items.get("required") or ()):
            where = f"{path}.items.properties[{key}].default"
            yield required(where, f"a property in {_LIST_KEYS} must have a default or be required")


def _inner_faults(schema: Schema, path: str) -> Iterator[Fault]:
    fields, additional, items = schema.get("properties"), schema.get("additionalProperties"), schema.get("items")
    if fields and additional:
        yield forbidden(f"{path}.additionalProperties", "may not be set together with properties")
    for name, inner in (fields or {}).items():
        # The metadata has rules of its own, in _root_faults.
        if not (path.endswith("openAPIV3Schema") and name == "metadata"):
            yield from _faults(inner, f"{path}.properties[{name}]")
    if isinstance(additional, Mapping):
        yield from _faults(additional, f"{path}.additionalProperties")
    if isinstance(items, list):
        yield forbidden(f"{path}.items", "must be a schema and not a list")
    elif isinstance(items, Mapping):
        yield from _faults(items, f"{path}.items")


def _branch_faults(schema: Schema, path: str, *, may_have_type: bool = False) -> Iterator[Fault]:
    """Yield the faults of keywords that are not allowed in a branch."""
    for keyword in _NOT_IN_BRANCHES:
        if schema.get(keyword) and not (may_have_type and keyword == "type"):
            yield forbidden(f"{path}.{keyword}", "must be empty to be structural")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _branch_faults(inner, f"{path}.properties[{name}]")
    for keyword in ("items", "not"):
        if isinstance(schema.get(keyword), Mapping):
            yield from _branch_faults(schema[keyword], f"{path}.{keyword}")
    for keyword in _BRANCHES:
        for index, inner in enumerate(schema.get(keyword) or ()):
            yield from _branch_faults(inner, f"{path}.{keyword}[{index}]")
