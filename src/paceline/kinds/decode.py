"""Decode a spec into its type, and report every field that does not match.

msgspec stops at the first fault; an author who made three mistakes should see all three at once.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from paceline.apimachinery.field_errors import FieldFault, Problem, did_you_mean, invalid, required, unsupported
from paceline.errors import Fault, Invalid

T = TypeVar("T", bound=msgspec.Struct)


def misfits(value: object, kind: type[msgspec.Struct], path: str) -> tuple[Fault, ...]:
    """Return a fault for every field that is unknown, missing, of the wrong type or out of bounds."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return tuple(_walk(value, _info(kind), path))
    # Most specs are valid, and the walk takes many times as long as decoding.
    return ()


def decode_or_raise(value: object, kind: type[T], path: str) -> T:
    """Return the decoded value; raise Invalid with all misfits."""
    if faults := misfits(value, kind, path):
        raise Invalid(faults)
    return decode(value, kind)


def decode(value: object, kind: type[T]) -> T:
    """Return the decoded value; it must have no misfits. Fields of type Free are kept as written."""
    return msgspec.convert(value, kind)


@cache
def _info(kind: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(kind)


@cache
def _by_name(kind: type[msgspec.Struct]) -> dict[str, inspect.Field]:
    info = _info(kind)
    return {field.encode_name: field for field in info.fields} if isinstance(info, inspect.StructType) else {}


def _walk(value: Any, kind: inspect.Type, path: str) -> Iterator[Fault]:
    match kind:
        case inspect.Metadata(type=inner):
            yield from _walk(value, inner, path)
        case inspect.AnyType():
            return
        case inspect.UnionType(types=arms) if fitting := [arm for arm in arms if _fits(value, arm)]:
            yield from _walk(value, fitting[0], path)
        case _ if not _fits(value, kind):
            yield FieldFault(path, value, f"must be {_words(kind)}", Problem.TYPE)
        case inspect.StructType():
            yield from _fields(value, kind, path)
        case inspect.DictType() | inspect.VarTupleType():
            yield from _many(value, kind, path)
        case _:
            yield from _leaf(value, kind, path)


def _fields(value: Any, kind: inspect.StructType, path: str) -> Iterator[Fault]:
    fields = _by_name(kind.cls)
    if kind.forbid_unknown_fields:
        for name in sorted(value.keys() - fields.keys()):
            # Prefer fields that are not set yet: the author more likely meant one of these.
            near = did_you_mean(name, fields.keys() - value.keys()) or did_you_mean(name, fields)
            hint = near or f"; the fields are {', '.join(fields)}"
            yield invalid(f"{path}.{name}", value[name], f"unknown field{hint}")
    for name, field in fields.items():
        if name in value:
            yield from _walk(value[name], field.type, f"{path}.{name}")
        elif field.required:
            yield required(f"{path}.{name}", f"the field is required; it must be {_words(field.type)}")


def _many(value: Any, kind: inspect.DictType | inspect.VarTupleType, path: str) -> Iterator[Fault]:
    if kind.min_length is not None and len(value) < kind.min_length:
        entries = "entry" if kind.min_length == 1 else "entries"
        yield invalid(path, value, f"must have at least {kind.min_length} {entries}")
    if kind.max_length is not None and len(value) > kind.max_length:
        yield FieldFault(path, len(value), f"must have at most {kind.max_length} entries", Problem.TOO_MANY)
    if isinstance(kind, inspect.DictType):
        for name, item in value.items():
            yield from _walk(item, kind.value_type, f"{path}.{name}")
    else:
        for index, item in enumerate(value):
            yield from _walk(item, kind.item_type, f"{path}[{index}]")


def _leaf(value: Any, kind: inspect.Type, path: str) -> Iterator[Fault]:
    match kind:
        case inspect.IntType(ge=low, le=high):
            if low is not None and value < low:
                yield invalid(path, value, f"must be at least {low}")
            if high is not None and value > high:
                yield invalid(path, value, f"must be at most {high}")
        case inspect.StrType(pattern=pattern, max_length=max_length):
            if pattern is not None and not re.search(pattern, value):
                yield invalid(path, value, PATTERNS.get(pattern, f"must match {pattern}"))
            if max_length is not None and len(value) > max_length:
                yield invalid(path, value, f"must have at most {max_length} characters")
        case inspect.EnumType() | inspect.LiteralType():
            if value not in (choices := _choices(kind)):
                yield unsupported(path, value, choices)


# The patterns of fields.py, described for users.
PATTERNS = {
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": "use lower-case letters, digits and '-'; start and end with a letter or digit",
}


def _fits(value: object, kind: inspect.Type) -> bool:
    """Return whether a value has the JSON type of a field."""
    match kind:
        case inspect.NoneType():
            return value is None
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case inspect.StructType() | inspect.DictType():
            return isinstance(value, dict)
        case inspect.VarTupleType():
            return isinstance(value, list)
        case inspect.UnionType(types=arms):
            return any(_fits(value, arm) for arm in arms)
        case inspect.Metadata(type=inner):
            return _fits(value, inner)
        case _:
            return isinstance(value, str)


def _words(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(type=inner):
            return _words(inner)
        case inspect.UnionType(types=arms):
            return " or ".join(_words(arm) for arm in arms if not isinstance(arm, inspect.NoneType))
        case inspect.EnumType() | inspect.LiteralType():
            return f"one of {', '.join(_choices(kind))}"
        case inspect.VarTupleType():
            return "a list"
        case inspect.StructType() | inspect.DictType():
            return "an object"
        case inspect.IntType():
            return "an integer"
        case inspect.FloatType():
            return "a number"
        case inspect.BoolType():
            return "true or false"
        case _:
            return "a string"


def _choices(kind: inspect.EnumType | inspect.LiteralType) -> tuple[str, ...]:
    if isinstance(kind, inspect.EnumType):
        return tuple(str(choice.value) for choice in kind.cls)
    return tuple(str(choice) for choice in kind.values)
