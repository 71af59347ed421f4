"""OpenAPI v2: the schemas of all kinds in one document.

kubectl reads it, as protobuf only, if v3 does not have a kind: a List, or a misspelled one.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from paceline.apimachinery.meta import Object
from paceline.apimachinery.schema import REF

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_DEFINITIONS = "#/definitions/"
# Field numbers of the messages.
_SWAGGER, _INFO, _DEFINED = 1, 2, 9
_REF, _FORMAT, _DESCRIPTION, _REQUIRED = 1, 2, 4, 19
_OTHERS, _TYPE, _ITEMS, _FIELDS, _EXTENSION = 21, 22, 23, 25, 31
_KEPT = (
    *("type", "format", "description", "required", "enum", "items", "properties", "additionalProperties"),
    *("x-kubernetes-group-version-kind", "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-preserve-unknown-fields"),
)


def as_json(schemas: Mapping[str, Any]) -> bytes:
    definitions = {name: _to_v2(schema) for name, schema in sorted(schemas.items())}
    head = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": "unversioned"}}
    return orjson.dumps({**head, "paths": {}, "definitions": definitions})


def as_protobuf(schemas: Mapping[str, Any]) -> bytes:
    info = _text(1, "Kubernetes") + _text(2, "unversioned")
    definitions = _all_named((name, _to_v2(schema)) for name, schema in sorted(schemas.items()))
    return _text(_SWAGGER, "2.0") + _bytes(_INFO, info) + _bytes(_DEFINED, definitions)


def _to_v2(schema: Any) -> Object:
    """Convert a v3 schema to v2; features that v2 lacks are left open."""
    parts: list[Any] = schema.get("allOf") or []
    if len(parts) == 1 and "$ref" in parts[0]:
        schema = {**schema, "$ref": parts[0]["$ref"]}
    if "$ref" in schema:
        return {"$ref": _DEFINITIONS + str(schema["$ref"]).removeprefix(REF)}
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string"):
        schema = {word: value for word, value in schema.items() if word not in {"type", "properties", "items"}}
    converted: Object = {word: schema[word] for word in _KEPT if word in schema}
    if "properties" in converted:
        converted["properties"] = {name: _to_v2(inner) for name, inner in converted["properties"].items()}
    for part in ("items", "additionalProperties"):
        if isinstance(converted.get(part), Mapping):
            converted[part] = _to_v2(converted[part])
    return converted


def _schema(schema: Object) -> bytes:
    return b"".join(_parts(schema))


def _parts(schema: Object) -> Iterator[bytes]:
    for word, number in (("$ref", _REF), ("format", _FORMAT), ("description", _DESCRIPTION)):
        if schema.get(word):
            yield _text(number, str(schema[word]))
    yield from (_text(_REQUIRED, str(name)) for name in schema.get("required") or ())
    others, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(others, dict):
        yield _bytes(_OTHERS, _bytes(1, _schema(others)))
    if isinstance(schema.get("type"), str):
        yield _bytes(_TYPE, _text(1, schema["type"]))
    if isinstance(items, dict):
        yield _bytes(_ITEMS, _bytes(1, _schema(items)))
    if schema.get("properties"):
        yield _bytes(_FIELDS, _all_named(schema["properties"].items()))
    for word, value in schema.items():
        if word.startswith("x-kubernetes-"):
            # The value of an extension is YAML text, which includes JSON.
            yield _bytes(_EXTENSION, _named(word, _text(2, orjson.dumps(value).decode())))


def _all_named(schemas: Iterable[tuple[str, Object]]) -> bytes:
    return b"".join(_bytes(1, _named(name, _schema(schema))) for name, schema in schemas)


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _bytes(2, value)


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode())


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
