"""The types of values for field ownership: which are merged by their parts, and which are atomic."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from paceline.apimachinery.fields.fieldset import keys_step, spell, value_step
from paceline.apimachinery.schema import META, QUANTITY, REF, Schema, reference_of
from paceline.errors import BadRequest


class Sort(StrEnum):
    """How a value is owned and merged."""

    # Atomic: a scalar, or a list or map that is never merged.
    PIECE = "piece"
    MAP = "map"
    # A list whose items are identified by keys, and one whose items are identified by their values.
    KEYED = "keyed"
    SET = "set"
    # Without a schema: the value itself determines it.
    FREE = "free"


@dataclass(slots=True, eq=False)
class Type:
    """The type of a value, from its schema. Types may be recursive."""

    sort: Sort = Sort.PIECE
    # The JSON type of the schema, or "" for any.
    json: str = ""
    fields: "dict[str, Type]" = field(default_factory=dict)
    values: "Type | None" = None
    items: "Type | None" = None
    keys: tuple[str, ...] = ()
    # Defaults for keys that an item does not set.
    defaults: dict[str, Any] = field(default_factory=dict)

    def below(self, name: str) -> "Type":
        """Return the type of a field."""
        return self.fields.get(name) or self.values or FREE

    def like(self, *values: Any) -> Sort:
        """Return how values of this type are merged."""
        if self.sort is not Sort.FREE:
            return self.sort
        return Sort.MAP if any(isinstance(value, dict) for value in values) else Sort.PIECE


PIECE = Type()
FREE = Type(sort=Sort.FREE)
FREE.values = FREE


class Types:
    """The types of a set of component schemas; each is computed once."""

    def __init__(self, components: Mapping[str, Any]) -> None:
        self.components = components
        self._by_name: dict[str, Type] = {}

    def of_object(self, schema: Schema) -> Type:
        """Return the type of a whole object; its metadata is always that of Kubernetes."""
        base = self._type(schema)
        text = Type(json="string")
        fields = {**base.fields, "apiVersion": text, "kind": text}
        if META in self.components:
            fields["metadata"] = self._type({"$ref": REF + META})
        return Type(sort=Sort.MAP, json="object", fields=fields, values=base.values)

    def _type(self, schema: Schema) -> Type:
        name = reference_of(schema)
        if not name:
            new_type = Type()
            self._fill(new_type, schema)
            return new_type
        if name not in self._by_name:
            # Registered before it is filled, so that a recursive schema finds it.
            self._by_name[name] = new_type = Type()
            if name != QUANTITY:
                self._fill(new_type, self.components.get(name, {}))
        named_type = self._by_name[name]
        if schema.get("x-kubernetes-map-type") == "atomic" and named_type.sort is Sort.MAP:
            return Type(json="object")
        return named_type

    def _fill(self, target: Type, schema: Schema) -> None:
        if reference_of(schema):
            source = self._type(schema)
            target.sort, target.json, target.fields, target.values = (
                source.sort,
                source.json,
                source.fields,
                source.values,
            )
            return
        is_open = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        sort = schema.get("type") or ("object" if "properties" in schema else "array" if "items" in schema else "")
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            return
        target.json = str(sort)
        if sort == "array":
            self._fill_list(target, schema)
        elif sort == "object" and schema.get("x-kubernetes-map-type") != "atomic":
            self._fill_map(target, schema, is_open=is_open)
        elif not sort and is_open:
            target.sort, target.values = Sort.FREE, FREE

    def _fill_map(self, target: Type, schema: Schema, *, is_open: bool) -> None:
        target.sort = Sort.MAP
        properties = schema.get("properties") or {}
        for name, inner in properties.items():
            target.fields[name] = self._type(inner)
        additional = schema.get("additionalProperties")
        if isinstance(additional, Mapping):
            target.values = self._type(additional)
        elif additional or is_open or not properties:
            target.values = FREE

    def _fill_list(self, target: Type, schema: Schema) -> None:
        relation = schema.get("x-kubernetes-list-type")
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        if relation is None and "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
            key = schema.get("x-kubernetes-patch-merge-key")
            relation, keys = ("map", (str(key),)) if key else ("set", ())
        if relation not in {"map", "set"}:
            return
        target.sort = Sort.SET if relation == "set" else Sort.KEYED
        target.keys = tuple(sorted(keys))
        items = schema.get("items") or {}
        target.items = self._type(items)
        item_schema: Schema = items
        while name := reference_of(item_schema):
            item_schema = self.components.get(name, {})
        properties = item_schema.get("properties") or {}
        target.defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}


def step_to(value_type: Type, item: Any) -> str:
    """Return the path step of a list item; raise BadRequest if the item does not set its keys."""
    if value_type.sort is Sort.SET:
        return value_step(item)
    if not isinstance(item, dict):
        raise BadRequest("associative list with keys may not have non-map elements")
    if len(value_type.keys) == 1 and (only := item.get(value_type.keys[0])) is not None:
        return keys_step({value_type.keys[0]: only})
    keys = {}
    for key in value_type.keys:
        value = item.get(key)
        if value is None:
            value = value_type.defaults.get(key)
        if value is not None:
            keys[key] = value
    if not keys:
        listed = " ".join(f'"{key}"' for key in value_type.keys)
        hint = f"associative list with keys has an element that omits all key fields [{listed}]"
        raise BadRequest(f"{hint} (and doesn't have default values for any key fields)")
    return keys_step(keys)


def faults(value_type: Type, value: Any, path: str = "") -> Iterator[str]:
    """Yield the errors of a value that does not match its type, in Kubernetes' wording."""
    if value is None:
        return
    if value_type.json == "object" or (value_type.sort is Sort.MAP and value_type.json):
        yield from _map_faults(value_type, value, path)
    elif value_type.json == "array":
        yield from _list_faults(value_type, value, path)
    elif problem := _scalar_fault(value_type.json, value):
        yield f"{path}: {problem}"


def _map_faults(value_type: Type, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: expected map, got &{{{go_text(value)}}}"
    elif value_type.sort is Sort.MAP:
        for name, inner in value.items():
            if name not in value_type.fields and value_type.values is None:
                yield f"{path}.{name}: field not declared in schema"
            elif not (isinstance(inner, str) and value_type.below(name).json == "string"):
                yield from faults(value_type.below(name), inner, f"{path}.{name}")


def _list_faults(value_type: Type, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: expected list, got &{{{go_text(value)}}}"
        return
    if value_type.items is None:
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        try:
            step = step_to(value_type, item)
        except BadRequest as error:
            yield f"{path}: element {index}: {error}"
            continue
        spelled = spell((step,))
        if step in seen:
            yield f"{path}: duplicate entries for key {spelled}"
        seen.add(step)
        yield from faults(value_type.items, item, f"{path}{spelled}")


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
    """Return the name of a value's type in Go."""
    names = {str: "string", bool: "bool", dict: "map[string]interface {}", list: "[]interface {}"}
    return names.get(type(value), "<nil>")


def go_text(value: Any) -> str:
    """Return a value as Go prints it (%v)."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{go_text(item)}' for name, item in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _detailed(value: Any) -> str:
    """Return a value in Go syntax (%#v)."""
    if isinstance(value, dict):
        inner = ", ".join(f"{_detailed(name)}:{_detailed(item)}" for name, item in sorted(value.items()))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_detailed, value))}}}"
    return f'"{value}"' if isinstance(value, str) else go_text(value)
