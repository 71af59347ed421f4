"""Read a spec into its typed form, and name everything in it that does not fit.

msgspec stops at the first fault; a person who wrote three wants to hear of three.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from paceline.errors import Fault
from paceline.objects.faults import FieldFault, Problem, did_you_mean, invalid, required, unsupported

T = TypeVar("T", bound=msgspec.Struct)


def misfits(value: object, kind: type[msgspec.Struct], path: str) -> tuple[Fault, ...]:
    """Name every field that is unknown, missing, of another type or out of bounds."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return tuple(_walk(value, _info(kind), path))
    # Most specs fit, and looking for what does not takes many times as long as reading them.
    return ()


def decode(value: object, kind: type[T]) -> T:
    """Read a value without misfits; what a field says nothing about is kept as written."""
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
            yield FieldFault(path, value, f"ask for {_words(kind)}", Problem.TYPE)
        case inspect.StructType():
            yield from _fields(value, kind, path)
        case inspect.DictType() | inspect.VarTupleType():
            yield from _many(value, kind, path)
        case _:
            yield from _leaf(value, kind, path)


def _fields(value: Any, kind: inspect.StructType, path: str) -> Iterator[Fault]:
    known = _by_name(kind.cls)
    if kind.forbid_unknown_fields:
        for name in sorted(value.keys() - known.keys()):
            # One that is not there yet is meant more often.
            near = did_you_mean(name, known.keys() - value.keys()) or did_you_mean(name, known)
            hint = near or f"; there are {', '.join(known)}"
            yield invalid(f"{path}.{name}", value[name], f"there is no such field{hint}")
    for name, field in known.items():
        if name in value:
            yield from _walk(value[name], field.type, f"{path}.{name}")
        elif field.required:
            yield required(f"{path}.{name}", f"it is required; ask for {_words(field.type)}")


def _many(value: Any, kind: inspect.DictType | inspect.VarTupleType, path: str) -> Iterator[Fault]:
    if kind.min_length is not None and len(value) < kind.min_length:
        yield invalid(path, value, f"ask for at least {kind.min_length}")
    if isinstance(kind, inspect.DictType):
        for name, each in value.items():
            yield from _walk(each, kind.value_type, f"{path}.{name}")
    else:
        for index, each in enumerate(value):
            yield from _walk(each, kind.item_type, f"{path}[{index}]")


def _leaf(value: Any, kind: inspect.Type, path: str) -> Iterator[Fault]:
    match kind:
        case inspect.IntType(ge=low, le=high):
            if low is not None and value < low:
                yield invalid(path, value, f"ask for at least {low}")
            if high is not None and value > high:
                yield invalid(path, value, f"ask for at most {high}")
        case inspect.StrType(pattern=pattern, max_length=most):
            if pattern is not None and not re.search(pattern, value):
                yield invalid(path, value, _like(pattern))
            if most is not None and len(value) > most:
                yield invalid(path, value, f"use at most {most} characters")
        case inspect.EnumType() | inspect.LiteralType():
            if value not in (choices := _choices(kind)):
                yield unsupported(path, value, choices)


def _like(pattern: str) -> str:
    return PATTERNS.get(pattern, f"it must match {pattern}")


# What a pattern of fields.py asks for, in words.
PATTERNS = {
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": "use lower-case letters, digits and '-', with a letter or digit at both ends",
}


def _fits(value: object, kind: inspect.Type) -> bool:
    """Tell whether a value is of the JSON type that a kind wants."""
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
            return "text"


def _choices(kind: inspect.EnumType | inspect.LiteralType) -> tuple[str, ...]:
    if isinstance(kind, inspect.EnumType):
        return tuple(str(each.value) for each in kind.cls)
    return tuple(str(each) for each in kind.values)
