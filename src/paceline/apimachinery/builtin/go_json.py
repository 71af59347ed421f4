"""Reads an object as the types of Kubernetes do, and writes it as they do.

Empty fields go, amounts and times are spelled in one way, and what is always written is there.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from paceline.apimachinery.builtin.go_types import Sort, StructField, Type, flat_fields_of
from paceline.apimachinery.meta import Object
from paceline.apimachinery.quantity import canonical
from paceline.errors import BadRequest

_BITS = {"int32": 31}
# Resources of containers and machines are counted in thousandths, other amounts in billionths.
_MILLI, _NANO = 3, 9
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_TIME_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"


def read_struct(obj: Mapping[str, Any], struct: str) -> Object:
    """Read an object, field by field; BadRequest says which one cannot be read, in Kubernetes' words.

    What the struct does not have stays: whoever calls has said what becomes of it.
    """
    try:
        return _struct_reader(struct)(obj)
    except _Misfit as error:
        raise BadRequest(str(error)) from error


def complete(obj: Object, struct: str) -> None:
    """Add, in place, what is always written, be it empty."""
    for name, kind, has_parts, is_always in _completed(struct):
        if name in obj:
            if has_parts:
                _complete_value(obj[name], kind)
        elif is_always:
            obj[name] = _zero(kind)


@cache
def _completed(struct: str) -> tuple[tuple[str, Type, bool, bool], ...]:
    """Give the fields that completing has to look at: whether they have parts, and whether they are always written."""
    return tuple(
        (each.name, each.type, has_parts, is_always)
        for each in flat_fields_of(struct)
        if (is_always := _is_always(each)) | (has_parts := _has_parts(each.type))
    )


def _has_parts(kind: Type) -> bool:
    """Tell whether there may be something inside to complete."""
    return kind.sort is Sort.STRUCT or bool(kind.inner and kind.inner.struct)


def _is_always(field: StructField) -> bool:
    return field.omit == 0 or (field.omit == 1 and field.type.sort in _STRUCTS and not field.type.is_pointer)


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


# Gives a value as its type has it. Made once per type, because every write reads all of its object.
_Reader = Callable[[Any], Any]


class _Misfit(Exception):
    """A value that is not of its type; on its way out it learns where it stands. Indices are not told."""

    def __init__(self, value: Any, kind: Type) -> None:
        super().__init__()
        self.value, self.kind = value, kind
        self.struct = ""
        self.trail: list[str] = []

    def __str__(self) -> str:
        field = ".".join((self.struct.rpartition(".")[2], *reversed(self.trail)))
        found = _named(self.value, self.kind)
        return f"json: cannot unmarshal {found} into Go struct field {field} of type {self.kind.spelled}"


@cache
def _struct_reader(struct: str) -> Callable[[Mapping[str, Any]], Object]:
    # Filled when it is first used: structs may hold themselves.
    known: dict[str, tuple[type | None, _Reader, bool]] = {}

    def read(value: Mapping[str, Any]) -> Object:
        if not known:
            known.update((each.name, _field_reader(each)) for each in flat_fields_of(struct))
        kept: Object = {}
        name = ""
        try:
            for name, inner in value.items():
                field = known.get(name)
                if field is None:
                    kept[name] = inner
                elif inner is not None:
                    plain, reader, is_left_out = field
                    found = inner if plain is not None and isinstance(inner, plain) else reader(inner)
                    if found or not is_left_out:
                        kept[name] = found
        except _Misfit as error:
            error.struct = error.struct or struct
            error.trail.append(name)
            raise
        return kept

    return read


def _field_reader(field: StructField) -> tuple[type | None, _Reader, bool]:
    """Say what a field must be, if that is all there is to it; how it is read; whether it goes when it is empty."""
    kind = field.type
    is_left_out = field.omit > (kind.sort in _STRUCTS) and not kind.is_pointer
    return _PLAIN.get(kind.sort), _reader(kind), is_left_out


@cache
def _reader(kind: Type) -> _Reader:
    match kind.sort:
        case Sort.STRUCT:
            return _checked(dict, kind, _struct_reader(kind.struct))
        case Sort.LIST if kind.inner is not None:
            return _checked(list, kind, _list_reader(kind.inner))
        case Sort.MAP if kind.inner is not None:
            return _checked(dict, kind, _map_reader(kind.inner))
        case Sort.ANYTHING:
            return _same
        case _ if kind.sort in _OWN:
            return _OWN[kind.sort]
        case _ if kind.sort in _PLAIN:
            return _checked(_PLAIN[kind.sort], kind, _same)
        case Sort.BYTES:
            return _checked(str, kind, _read_bytes)
        case _:
            return _number_reader(kind)


def _same(value: Any) -> Any:
    return value


def _checked(wanted: type, kind: Type, reader: _Reader) -> _Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, wanted):
            raise _Misfit(value, kind)
        return reader(value)

    return read


def _list_reader(inner: Type) -> _Reader:
    reader, plain = _reader(inner), _PLAIN.get(inner.sort)

    def read(value: list[Any]) -> list[Any]:
        if plain is not None and set(map(type, value)) == {plain}:
            return value.copy()
        return [_zero(inner) if each is None else reader(each) for each in value]

    return read


def _map_reader(inner: Type) -> _Reader:
    amount = partial(_read_quantity, finest=_MILLI)
    if inner.sort is Sort.QUANTITY:
        return lambda value: {name: amount(each) for name, each in value.items()}
    reader, plain = _reader(inner), _PLAIN.get(inner.sort)

    def read(value: Object) -> Object:
        if plain is not None and set(map(type, value.values())) == {plain}:
            return value.copy()
        return {name: _zero(inner) if each is None else reader(each) for name, each in value.items()}

    return read


def _number_reader(kind: Type) -> _Reader:
    bound = 1 << _BITS.get(kind.spelled, 63)

    def read(value: Any) -> Any:
        match kind.sort:
            case Sort.INTEGER:
                is_fit = isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound
            case Sort.NUMBER_OR_NAME:
                is_fit = isinstance(value, (str, int)) and not isinstance(value, bool)
            case _:
                is_fit = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_fit:
            raise _Misfit(value, _NUMBER if kind.sort is Sort.NUMBER_OR_NAME else kind)
        return value

    return read


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


def _read_bytes(value: str) -> str:
    try:
        b64decode("".join(value.split("\n")), validate=True)
    except (NotBase64, ValueError) as error:
        odd = (at for at, each in enumerate(value) if not (each.isascii() and (each.isalnum() or each in "+/=\n")))
        raise BadRequest(f"illegal base64 data at input byte {next(odd, len(value) // 4 * 4)}") from error
    return value


def _read_quantity(value: Any, *, finest: int = _NANO) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise BadRequest(_QUANTITY_RULE)
    try:
        return canonical(value, finest=finest)
    except ValueError as error:
        raise BadRequest(_QUANTITY_RULE) from error


def _read_time(value: Any) -> str:
    return _moment(value, _TIME_LAYOUT).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_micro_time(value: Any) -> str:
    moment = _moment(value, _MICRO_LAYOUT)
    if "." not in value:
        said = f'parsing time "{value}" as "{_MICRO_LAYOUT}": cannot parse "{value[19:]}" as ".000000"'
        raise BadRequest(said)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(value: Any, layout: str) -> datetime:
    if not isinstance(value, str):
        raise BadRequest(f"json: cannot unmarshal {_named(value, _ANY)} into Go value of type string")
    try:
        return datetime.fromisoformat(value if _TIME.fullmatch(value) else "").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        first = layout.partition("-")[0]
        said = f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "{first}"'
        raise BadRequest(said) from error


def _read_duration(value: Any) -> str:
    if not isinstance(value, str):
        raise BadRequest(f"json: cannot unmarshal {_named(value, _ANY)} into Go value of type string")
    return value


# What must be of one type of Python, and is as it should be if it is.
_PLAIN: Mapping[Sort, type] = {Sort.STRING: str, Sort.BOOL: bool}
_NUMBER = Type(sort=Sort.INTEGER, spelled="int32")
_ANY = Type(sort=Sort.ANYTHING, spelled="")
# What writes and reads itself.
_OWN: Mapping[Sort, Callable[[Any], Any]] = {
    Sort.QUANTITY: _read_quantity,
    Sort.TIME: _read_time,
    Sort.MICRO_TIME: _read_micro_time,
    Sort.DURATION: _read_duration,
}
