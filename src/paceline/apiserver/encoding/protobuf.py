"""Request bodies in protobuf, as kubectl sends them for built-in kinds; responses are JSON, which it accepts too."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from struct import unpack
from typing import Any

import orjson

from paceline.apimachinery.builtin.go_types import GoKind, GoType, fields_of, struct_of
from paceline.apimachinery.meta import Object
from paceline.apiserver.encoding.request_body import content_type
from paceline.apiserver.http_types import JSON, HttpRequest
from paceline.apiserver.status_errors import bad_request
from paceline.errors import BadRequest

PROTOBUF = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
MAX_DEPTH = 64

_VARINT, _BYTES = 0, 2
_FIXED_SIZES = {1: 8, 5: 4}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Clients send options with the group of the object.
_OPTIONS = {"DeleteOptions": "meta.v1.DeleteOptions"}

# Field number and value.
_Fields = Iterator[tuple[int, int | bytes]]


def is_protobuf(request: HttpRequest) -> bool:
    return content_type(request) == PROTOBUF and bool(request.body)


def as_json(request: HttpRequest) -> HttpRequest:
    """Convert a protobuf body to JSON; raise BadRequest if it is malformed.

    Objects of unknown kinds stay as they are; the handler of the path rejects them.
    """
    try:
        obj = decode(request.body)
    except BadRequest as error:
        raise bad_request(f"the body is not protobuf as Kubernetes writes it: {error}") from error
    if obj is None:
        return request
    return replace(request, body=orjson.dumps(obj), headers={**request.headers, "content-type": JSON})


def decode(body: bytes) -> Object | None:
    """Return the object in an envelope; None for a kind without protobuf; raise BadRequest if it is malformed."""
    if not body.startswith(MAGIC):
        raise BadRequest("it does not begin with the mark of Kubernetes")
    type_meta, raw = {1: "", 2: ""}, b""
    for number, value in _fields(body[len(MAGIC) :]):
        if number == 1:
            type_meta |= {inner: _text(text) for inner, text in _fields(_as_bytes(value))}
        elif number == 2:
            raw = _as_bytes(value)
    version, kind = type_meta[1], type_meta[2]
    group, _, short = version.rpartition("/")
    struct = _OPTIONS.get(kind) or struct_of(group, short, kind)
    if not struct:
        return None
    return {"apiVersion": version, "kind": kind, **_struct(raw, struct, MAX_DEPTH)}


def _struct(raw: bytes, struct: str, depth: int) -> Object:
    if not depth:
        raise BadRequest(f"it nests deeper than {MAX_DEPTH} levels")
    fields_by_number = {field_type.number: field_type for field_type in fields_of(struct)}
    obj: Object = {}
    for number, value in _fields(raw):
        field = fields_by_number.get(number)
        if field is None:
            continue
        if not field.name:
            obj |= _struct(_as_bytes(value), field.type.struct, depth - 1)
            continue
        match field.type.kind:
            case GoKind.LIST if field.type.inner is not None:
                obj.setdefault(field.name, []).extend(_items(value, field.type.inner, depth))
            case GoKind.MAP if field.type.inner is not None:
                obj.setdefault(field.name, {}).update((_entry(_as_bytes(value), field.type.inner, depth),))
            case _:
                obj[field.name] = _value(value, field.type, depth)
    return obj


def _items(value: int | bytes, go_type: GoType, depth: int) -> Iterator[Any]:
    if go_type.kind is GoKind.INTEGER and isinstance(value, bytes):
        # Packed numbers.
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            yield _signed(number)
    else:
        yield _value(value, go_type, depth)


def _entry(raw: bytes, go_type: GoType, depth: int) -> tuple[str, Any]:
    parts: dict[int, int | bytes] = dict(_fields(raw))
    inside = parts.get(2, b"")
    if go_type.kind is GoKind.LIST and go_type.inner is not None:
        # A list in a map is a message of its own.
        listed = [item for number, one in _fields(_as_bytes(inside)) if number == 1 for item in (one,)]
        return _text(parts.get(1, b"")), [_value(item, go_type.inner, depth - 1) for item in listed]
    return _text(parts.get(1, b"")), _value(inside, go_type, depth - 1)


def _value(value: int | bytes, go_type: GoType, depth: int) -> Any:
    match go_type.kind:
        case GoKind.BOOL:
            return bool(_number(value))
        case GoKind.INTEGER:
            return _signed(_number(value))
        case GoKind.FLOAT:
            return unpack("<d", _as_bytes(value))[0] if len(_as_bytes(value)) == 8 else 0.0
        case GoKind.STRING:
            return _text(value)
        case GoKind.BYTES:
            return b64encode(_as_bytes(value)).decode()
        case GoKind.STRUCT:
            return _struct(_as_bytes(value), go_type.struct, depth - 1)
        case _:
            return _special(dict(_fields(_as_bytes(value))), go_type)


def _special(parts: Mapping[int, int | bytes], go_type: GoType) -> Any:
    match go_type.kind:
        case GoKind.TIME | GoKind.MICRO_TIME:
            return _moment(parts, "seconds" if go_type.kind is GoKind.TIME else "microseconds") if parts else None
        case GoKind.QUANTITY:
            return _text(parts.get(1, b"")) or "0"
        case GoKind.NUMBER_OR_NAME:
            is_name = bool(_number(parts.get(1, 0)))
            return _text(parts.get(3, b"")) if is_name else _signed(_number(parts.get(2, 0)))
        case GoKind.DURATION:
            return f"{_signed(_number(parts.get(1, 0))) // 1_000_000_000}s"
        case _:
            return _raw(_as_bytes(parts.get(1, b"")))


def _moment(parts: Mapping[int, int | bytes], precision: str) -> str:
    seconds, nanos = _signed(_number(parts.get(1, 0))), _signed(_number(parts.get(2, 0)))
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError as error:
        raise BadRequest(f"{seconds} seconds after 1970 is no time") from error
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def _raw(value: bytes) -> Any:
    try:
        return orjson.loads(value) if value else None
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"JSON inside of it cannot be read: {error}") from error


def _fields(raw: bytes) -> _Fields:
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        wire = tag & 7
        if wire == _VARINT:
            value, at = _varint(raw, at)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            size, at = _varint(raw, at)
        elif wire in _FIXED_SIZES:
            size = _FIXED_SIZES[wire]
        else:
            raise BadRequest(f"wire type {wire} is not known")
        if size > len(raw) - at:
            raise BadRequest("it ends too early")
        yield tag >> 3, raw[at : at + size]
        at += size


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(raw):
            raise BadRequest("it ends too early")
        byte = raw[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & (2**64 - 1), at
    raise BadRequest("a number is longer than 64 bits")


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise BadRequest("bytes stand where a number is wanted")
    return value


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise BadRequest("a number stands where bytes are wanted")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _as_bytes(value).decode()
    except UnicodeDecodeError as error:
        raise BadRequest("text is not UTF-8") from error
