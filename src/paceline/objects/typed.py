"""How objects are made up, as far as owning parts of them goes: what is merged, and what is one piece."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from paceline.errors import Malformed
from paceline.objects.fieldset import keys_step, spell, value_step
from paceline.objects.schema import META, QUANTITY, REF, Schema, reference_of


class Sort(StrEnum):
    """What a value is to those who own it."""

    # One piece: a scalar, or a list or map that is never merged.
    PIECE = "piece"
    MAP = "map"
    # A list whose items are told apart by keys, and one whose items are told apart by their values.
    KEYED = "keyed"
    SET = "set"
    # No schema says what it is: the value itself does.
    FREE = "free"


@dataclass(slots=True, eq=False)
class Type:
    """What a schema says about one value. Types may hold themselves."""

    sort: Sort = Sort.PIECE
    # The JSON type by its schema, or "" when any will do.
    json: str = ""
    fields: "dict[str, Type]" = field(default_factory=dict)
    values: "Type | None" = None
    items: "Type | None" = None
    keys: tuple[str, ...] = ()
    # What an item that does not say one of its keys has there.
    defaults: dict[str, Any] = field(default_factory=dict)

    def below(self, name: str) -> "Type":
        """Give the type of a field."""
        return self.fields.get(name) or self.values or FREE

    def like(self, *values: Any) -> Sort:
        """Tell how values of this type are handled."""
        if self.sort is not Sort.FREE:
            return self.sort
        return Sort.MAP if any(isinstance(each, dict) for each in values) else Sort.PIECE


PIECE = Type()
FREE = Type(sort=Sort.FREE)
FREE.values = FREE


class Types:
    """The types of one set of component schemas, each worked out once."""

    def __init__(self, components: Mapping[str, Any]) -> None:
        self.components = components
        self._by_name: dict[str, Type] = {}

    def of_object(self, schema: Schema) -> Type:
        """Work out the type of a whole object: its metadata is always that of Kubernetes."""
        known = self._type(schema)
        text = Type(json="string")
        fields = {**known.fields, "apiVersion": text, "kind": text}
        if META in self.components:
            fields["metadata"] = self._type({"$ref": REF + META})
        return Type(sort=Sort.MAP, json="object", fields=fields, values=known.values)

    def _type(self, schema: Schema) -> Type:
        name = reference_of(schema)
        if not name:
            made = Type()
            self._fill(made, schema)
            return made
        if name not in self._by_name:
            # Entered before it is filled, so that a schema that holds itself finds this one.
            self._by_name[name] = made = Type()
            if name != QUANTITY:
                self._fill(made, self.components.get(name, {}))
        found = self._by_name[name]
        if schema.get("x-kubernetes-map-type") == "atomic" and found.sort is Sort.MAP:
            return Type(json="object")
        return found

    def _fill(self, made: Type, schema: Schema) -> None:
        if reference_of(schema):
            known = self._type(schema)
            made.sort, made.json, made.fields, made.values = known.sort, known.json, known.fields, known.values
            return
        is_open = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        sort = schema.get("type") or ("object" if "properties" in schema else "array" if "items" in schema else "")
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            return
        made.json = str(sort)
        if sort == "array":
            self._fill_list(made, schema)
        elif sort == "object" and schema.get("x-kubernetes-map-type") != "atomic":
            self._fill_map(made, schema, is_open=is_open)
        elif not sort and is_open:
            made.sort, made.values = Sort.FREE, FREE

    def _fill_map(self, made: Type, schema: Schema, *, is_open: bool) -> None:
        made.sort = Sort.MAP
        properties = schema.get("properties") or {}
        for name, inner in properties.items():
            made.fields[name] = self._type(inner)
        more = schema.get("additionalProperties")
        if isinstance(more, Mapping):
            made.values = self._type(more)
        elif more or is_open or not properties:
            made.values = FREE

    def _fill_list(self, made: Type, schema: Schema) -> None:
        relation = schema.get("x-kubernetes-list-type")
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        if relation is None and "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
            key = schema.get("x-kubernetes-patch-merge-key")
            relation, keys = ("map", (str(key),)) if key else ("set", ())
        if relation not in {"map", "set"}:
            return
        made.sort = Sort.SET if relation == "set" else Sort.KEYED
        made.keys = tuple(sorted(keys))
        items = schema.get("items") or {}
        made.items = self._type(items)
        known: Schema = items
        while name := reference_of(known):
            known = self.components.get(name, {})
        properties = known.get("properties") or {}
        made.defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}


def step_to(known: Type, item: Any) -> str:
    """Write the step to an item of a list; Malformed when the item does not say what tells it apart."""
    if known.sort is Sort.SET:
        return value_step(item)
    if not isinstance(item, dict):
        raise Malformed("associative list with keys may not have non-map elements")
    if len(known.keys) == 1 and (only := item.get(known.keys[0])) is not None:
        return keys_step({known.keys[0]: only})
    keys = {}
    for key in known.keys:
        value = item.get(key)
        if value is None:
            value = known.defaults.get(key)
        if value is not None:
            keys[key] = value
    if not keys:
        listed = " ".join(f'"{key}"' for key in known.keys)
        hint = f"associative list with keys has an element that omits all key fields [{listed}]"
        raise Malformed(f"{hint} (and doesn't have default values for any key fields)")
    return keys_step(keys)


def faults(known: Type, value: Any, path: str = "") -> Iterator[str]:
    """Say what of a value does not fit its type, in the words of Kubernetes."""
    if value is None:
        return
    if known.json == "object" or (known.sort is Sort.MAP and known.json):
        yield from _map_faults(known, value, path)
    elif known.json == "array":
        yield from _list_faults(known, value, path)
    elif wrong := _scalar_fault(known.json, value):
        yield f"{path}: {wrong}"


def _map_faults(known: Type, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: expected map, got &{{{go_text(value)}}}"
    elif known.sort is Sort.MAP:
        for name, inner in value.items():
            if name not in known.fields and known.values is None:
                yield f"{path}.{name}: field not declared in schema"
            elif not (isinstance(inner, str) and known.below(name).json == "string"):
                yield from faults(known.below(name), inner, f"{path}.{name}")


def _list_faults(known: Type, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: expected list, got &{{{go_text(value)}}}"
        return
    if known.items is None:
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        try:
            step = step_to(known, item)
        except Malformed as error:
            yield f"{path}: element {index}: {error}"
            continue
        spelled = spell((step,))
        if step in seen:
            yield f"{path}: duplicate entries for key {spelled}"
        seen.add(step)
        yield from faults(known.items, item, f"{path}{spelled}")


def _scalar_fault(json: str, value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    match json:
        case "string" if not isinstance(value, str):
            return f"expected string, got &value.valueUnstructured{{Value:{_detailed(value)}}}"
        case "integer" | "number" if not is_number:
            return f"expected numeric (int or float), got {go_type(value)}"
        case "boolean" if not isinstance(value, bool):
            return f"expected boolean, got &{{{go_text(value)}}}"
    return ""


def go_type(value: Any) -> str:
    """Name the type of a value as Go does."""
    names = {str: "string", bool: "bool", dict: "map[string]interface {}", list: "[]interface {}"}
    return names.get(type(value), "<nil>")


def go_text(value: Any) -> str:
    """Write a value as Go shows one."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{go_text(each)}' for name, each in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _detailed(value: Any) -> str:
    """Write a value as Go writes one in its own syntax."""
    if isinstance(value, dict):
        inner = ", ".join(f"{_detailed(name)}:{_detailed(each)}" for name, each in sorted(value.items()))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_detailed, value))}}}"
    return f'"{value}"' if isinstance(value, str) else go_text(value)
