"""The Go types of the built-in kinds: their fields, numbers in protobuf, and which are omitted when empty."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

_PARTS = re.compile(r"(?P<pointer>\*)?(?:(?P<list>\[\])|(?P<map>map\[[\w.]+\]))?(?P<element>.+)")
# Groups whose Go package is not named after the first part of the group.
_PACKAGES = {"": "core"}


class GoKind(Enum):
    """The form of a type's values in JSON."""

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
class GoType:
    """One type. Structs are given by name, because they may be recursive."""

    kind: GoKind
    is_pointer: bool = False
    # Of an integer, without its sign.
    bits: int = 63
    # Of the items of a list or the values of a map.
    inner: "GoType | None" = None
    struct: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructField:
    """One field of a struct; a field without a name is inlined in JSON, but not in protobuf."""

    name: str
    type: GoType
    number: int
    # 0: written when empty; 1: omitted when empty (omitempty); 2: omitted when zero (omitzero).
    omit: int


_SCALARS = {
    "string": GoKind.STRING,
    "bool": GoKind.BOOL,
    "int": GoKind.INTEGER,
    "int32": GoKind.INTEGER,
    "int64": GoKind.INTEGER,
    "float64": GoKind.FLOAT,
    "meta.v1.Time": GoKind.TIME,
    "meta.v1.MicroTime": GoKind.MICRO_TIME,
    "meta.v1.Duration": GoKind.DURATION,
    "resource.Quantity": GoKind.QUANTITY,
    "intstr.IntOrString": GoKind.NUMBER_OR_NAME,
    "meta.v1.FieldsV1": GoKind.ANYTHING,
    "runtime.RawExtension": GoKind.ANYTHING,
    "apiextensions.v1.JSON": GoKind.ANYTHING,
    "apiextensions.v1.JSONSchemaPropsOrArray": GoKind.ANYTHING,
    "apiextensions.v1.JSONSchemaPropsOrBool": GoKind.ANYTHING,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": GoKind.ANYTHING,
}


@cache
def _data() -> Mapping[str, Any]:
    package, _, _ = __name__.rpartition(".")
    data: Mapping[str, Any] = orjson.loads(files(package).joinpath("structs.json").read_bytes())
    return data


@cache
def struct_of(group: str, version: str, kind: str) -> str:
    """Return the name of a kind's struct, or "" if there is none."""
    name = f"{_PACKAGES.get(group, group.partition('.')[0])}.{version}.{kind}"
    return name if name in _data()["structs"] else ""


@cache
def fields_of(struct: str) -> tuple[StructField, ...]:
    """Return the fields of a struct as declared."""
    return tuple(
        StructField(name=name, type=type_of(text), number=number, omit=omit)
        for name, text, number, omit in _data()["structs"][struct]
    )


@cache
def flat_fields_of(struct: str) -> tuple[StructField, ...]:
    """Return the fields of a struct as in JSON, with inlined structs resolved."""
    fields: list[StructField] = []
    for field in fields_of(struct):
        fields.extend((field,) if field.name else flat_fields_of(field.type.struct))
    return tuple(fields)


@cache
def type_of(text: str) -> GoType:
    """Return the type that Go spells `text`, such as `*int32` or `[]core.v1.Container`."""
    match = _PARTS.fullmatch(text)
    if match is None:
        raise LookupError(text)
    is_pointer, element = bool(match["pointer"]), match["element"]
    if match["list"] and element == "byte":
        return GoType(kind=GoKind.BYTES, is_pointer=is_pointer)
    if match["list"] or match["map"]:
        kind = GoKind.LIST if match["list"] else GoKind.MAP
        return GoType(kind=kind, is_pointer=is_pointer, inner=type_of(element))
    if element in _SCALARS:
        return GoType(kind=_SCALARS[element], is_pointer=is_pointer, bits=31 if element == "int32" else 63)
    if element in _data()["names"]:
        alias = type_of(_data()["names"][element])
        return GoType(kind=alias.kind, is_pointer=is_pointer, bits=alias.bits, inner=alias.inner)
    return GoType(kind=GoKind.STRUCT, is_pointer=is_pointer, struct=element)
