"""Reads an object as the types of Kubernetes do, and writes it as they do.

Empty fields go, amounts and times are spelled in one way, and what is always written is there.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from paceline.errors import Malformed
from paceline.objects.builtin.structs import Sort, StructField, Type, flat_fields_of
from paceline.objects.meta import Object
from paceline.objects.quantity import canonical

_BITS = {"int32": 31}
# Resources of containers and machines are counted in thousandths, other amounts in billionths.
_MILLI, _NANO = 3, 9
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_TIME_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"


def read_struct(obj: Mapping[str, Any], struct: str) -> Object:
    """Read an object, field by field; Malformed says which one cannot be read, in Kubernetes' words.

    What the struct does not have stays: whoever calls has said what becomes of it.
    """
    return _read_struct(obj, struct, ())


def complete(obj: Object, struct: str) -> None:
    """Add, in place, what is always written, be it empty."""
    for each, has_parts, is_always in _completed(struct):
        if each.name in obj:
            if has_parts:
                _complete_value(obj[each.name], each.type)
        elif is_always:
            obj[each.name] = _zero(each.type)


@cache
def _completed(struct: str) -> tuple[tuple[StructField, bool, bool], ...]:
    """Give the fields that completing has to look at: whether they have parts, and whether they are always written."""
    return tuple(
        (each, each.type.sort in _WITH_PARTS, is_always)
        for each in flat_fields_of(struct)
        if (is_always := _is_always(each)) or each.type.sort in _WITH_PARTS
    )


def _is_always(field: StructField) -> bool:
    return field.omit == 0 or (field.omit == 1 and field.type.sort in _STRUCTS and not field.type.is_pointer)


_WITH_PARTS = frozenset({Sort.STRUCT, Sort.LIST, Sort.MAP})
# Types that Go never takes for empty.
_STRUCTS = frozenset({Sort.STRUCT, Sort.TIME, Sort.MICRO_TIME, Sort.QUANTITY, Sort.NUMBER_OR_NAME, Sort.DURATION})
_ZEROS: Mapping[Sort, Any] = {
    Sort.STRING: "",
    Sort.BOOL: False,
    Sort.INTEGER: 0,
    Sort.FLOAT: 0,
    Sort.NUMBER_OR_NAME: 0,
    Sort.QUANTITY: "0",
    Sort.DURATION: "0s",
}


def _zero(kind: Type) -> Any:
    if kind.is_pointer:
        return None
    if kind.sort is Sort.STRUCT:
        made: Object = {}
        complete(made, kind.struct)
        return made
    return _ZEROS.get(kind.sort)


def _complete_value(value: Any, kind: Type) -> None:
    match kind.sort:
        case Sort.STRUCT if isinstance(value, dict):
            complete(value, kind.struct)
        case Sort.LIST if isinstance(value, list) and kind.inner and kind.inner.struct:
            for each in value:
                _complete_value(each, kind.inner)
        case Sort.MAP if isinstance(value, dict) and kind.inner and kind.inner.struct:
            for each in value.values():
                _complete_value(each, kind.inner)


# Struct and names of the fields that lead to a value; indices are not told.
_Trail = tuple[str, ...]


@cache
def _by_name(struct: str) -> Mapping[str, StructField]:
    return {each.name: each for each in flat_fields_of(struct)}


def _read_struct(value: Mapping[str, Any], struct: str, trail: _Trail) -> Object:
    known = _by_name(struct)
    kept: Object = {}
    for name, inner in value.items():
        field = known.get(name)
        if field is None:
            kept[name] = inner
            continue
        if inner is None:
            continue
        read = _read(inner, field.type, struct, (*trail, name))
        if not _is_left_out(read, field):
            kept[name] = read
    return kept


def _is_left_out(value: Any, field: StructField) -> bool:
    if not field.omit or field.type.is_pointer:
        return False
    if field.type.sort in _STRUCTS:
        return field.omit > 1 and not value
    return not value


def _read(value: Any, kind: Type, struct: str, trail: _Trail) -> Any:
    match kind.sort:
        case Sort.STRUCT:
            _expect(dict, value, kind, struct, trail)
            return _read_struct(value, kind.struct, trail)
        case Sort.LIST if kind.inner is not None:
            _expect(list, value, kind, struct, trail)
            return [_read_item(each, kind.inner, struct, trail) for each in value]
        case Sort.MAP if kind.inner is not None:
            _expect(dict, value, kind, struct, trail)
            if kind.inner.sort is Sort.QUANTITY:
                return {name: _read_quantity(each, finest=_MILLI) for name, each in value.items()}
            return {name: _read_item(each, kind.inner, struct, trail) for name, each in value.items()}
        case Sort.ANYTHING:
            return value
        case Sort.NUMBER_OR_NAME:
            if isinstance(value, bool) or not isinstance(value, (str, int)):
                raise _mistyped(value, _NUMBER, struct, trail)
            return value
        case _ if kind.sort in _OWN:
            return _OWN[kind.sort](value)
        case _:
            return _read_plain(value, kind, struct, trail)


def _read_item(value: Any, kind: Type, struct: str, trail: _Trail) -> Any:
    return _zero(kind) if value is None else _read(value, kind, struct, trail)


def _read_plain(value: Any, kind: Type, struct: str, trail: _Trail) -> Any:
    match kind.sort:
        case Sort.STRING | Sort.BYTES:
            _expect(str, value, kind, struct, trail)
            if kind.sort is Sort.BYTES:
                _read_bytes(value)
        case Sort.BOOL:
            _expect(bool, value, kind, struct, trail)
        case Sort.INTEGER:
            bound = 1 << _BITS.get(kind.spelled, 63)
            if isinstance(value, bool) or not isinstance(value, int):
                raise _mistyped(value, kind, struct, trail)
            if not -bound <= value < bound:
                raise _mistyped(value, kind, struct, trail)
        case _ if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _mistyped(value, kind, struct, trail)
    return value


def _expect(wanted: type, value: Any, kind: Type, struct: str, trail: _Trail) -> None:
    if not isinstance(value, wanted):
        raise _mistyped(value, kind, struct, trail)


def _mistyped(value: Any, kind: Type, struct: str, trail: _Trail) -> Malformed:
    field = f"{struct.rpartition('.')[2]}.{'.'.join(trail)}"
    found = _named(value, kind)
    return Malformed(f"json: cannot unmarshal {found} into Go struct field {field} of type {kind.spelled}")


def _named(value: Any, kind: Type) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return f"number {value}" if kind.sort is Sort.INTEGER else "number"
        case list():
            return "array"
        case _:
            return "object"


def _read_bytes(value: str) -> None:
    try:
        b64decode("".join(value.split("\n")), validate=True)
    except (NotBase64, ValueError) as error:
        odd = (at for at, each in enumerate(value) if not (each.isascii() and (each.isalnum() or each in "+/=\n")))
        raise Malformed(f"illegal base64 data at input byte {next(odd, len(value) // 4 * 4)}") from error


def _read_quantity(value: Any, *, finest: int = _NANO) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Malformed(_QUANTITY_RULE)
    try:
        return canonical(value, finest=finest)
    except ValueError as error:
        raise Malformed(_QUANTITY_RULE) from error


def _read_time(value: Any) -> str:
    return _moment(value, _TIME_LAYOUT).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_micro_time(value: Any) -> str:
    moment = _moment(value, _MICRO_LAYOUT)
    if "." not in value:
        said = f'parsing time "{value}" as "{_MICRO_LAYOUT}": cannot parse "{value[19:]}" as ".000000"'
        raise Malformed(said)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(value: Any, layout: str) -> datetime:
    if not isinstance(value, str):
        raise Malformed(f"json: cannot unmarshal {_named(value, _ANY)} into Go value of type string")
    try:
        return datetime.fromisoformat(value if _TIME.fullmatch(value) else "").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        first = layout.partition("-")[0]
        said = f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "{first}"'
        raise Malformed(said) from error


def _read_duration(value: Any) -> str:
    if not isinstance(value, str):
        raise Malformed(f"json: cannot unmarshal {_named(value, _ANY)} into Go value of type string")
    return value


_NUMBER = Type(sort=Sort.INTEGER, spelled="int32")
_ANY = Type(sort=Sort.ANYTHING, spelled="")
# What writes and reads itself.
_OWN: Mapping[Sort, Callable[[Any], Any]] = {
    Sort.QUANTITY: _read_quantity,
    Sort.TIME: _read_time,
    Sort.MICRO_TIME: _read_micro_time,
    Sort.DURATION: _read_duration,
}
