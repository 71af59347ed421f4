"""Decoding of built-in kinds as Go's types decode them.

Empty fields are omitted, quantities and times get their canonical form, and `complete` adds the fields that are
written even if they are empty.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from paceline.apimachinery.builtin.go_types import GoKind, GoType, StructField, flat_fields_of
from paceline.apimachinery.meta import Object
from paceline.apimachinery.quantity import RULE, canonical
from paceline.errors import BadRequest

# Resources of containers and nodes are counted in thousandths, other quantities in billionths.
_MILLI, _NANO = 3, 9
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
# Types that Go never considers empty.
_STRUCTS = frozenset(
    {
        *(GoKind.STRUCT, GoKind.TIME, GoKind.MICRO_TIME, GoKind.QUANTITY),
        *(GoKind.NUMBER_OR_NAME, GoKind.DURATION),
    }
)
_ZEROS: Mapping[GoKind, Any] = {
    GoKind.STRING: "",
    GoKind.BOOL: False,
    GoKind.INTEGER: 0,
    GoKind.FLOAT: 0,
    GoKind.NUMBER_OR_NAME: 0,
    GoKind.QUANTITY: "0",
    GoKind.DURATION: "0s",
}
_EXPECTED: Mapping[GoKind, str] = {
    GoKind.STRING: "a string",
    GoKind.BOOL: "true or false",
    GoKind.FLOAT: "a number",
    GoKind.BYTES: "a string in base64",
    GoKind.TIME: "a time such as 2030-01-31T12:00:00Z",
    GoKind.MICRO_TIME: "a time such as 2030-01-31T12:00:00.000000Z",
    GoKind.DURATION: "a duration such as 30s",
    GoKind.NUMBER_OR_NAME: "an integer or a string",
    GoKind.LIST: "a list",
    GoKind.MAP: "an object",
    GoKind.STRUCT: "an object",
}


def read_struct(obj: Mapping[str, Any], struct: str) -> Object:
    """Return a decoded object; raise BadRequest with the path of a field that has the wrong type.

    Fields that the struct does not have are kept.
    """
    try:
        return _struct_reader(struct)(obj)
    except _Mismatch as error:
        raise BadRequest(str(error)) from error


def complete(obj: Object, struct: str) -> None:
    """Add, in place, the fields that are written even if they are empty."""
    for name, go_type, has_parts, is_always in _completed(struct):
        if name in obj:
            if has_parts:
                _complete_value(obj[name], go_type)
        elif is_always:
            obj[name] = _zero(go_type)


@cache
def _completed(struct: str) -> tuple[tuple[str, GoType, bool, bool], ...]:
    """Return the fields that have parts to complete, or that are always written."""
    return tuple(
        (field.name, field.type, has_parts, is_always)
        for field in flat_fields_of(struct)
        if (is_always := _is_always(field)) | (has_parts := _has_parts(field.type))
    )


def _has_parts(go_type: GoType) -> bool:
    return go_type.kind is GoKind.STRUCT or bool(go_type.inner and go_type.inner.struct)


def _is_always(field: StructField) -> bool:
    return field.omit == 0 or (field.omit == 1 and field.type.kind in _STRUCTS and not field.type.is_pointer)


def _zero(go_type: GoType) -> Any:
    if go_type.is_pointer:
        return None
    if go_type.kind is GoKind.STRUCT:
        obj: Object = {}
        complete(obj, go_type.struct)
        return obj
    return _ZEROS.get(go_type.kind)


def _complete_value(value: Any, go_type: GoType) -> None:
    if go_type.kind is GoKind.STRUCT:
        if isinstance(value, dict):
            complete(value, go_type.struct)
    elif go_type.inner and isinstance(value, list if go_type.kind is GoKind.LIST else dict):
        for item in value.values() if isinstance(value, dict) else value:
            _complete_value(item, go_type.inner)


# Returns a decoded value. Created once per type, because every write decodes a whole object.
_Reader = Callable[[Any], Any]


class _Mismatch(Exception):
    """A value of the wrong type; callers add the names of the fields that contain it, without indexes."""

    def __init__(self, value: Any, expected: str) -> None:
        super().__init__()
        self.value, self.expected = value, expected
        self.trail: list[str] = []

    def __str__(self) -> str:
        return f"{'.'.join(reversed(self.trail))}: must be {self.expected}, not {_described(self.value)}"


def _described(value: Any) -> str:
    """Return the JSON type of a value, not the value, which may be secret."""
    match value:
        case bool():
            return "a boolean"
        case str():
            return "this string"
        case int() | float():
            return "this number"
        case list():
            return "a list"
        case _:
            return "an object"


@cache
def _struct_reader(struct: str) -> Callable[[Mapping[str, Any]], Object]:
    # Filled at first use, because structs may be recursive.
    readers: dict[str, tuple[type | None, _Reader, bool]] = {}

    def read(wire: Mapping[str, Any]) -> Object:
        if not readers:
            readers.update((field.name, _field_reader(field)) for field in flat_fields_of(struct))
        decoded: Object = {}
        name = ""
        try:
            for name, inner in wire.items():
                field = readers.get(name)
                if field is None:
                    decoded[name] = inner
                elif inner is not None:
                    plain, reader, is_omitted = field
                    value = inner if plain is not None and isinstance(inner, plain) else reader(inner)
                    if value or not is_omitted:
                        decoded[name] = value
        except _Mismatch as error:
            error.trail.append(name)
            raise
        return decoded

    return read


def _field_reader(field: StructField) -> tuple[type | None, _Reader, bool]:
    """Return the Python type that needs no decoding, the reader for others, and whether empty values are omitted."""
    go_type = field.type
    is_omitted = field.omit > (go_type.kind in _STRUCTS) and not go_type.is_pointer
    return _PLAIN.get(go_type.kind), _reader(go_type), is_omitted


@cache
def _reader(go_type: GoType) -> _Reader:
    kind, inner = go_type.kind, go_type.inner
    if kind is GoKind.STRUCT:
        return _checked(dict, kind, _struct_reader(go_type.struct))
    if kind is GoKind.LIST and inner is not None:
        return _checked(list, kind, _list_reader(inner))
    if kind is GoKind.MAP and inner is not None:
        return _checked(dict, kind, _map_reader(inner))
    if kind is GoKind.INTEGER:
        return partial(_read_integer, bound=1 << go_type.bits)
    return _READERS[kind]


def _same(value: Any) -> Any:
    return value


def _checked(expected: type | tuple[type, ...], kind: GoKind, reader: _Reader = _same) -> _Reader:
    is_number = expected in ((str, int), (int, float))

    def read(value: Any) -> Any:
        if not isinstance(value, expected) or (is_number and isinstance(value, bool)):
            raise _Mismatch(value, _EXPECTED[kind])
        return reader(value)

    return read


def _list_reader(inner: GoType) -> _Reader:
    reader, plain = _reader(inner), _PLAIN.get(inner.kind)

    def read(value: list[Any]) -> list[Any]:
        if plain is not None and set(map(type, value)) == {plain}:
            return value.copy()
        return [_zero(inner) if item is None else reader(item) for item in value]

    return read


def _map_reader(inner: GoType) -> _Reader:
    if inner.kind is GoKind.QUANTITY:
        return lambda value: {name: _read_quantity(amount, finest=_MILLI) for name, amount in value.items()}
    reader, plain = _reader(inner), _PLAIN.get(inner.kind)

    def read(value: Object) -> Object:
        if plain is not None and set(map(type, value.values())) == {plain}:
            return value.copy()
        return {name: _zero(inner) if item is None else reader(item) for name, item in value.items()}

    return read


def _read_integer(value: Any, *, bound: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -bound <= value < bound:
        raise _Mismatch(value, f"an integer of {bound.bit_length()} bits")
    return value


def _read_bytes(value: Any) -> str:
    try:
        b64decode("".join(value.split("\n")), validate=True)
    except (AttributeError, NotBase64, ValueError) as error:
        raise _Mismatch(value, _EXPECTED[GoKind.BYTES]) from error
    return str(value)


def _read_quantity(value: Any, *, finest: int = _NANO) -> str:
    try:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise _Mismatch(value, RULE.removeprefix("must be "))
        return canonical(value, finest=finest)
    except ValueError as error:
        raise _Mismatch(value, RULE.removeprefix("must be ")) from error


def _read_time(value: Any, *, kind: GoKind) -> str:
    is_micro = kind is GoKind.MICRO_TIME
    try:
        if not isinstance(value, str) or not _TIME.fullmatch(value) or (is_micro and "." not in value):
            raise _Mismatch(value, _EXPECTED[kind])
        moment = datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise _Mismatch(value, _EXPECTED[kind]) from error
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if is_micro else "%Y-%m-%dT%H:%M:%SZ")


# Kinds whose values of one Python type need no decoding.
_PLAIN: Mapping[GoKind, type] = {GoKind.STRING: str, GoKind.BOOL: bool}
_READERS: Mapping[GoKind, _Reader] = {
    GoKind.ANYTHING: _same,
    GoKind.STRING: _checked(str, GoKind.STRING),
    GoKind.BOOL: _checked(bool, GoKind.BOOL),
    GoKind.BYTES: _read_bytes,
    GoKind.FLOAT: _checked((int, float), GoKind.FLOAT),
    GoKind.NUMBER_OR_NAME: _checked((str, int), GoKind.NUMBER_OR_NAME),
    GoKind.DURATION: _checked(str, GoKind.DURATION),
    GoKind.QUANTITY: _read_quantity,
    GoKind.TIME: partial(_read_time, kind=GoKind.TIME),
    GoKind.MICRO_TIME: partial(_read_time, kind=GoKind.MICRO_TIME),
}
