"""The types of the built-in kinds as Kubernetes itself has them: fields, their order, what is left out when empty."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

_PARTS = re.compile(r"(?P<pointer>\*)?(?:(?P<list>\[\])|map\[(?P<key>[\w.]+)\])?(?P<rest>.+)")
# Groups whose package is not called like their first word.
_PACKAGES = {"": "core"}


class Sort(Enum):
    """What a value of a type looks like in JSON."""

    STRING = auto()
    BOOL = auto()
    INTEGER = auto()
    FLOAT = auto()
    BYTES = auto()
    TIME = auto()
    MICRO_TIME = auto()
    DURATION = auto()
    QUANTITY = auto()
    NUMBER_OR_NAME = auto()
    ANYTHING = auto()
    LIST = auto()
    MAP = auto()
    STRUCT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """One type. Structs are named, because they may hold themselves."""

    sort: Sort
    # As Kubernetes spells it in a refusal.
    spelled: str
    is_pointer: bool = False
    # Of a list its items, of a map its values.
    inner: "Type | None" = None
    struct: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructField:
    """One field of a struct; one without a name lies flat in the struct itself, in JSON but not in protobuf."""

    name: str
    type: Type
    number: int
    # 0: an empty one is written; 1: left out; 2: left out also when it is a struct.
    omit: int


_SORTS = {
    "string": Sort.STRING,
    "bool": Sort.BOOL,
    "int": Sort.INTEGER,
    "int32": Sort.INTEGER,
    "int64": Sort.INTEGER,
    "float64": Sort.FLOAT,
    "meta.v1.Time": Sort.TIME,
    "meta.v1.MicroTime": Sort.MICRO_TIME,
    "meta.v1.Duration": Sort.DURATION,
    "resource.Quantity": Sort.QUANTITY,
    "intstr.IntOrString": Sort.NUMBER_OR_NAME,
    "meta.v1.FieldsV1": Sort.ANYTHING,
    "runtime.RawExtension": Sort.ANYTHING,
    "apiextensions.v1.JSON": Sort.ANYTHING,
    "apiextensions.v1.JSONSchemaPropsOrArray": Sort.ANYTHING,
    "apiextensions.v1.JSONSchemaPropsOrBool": Sort.ANYTHING,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": Sort.ANYTHING,
}


@cache
def _data() -> Mapping[str, Any]:
    package, _, _ = __name__.rpartition(".")
    data: Mapping[str, Any] = orjson.loads(files(package).joinpath("structs.json").read_bytes())
    return data


@cache
def struct_of(group: str, version: str, kind: str) -> str:
    """Name the struct of a kind, or "" when it is not known."""
    name = f"{_PACKAGES.get(group, group.partition('.')[0])}.{version}.{kind}"
    return name if name in _data()["structs"] else ""


@cache
def fields_of(struct: str) -> tuple[StructField, ...]:
    """Give the fields of a struct as they are declared."""
    return tuple(
        StructField(name=name, type=type_of(spelled), number=number, omit=omit)
        for name, spelled, number, omit in _data()["structs"][struct]
    )


@cache
def flat_fields_of(struct: str) -> tuple[StructField, ...]:
    """Give the fields of a struct as JSON has them."""
    found: list[StructField] = []
    for each in fields_of(struct):
        found.extend((each,) if each.name else flat_fields_of(each.type.struct))
    return tuple(found)


@cache
def type_of(text: str) -> Type:
    """Read a type as the data has it."""
    match = _PARTS.fullmatch(text)
    if match is None:
        raise LookupError(text)
    pointer, rest = bool(match["pointer"]), match["rest"]
    if match["list"]:
        if rest == "byte":
            return Type(sort=Sort.BYTES, spelled="[]uint8", is_pointer=pointer)
        inner = type_of(rest)
        return Type(sort=Sort.LIST, spelled=f"[]{inner.spelled}", is_pointer=pointer, inner=inner)
    if match["key"]:
        inner = type_of(rest)
        spelled = f"map[{_spelled(match['key'])}]{inner.spelled}"
        return Type(sort=Sort.MAP, spelled=spelled, is_pointer=pointer, inner=inner)
    if rest in _SORTS:
        return Type(sort=_SORTS[rest], spelled=_spelled(rest), is_pointer=pointer)
    if rest in _data()["names"]:
        meant = type_of(_data()["names"][rest])
        return Type(sort=meant.sort, spelled=_spelled(rest), is_pointer=pointer, inner=meant.inner)
    return Type(sort=Sort.STRUCT, spelled=_spelled(rest), is_pointer=pointer, struct=rest)


def _spelled(name: str) -> str:
    """Spell a name with the last part of its package only, as Go does."""
    return ".".join(name.split(".")[-2:])
