"""The types of values for field ownership: which are merged by their parts, and which are atomic."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from paceline.apimachinery.fields.fieldset import keys_step, spell, value_step
from paceline.apimachinery.schema import META, QUANTITY, REF, Schema, reference_of
from paceline.errors import BadRequest


class Structure(StrEnum):
    """How a value is owned and merged."""

    # Atomic: a scalar, or a list or map that is never merged.
    ATOMIC = "atomic"
    MAP = "map"
    # A list whose items are identified by keys, and one whose items are identified by their values.
    LIST_MAP = "listMap"
    SET = "set"
    # Without a schema: the value itself determines it.
    DEDUCED = "deduced"


@dataclass(slots=True, eq=False)
class Type:
    """The type of a value, from its schema. Types may be recursive."""

    structure: Structure = Structure.ATOMIC
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
        return self.fields.get(name) or self.values or DEDUCED

    def structure_of(self, *values: Any) -> Structure:
        """Return how values of this type are merged."""
        if self.structure is not Structure.DEDUCED:
            return self.structure
        return Structure.MAP if any(isinstance(value, dict) for value in values) else Structure.ATOMIC


ATOMIC = Type()
DEDUCED = Type(structure=Structure.DEDUCED)
DEDUCED.values = DEDUCED


class Types:
    """The types of a set of component schemas; each is computed once."""

    def __init__(self, components: Mapping[str, Any], *, has_atomic_lists: bool = False) -> None:
        self.components = components
        # Whether lists in components are replaced as a whole: CRDs contain pod templates without their list types.
        self._has_atomic_lists = has_atomic_lists
        self._components_around = 0
        self._by_name: dict[str, Type] = {}

    def of_object(self, schema: Schema) -> Type:
        """Return the type of a whole object; its metadata is always that of Kubernetes."""
        base = self._type(schema)
        text = Type(json="string")
        fields = {**base.fields, "apiVersion": text, "kind": text}
        if META in self.components:
            fields["metadata"] = self._type({"$ref": REF + META})
        return Type(structure=Structure.MAP, json="object", fields=fields, values=base.values)

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
                is_counted = name != META
                self._components_around += is_counted
                self._fill(new_type, self.components.get(name, {}))
                self._components_around -= is_counted
        named_type = self._by_name[name]
        if schema.get("x-kubernetes-map-type") == "atomic" and named_type.structure is Structure.MAP:
            return Type(json="object")
        return named_type

    def _fill(self, target: Type, schema: Schema) -> None:
        if reference_of(schema):
            source = self._type(schema)
            target.structure, target.json = source.structure, source.json
            target.fields, target.values = source.fields, source.values
            return
        is_open = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        json_type = schema.get("type") or ("object" if "properties" in schema else "array" if "items" in schema else "")
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            return
        target.json = str(json_type)
        if json_type == "array":
            self._fill_list(target, schema)
        elif json_type == "object" and schema.get("x-kubernetes-map-type") != "atomic":
            self._fill_map(target, schema, is_open=is_open)
        elif not json_type and is_open:
            target.structure, target.values = Structure.DEDUCED, DEDUCED

    def _fill_map(self, target: Type, schema: Schema, *, is_open: bool) -> None:
        target.structure = Structure.MAP
        properties = schema.get("properties") or {}
        for name, inner in properties.items():
            target.fields[name] = self._type(inner)
        additional = schema.get("additionalProperties")
        if isinstance(additional, Mapping):
            target.values = self._type(additional)
        elif additional or is_open or not properties:
            target.values = DEDUCED

    def _fill_list(self, target: Type, schema: Schema) -> None:
        if self._has_atomic_lists and self._components_around:
            return
        relation = schema.get("x-kubernetes-list-type")
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        if relation is None and "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
            key = schema.get("x-kubernetes-patch-merge-key")
            relation, keys = ("map", (str(key),)) if key else ("set", ())
        if relation not in {"map", "set"}:
            return
        target.structure = Structure.SET if relation == "set" else Structure.LIST_MAP
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
    if value_type.structure is Structure.SET:
        return value_step(item)
    if not isinstance(item, dict):
        raise BadRequest("items of a list with keys must be objects")
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
        raise BadRequest(f"an item sets none of its keys: {', '.join(value_type.keys)}")
    return keys_step(keys)


# The Python types and the name of a JSON type.
_JSON_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "object": ((dict,), "an object"),
    "array": ((list,), "a list"),
    "string": ((str,), "a string"),
    "integer": ((int, float), "a number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "a boolean"),
}


def faults(value_type: Type, value: Any, path: str = "") -> Iterator[str]:
    """Yield the errors of a value that does not match its type."""
    if value is None:
        return
    json = "object" if value_type.structure is Structure.MAP and value_type.json else value_type.json
    expected, name = _JSON_TYPES.get(json, ((object,), ""))
    if not isinstance(value, expected) or (name == "a number" and isinstance(value, bool)):
        yield f"{path}: expected {name}"
    elif isinstance(value, dict) and json == "object" and value_type.structure is Structure.MAP:
        for field_name, inner in value.items():
            if field_name not in value_type.fields and value_type.values is None:
                yield f"{path}.{field_name}: field not declared in schema"
            elif not (isinstance(inner, str) and value_type.below(field_name).json == "string"):
                yield from faults(value_type.below(field_name), inner, f"{path}.{field_name}")
    elif isinstance(value, list) and json == "array" and value_type.items is not None:
        yield from _list_faults(value_type, value_type.items, value, path)


def _list_faults(value_type: Type, items: Type, value: list[Any], path: str) -> Iterator[str]:
    taken: set[str] = set()
    for index, item in enumerate(value):
        try:
            step = step_to(value_type, item)
        except BadRequest as error:
            yield f"{path}: element {index}: {error}"
            continue
        if step in taken:
            yield f"{path}: duplicate entries for key {spell((step,))}"
        taken.add(step)
        yield from faults(items, item, f"{path}{spell((step,))}")
