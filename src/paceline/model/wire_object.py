"""Dataclasses that are stored in a status: each declares its fields once, and this reads and writes the wire form."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from datetime import datetime
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Self, get_args, get_origin, get_type_hints

from paceline.apimachinery.timestamps import from_wire, to_wire, to_wire_micro
from paceline.apimachinery.untrusted import untrusted

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WireForm:
    """How a field differs from the usual form, as part of its annotation."""

    # Its key; by default the name of the field in camel case, without `is_`.
    key: str = ""
    read: Convert | None = None
    write: Convert | None = None
    # Written even if it is empty.
    is_always: bool = False
    # Must be there although the field has a default.
    is_required: bool = False
    # Neither read nor written.
    is_hidden: bool = False


ALWAYS, HIDDEN = WireForm(is_always=True), WireForm(is_hidden=True)
# A time with its microseconds.
MICRO = WireForm(write=to_wire_micro)


def phase_or(unknown: Enum) -> WireForm:
    """Return the form of a phase; one that another version has written is read as `unknown`."""
    phases = {phase.value: phase for phase in type(unknown)}
    return WireForm(is_always=True, read=lambda value: phases.get(value, unknown))


@dataclass(frozen=True, slots=True, kw_only=True)
class _WireField:
    name: str
    key: str
    read: Convert
    write: Convert
    is_required: bool
    # Whether None means absent, so that 0 and an empty list are values.
    is_optional: bool
    is_always: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WireObject:
    """A value with a wire form. Empty fields are omitted there, so that a reader can test for their presence."""

    def but(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return replace(self, **changes)

    def to_wire(self) -> dict[str, Any]:
        """Return the wire form."""
        wire = {}
        for field in _wire_fields(_hashable(type(self))).values():
            value = getattr(self, field.name)
            if value or field.is_always or (field.is_optional and value is not None):
                wire[field.key] = field.write(value)
        return wire

    @classmethod
    @untrusted
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Return the decoded value; missing fields have their defaults, and unknown ones are ignored."""
        wire_fields, values = _wire_fields(_hashable(cls)), {}
        for key, value in wire.items():
            field = wire_fields.get(key)
            if field is not None and (value or (field.is_optional and value not in (None, ""))):
                values[field.name] = field.read(value)
        for key, field in wire_fields.items():
            if field.is_required and field.name not in values:
                raise KeyError(key)
        return cls(**values)


def wire_keys(cls: type[WireObject]) -> dict[str, str]:
    """Return the key of each field in wire form, with the name of the field."""
    return {key: field.name for key, field in _wire_fields(_hashable(cls)).items()}


def _hashable(cls: Any) -> Any:
    """Return a class; mypy takes the `__hash__` of its instances for its own."""
    return cls


@cache
def _wire_fields(cls: type[WireObject]) -> dict[str, _WireField]:
    hints = get_type_hints(cls, include_extras=True)
    wire_fields = {}
    for field in fields(cls):
        hint, wire = hints[field.name], WireForm()
        if get_origin(hint) is Annotated:
            hint, wire = get_args(hint)
        if wire.is_hidden:
            continue
        first, *others = field.name.removeprefix("is_").split("_")
        key = wire.key or first + "".join(map(str.capitalize, others))
        inner = [part for part in get_args(hint) if part is not NoneType] if get_origin(hint) is UnionType else [hint]
        read, write = _converters(inner[0])
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        wire_fields[key] = _WireField(
            name=field.name,
            key=key,
            read=wire.read or read,
            write=wire.write or write,
            is_required=wire.is_required or not has_default,
            is_optional=inner[0] is not hint,
            is_always=wire.is_always or not has_default,
        )
    return wire_fields


def _converters(hint: Any) -> tuple[Convert, Convert]:
    """Return how values of a type are read and written."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple:
        read, write = _converters(args[0])
        return lambda items: tuple(map(read, items)), lambda items: list(map(write, items))
    if origin is Mapping:
        read, write = _converters(args[1])
        return lambda items: {str(name): read(value) for name, value in items.items()}, dict
    if hint is datetime:
        return from_wire, to_wire
    if isinstance(hint, type) and issubclass(hint, WireObject):
        return hint.from_wire, hint.to_wire
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint, attrgetter("value")
    return (_same if hint is Any else hint), _same


def _same(value: Any) -> Any:
    return value
