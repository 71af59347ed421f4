"""What the schema of a definition may say: it must be structural, so that every field has exactly one meaning.

In     a schema, and where it stands.
Out    everything that Kubernetes would refuse in it, in its words.
Never  looks at an object of the kind.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from warnings import catch_warnings

from paceline.apimachinery.field_errors import FieldFault, forbidden, invalid, required, unsupported
from paceline.errors import Fault

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_NEVER = ("id", "patternProperties", "definitions", "dependencies", "additionalItems")
# What may only be said once, outside of allOf, anyOf, oneOf and not.
_OUTSIDE = (
    *("description", "type", "default", "additionalProperties", "nullable"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"),
    *("x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type"),
)
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_FREE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_EITHER = "x-kubernetes-int-or-string"
_LIST_TYPE, _LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"


def schema_faults(schema: Schema, path: str) -> tuple[Fault, ...]:
    """Find everything in a schema that it may not say."""
    if misshapen := tuple(_misshapen(schema, path)):
        return misshapen
    return (*_faults(schema, path, holder="root"), *_root_faults(schema, path))


# What the value of a word is; where a word is not listed, the validator tells.
_TEXTS = frozenset({"$ref", "description", "format", "id", "pattern", "title", "type", _LIST_TYPE})
_FLAGS = frozenset(
    {"nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum", _FREE, _EMBEDDED, _EITHER},
)
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "enum", "required", _LIST_KEYS, "x-kubernetes-validations"})
_MAPS = frozenset({"properties", "patternProperties", "definitions", "dependencies"})


def _misshapen(schema: Any, path: str) -> Iterator[Fault]:
    """Find where a schema is none at all: what stands below lists and maps of schemas is not known before."""
    if not isinstance(schema, Mapping):
        yield invalid(path, schema, "must be a schema")
        return
    for word, value in schema.items():
        where = f"{path}.{word}"
        wanted = _wanted(word)
        if wanted is not None and not isinstance(value, wanted):
            yield invalid(where, value, f"must be {_NAMED[wanted]}")
        elif word == "properties":
            for name, inner in value.items():
                yield from _misshapen(inner, f"{where}[{name}]")
        elif word in {"allOf", "anyOf", "oneOf"} or (word == "items" and isinstance(value, list)):
            for index, inner in enumerate(value):
                yield from _misshapen(inner, f"{where}[{index}]")
        elif word in {"items", "not"} or (word == "additionalProperties" and not isinstance(value, bool)):
            yield from _misshapen(value, where)


_NAMED = {str: "a string", bool: "true or false", list: "a list", dict: "a mapping"}


def _wanted(word: str) -> type | None:
    sorts = ((_TEXTS, str), (_FLAGS, bool), (_LISTS, list), (_MAPS, dict))
    return next((sort for words, sort in sorts if word in words), None)


def _root_faults(schema: Schema, path: str) -> Iterator[Fault]:
    if schema.get("type") not in {None, "object"}:
        yield invalid(f"{path}.type", schema["type"], "must be object at the root")
    fields = schema.get("properties") or {}
    metadata = fields.get("metadata") or {}
    where = f"{path}.properties[metadata]"
    if metadata.get("type") not in {None, "object"}:
        yield invalid(f"{where}.type", metadata["type"], "must be object")
    elif set(metadata) - {"type", "properties", "description"} or set(metadata.get("properties") or ()) - _NAMES:
        hint = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(where, hint)
    for name in ("apiVersion", "kind"):
        if (sort := (fields.get(name) or {}).get("type")) not in {None, "string"}:
            yield invalid(f"{path}.properties[{name}].type", sort, "must be string")


_NAMES = {"name", "generateName"}
_EMPTY = {
    "root": "must not be empty at the root",
    "field": "must not be empty for specified object fields",
    "items": "must not be empty for specified array items",
}


def _faults(schema: Schema, path: str, *, holder: str) -> Iterator[Fault]:
    yield from _words(schema, path)
    yield from _type_faults(schema, path, holder)
    yield from _list_faults(schema, path)
    yield from _inner_faults(schema, path)
    for word in ("allOf", "anyOf", "oneOf"):
        is_either = schema.get(_EITHER) and schema.get(word) == _INT_OR_STRING
        for index, each in enumerate(() if is_either else schema.get(word) or ()):
            yield from _branch_faults(each, f"{path}.{word}[{index}]", is_either=bool(schema.get(_EITHER)))
    if isinstance(schema.get("not"), Mapping):
        yield from _branch_faults(schema["not"], f"{path}.not")


def _words(schema: Schema, path: str) -> Iterator[Fault]:
    if "$ref" in schema:
        yield forbidden(f"{path}.$ref", "$ref is not supported")
    for word in _NEVER:
        if schema.get(word):
            yield forbidden(f"{path}.{word}", f"{word} is not supported")
    if schema.get("uniqueItems"):
        hint = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", hint)
    if isinstance(pattern := schema.get("pattern"), str) and (wrong := _pattern_problem(pattern)):
        hint = f"must be a valid regular expression, but isn't: error parsing regexp: {wrong}"
        yield invalid(f"{path}.pattern", pattern, hint)
    if schema.get(_FREE) is False:
        yield invalid(f"{path}.{_FREE}", value=False, hint="must be true or undefined")
    if (sort := schema.get("x-kubernetes-map-type")) not in {None, "atomic", "granular"}:
        yield unsupported(f"{path}.x-kubernetes-map-type", sort, ("atomic", "granular"))


# What no reader of regular expressions takes, in the words of Kubernetes; they differ in what else they take.
_BROKEN = {
    "missing ), unterminated subpattern": "missing closing )",
    "unbalanced parenthesis": "unexpected )",
    "unterminated character set": "missing closing ]",
    "nothing to repeat": "missing argument to repetition operator",
    "multiple repeat": "invalid nested repetition operator",
}


def _pattern_problem(pattern: str) -> str:
    try:
        with catch_warnings(action="ignore"):
            re.compile(pattern)
    except re.error as error:
        said = _BROKEN.get(error.msg, "")
        return f"{said}: `{pattern}`" if said else ""
    return ""


def _type_faults(schema: Schema, path: str, holder: str) -> Iterator[Fault]:
    sort = schema.get("type")
    if "$ref" in schema:
        return
    if not sort and not schema.get(_EITHER) and not (schema.get(_FREE) and holder != "root"):
        yield required(f"{path}.type", _EMPTY[holder])
    elif sort and sort not in _TYPES:
        yield unsupported(f"{path}.type", sort, _TYPES)
    if sort == "array" and "items" not in schema:
        yield required(f"{path}.items", "must be specified")
    if schema.get(_EMBEDDED):
        if not schema.get(_FREE) and not schema.get("properties"):
            hint = f"must not be empty if {_EMBEDDED} is true without {_FREE}"
            yield required(f"{path}.properties", hint)
        if sort and sort != "object":
            yield invalid(f"{path}.type", sort, f"must be object if {_EMBEDDED} is true")


def _list_faults(schema: Schema, path: str) -> Iterator[Fault]:
    sort, keys = schema.get(_LIST_TYPE), schema.get(_LIST_KEYS) or ()
    if sort is None:
        return
    if sort not in {"atomic", "set", "map"}:
        yield unsupported(f"{path}.{_LIST_TYPE}", sort, ("atomic", "set", "map"))
    elif schema.get("type") != "array":
        yield invalid(f"{path}.type", schema.get("type", ""), f"must be array if {_LIST_TYPE} is specified")
    items: Schema = schema["items"] if isinstance(schema.get("items"), Mapping) else {}
    merged = items.get("x-kubernetes-map-type")
    if sort == "set" and items.get("type") == "object" and merged != "atomic":
        hint = f"must be atomic as item of a list with {_LIST_TYPE}=set"
        yield FieldFault(f"{path}.items.x-kubernetes-map-type", merged, hint)
    if sort == "map":
        yield from _key_faults(items, tuple(keys), path)


def _key_faults(items: Schema, keys: tuple[str, ...], path: str) -> Iterator[Fault]:
    fields = items.get("properties") or {}
    if not keys:
        yield required(f"{path}.{_LIST_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    elif any(key not in fields for key in keys):
        yield invalid(f"{path}.{_LIST_KEYS}", list(keys), "entries must all be names of item properties")
    for key in keys:
        if key in fields and "default" not in fields[key] and key not in (items.get("required") or ()):
            hint = f"this property is in {_LIST_KEYS}, so it must have a default or be a required property"
            yield required(f"{path}.items.properties[{key}].default", hint)


def _inner_faults(schema: Schema, path: str) -> Iterator[Fault]:
    fields, others, items = schema.get("properties"), schema.get("additionalProperties"), schema.get("items")
    if fields and others:
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    for name, inner in (fields or {}).items():
        where = f"{path}.properties[{name}]"
        # What it may say of metadata is told at the root, in words of its own.
        if path.endswith("openAPIV3Schema") and name == "metadata":
            continue
        yield from _faults(inner, where, holder="field")
    if isinstance(others, Mapping):
        yield from _faults(others, f"{path}.additionalProperties", holder="field")
    if isinstance(items, list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    elif isinstance(items, Mapping):
        yield from _faults(items, f"{path}.items", holder="items")


def _branch_faults(schema: Schema, path: str, *, is_either: bool = False) -> Iterator[Fault]:
    """Find what a branch says that only the schema around it may say."""
    allowed = {"type"} if is_either else set()
    for word in _OUTSIDE:
        if schema.get(word) and word not in allowed:
            yield forbidden(f"{path}.{word}", "must be empty to be structural")
    inner = partial(_branch_faults, is_either=False)
    for name, each in (schema.get("properties") or {}).items():
        yield from inner(each, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), Mapping):
        yield from inner(schema["items"], f"{path}.items")
    for word in ("allOf", "anyOf", "oneOf"):
        for index, each in enumerate(schema.get(word) or ()):
            yield from inner(each, f"{path}.{word}[{index}]")
    if isinstance(schema.get("not"), Mapping):
        yield from inner(schema["not"], f"{path}.not")
