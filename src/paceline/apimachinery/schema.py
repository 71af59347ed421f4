"""Schemas of kinds: following references, finding fields that nobody knows, forms that validators take."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.apimachinery.field_errors import did_you_mean
from paceline.apimachinery.meta import Object

REF = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
MOST = 9 * 10**18
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"

Schema = Mapping[str, Any]

_LEAVE_OUT = frozenset({"default", "description", "example", "externalDocs", "nullable", "title"})
_INTEGERS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownField:
    """A field that the kind does not have."""

    path: str
    # `, did you mean "…"?`, or nothing.
    suggestion: str

    def __str__(self) -> str:
        return f'unknown field "{self.path}"{self.suggestion}'


@dataclass(slots=True, eq=False)
class Shape:
    """Which fields may be where; None means that anything may."""

    fields: "dict[str, Shape] | None" = None
    items: "Shape | None" = None
    # What has a name that is not among the fields; beside fields, None means that nothing else may be.
    values: "Shape | None" = None
    nullable: bool = False


@dataclass(slots=True)
class Shapes:
    """The shapes of schemas, each worked out once. Schemas may refer to themselves."""

    components: Mapping[str, Any]
    _by_name: dict[str, Shape] = field(default_factory=dict)

    def of_object(self, schema: Schema, *, structural: bool = False) -> Shape:
        """Work out the shape of a whole object: its metadata is always that of Kubernetes.

        A structural schema, as definitions have it, names all that may be.
        """
        shape = self._structural(schema) if structural else self._shape(schema)
        return shape if shape.fields is None else self._whole(shape)

    def _whole(self, shape: Shape) -> Shape:
        fields = {"apiVersion": Shape(), "kind": Shape(), **(shape.fields or {})}
        if META in self.components:
            fields["metadata"] = self._shape({"$ref": REF + META})
        return Shape(fields=fields, values=shape.values, nullable=shape.nullable)

    def _structural(self, schema: Schema) -> Shape:
        shape = Shape(nullable=bool(schema.get("nullable")))
        if isinstance(items := schema.get("items"), Mapping):
            shape.items = self._structural(items)
        values = schema.get("additionalProperties")
        is_open = schema.get("x-kubernetes-preserve-unknown-fields")
        if isinstance(values, Mapping):
            shape.values = self._structural(values)
        elif "properties" in schema or (schema.get("type") == "object" and not (values or is_open)):
            named = schema.get("properties") or {}
            shape.fields = {name: self._structural(inner) for name, inner in named.items()}
            shape.values = _ANYTHING if is_open else None
        if schema.get("x-kubernetes-embedded-resource"):
            # One without fields is open: it has what every object has, and anything else.
            shape.values = _ANYTHING if is_open else None
            return self._whole(shape)
        return shape

    def _shape(self, schema: Schema) -> Shape:
        if reference := reference_of(schema):
            if reference not in self._by_name:
                # Entered before it is filled, so that a schema that holds itself finds this one.
                self._by_name[reference] = shape = Shape()
                self._fill(shape, self.components.get(reference, {}))
            return self._by_name[reference]
        shape = Shape()
        self._fill(shape, schema)
        return shape

    def _fill(self, shape: Shape, schema: Schema) -> None:
        if reference_of(schema):
            known = self._shape(schema)
            shape.fields, shape.items = known.fields, known.items
            shape.values, shape.nullable = known.values, known.nullable
            return
        shape.nullable = bool(schema.get("nullable"))
        if isinstance(schema.get("items"), Mapping):
            shape.items = self._shape(schema["items"])
        if isinstance(schema.get("additionalProperties"), Mapping):
            shape.values = self._shape(schema["additionalProperties"])
        elif "properties" in schema and not _is_open(schema):
            shape.fields = {}
            for name, inner in schema["properties"].items():
                shape.fields[name] = self._shape(inner)


def prune(obj: Object, shape: Shape) -> tuple[UnknownField, ...]:
    """Take out, in place, every field that the shape does not have, and name each.

    A null where the schema allows none counts as not being there, as in Kubernetes.
    """
    found: list[UnknownField] = []
    _prune_fields(obj, shape, [], found)
    return tuple(found)


MOST_SUGGESTIONS = 20
# Steps from the object to a value; spelled only when there is something to say.
_Trail = list[str | int]


def _prune_fields(holder: Object, shape: Shape, trail: _Trail, found: list[UnknownField]) -> None:
    fields = shape.fields
    others = shape.values or (_ANYTHING if fields is None else None)
    gone: list[str] = []
    for name, value in holder.items():
        inner = others if fields is None else fields.get(name, others)
        if inner is None:
            gone.append(name)
            # Comparing takes long, and nobody reads the hundredth suggestion.
            hint = did_you_mean(name, fields or ()) if len(found) < MOST_SUGGESTIONS else ""
            found.append(UnknownField(path=spell((*trail, name)), suggestion=hint))
        elif value is None:
            if inner is not _ANYTHING and not inner.nullable:
                gone.append(name)
        elif isinstance(value, dict):
            trail.append(name)
            _prune_fields(value, inner, trail, found)
            trail.pop()
        elif isinstance(value, list):
            trail.append(name)
            _prune_items(value, inner, trail, found)
            trail.pop()
    for name in gone:
        del holder[name]


def _prune_items(holder: list[Any], shape: Shape, trail: _Trail, found: list[UnknownField]) -> None:
    if shape.items is None:
        return
    for index, value in enumerate(holder):
        if isinstance(value, dict):
            trail.append(index)
            _prune_fields(value, shape.items, trail, found)
            trail.pop()
        elif isinstance(value, list):
            trail.append(index)
            _prune_items(value, shape.items, trail, found)
            trail.pop()


_ANYTHING = Shape()


def spell(path: Iterable[str | int]) -> str:
    """Spell a path as Kubernetes does: spec.containers[0].name."""
    spelled = ""
    for step in path:
        if isinstance(step, int):
            spelled += f"[{step}]"
        else:
            spelled += f".{step}" if spelled else step
    return spelled


def _is_open(schema: Schema) -> bool:
    preserved = schema.get("x-kubernetes-preserve-unknown-fields")
    return bool(preserved or schema.get("additionalProperties"))


def reference_of(schema: Schema) -> str:
    """Give the name of the component that a schema stands for, or ""."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    parts: list[Schema] = schema.get("allOf") or []
    return reference_of(parts[0]) if len(parts) == 1 else ""


def reachable(schema: Schema, components: Mapping[str, Any]) -> dict[str, Any]:
    """Give the components that a schema needs, directly or not."""
    found: dict[str, Any] = {}
    waiting = list(_references(schema))
    while waiting:
        name = waiting.pop()
        if name not in found and name in components:
            found[name] = components[name]
            waiting.extend(_references(components[name]))
    return dict(sorted(found.items()))


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping):
        for name, value in part.items():
            if name == "$ref" and isinstance(value, str):
                yield value.removeprefix(REF)
            else:
                yield from _references(value)
    elif isinstance(part, (list, tuple)):
        for each in part:
            yield from _references(each)


def as_json_schema(schema: Schema, components: Mapping[str, Any]) -> dict[str, Any]:
    """Turn an OpenAPI schema and what it refers to into one JSON schema for a validator."""
    needed = reachable(schema, components)
    shared = {name: _rewritten(each) for name, each in needed.items()}
    if QUANTITY in shared:
        # A format is about text only, so a bare number has bounds: a little less than what text may say, because
        # writing a number as text rounds it.
        bounds = {"minimum": -MOST, "maximum": MOST}
        shared[QUANTITY] = {"type": ["string", "number"], "format": "quantity", **bounds}
    return {"allOf": [_rewritten(schema)], "components": {"schemas": shared}}


def _rewritten(schema: Any) -> Any:
    """Say in JSON schema what OpenAPI says in its own words."""
    if not isinstance(schema, Mapping):
        return schema
    plain = {
        name: _rewritten_part(name, value)
        for name, value in schema.items()
        if name not in _LEAVE_OUT and not name.startswith("x-kubernetes-")
    }
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if plain.get(exclusive) is True:
            plain[exclusive] = plain.pop(bound)
        elif plain.get(exclusive) is False:
            del plain[exclusive]
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        for name in ("oneOf", "anyOf", "format"):
            plain.pop(name, None)
        plain["type"] = ["integer", "string"]
    if plain.get("type") == "integer" and plain.get("format") in _INTEGERS:
        lowest, highest = _INTEGERS[plain["format"]]
        plain["minimum"] = max(lowest, plain.get("minimum", lowest))
        plain["maximum"] = min(highest, plain.get("maximum", highest))
    if schema.get("x-kubernetes-embedded-resource"):
        plain["required"] = [*dict.fromkeys((*plain.get("required", ()), "apiVersion", "kind"))]
    if schema.get("nullable") and isinstance(plain.get("type"), str):
        plain["type"] = [plain["type"], "null"]
    return plain


def _rewritten_part(name: str, value: Any) -> Any:
    if name == "properties":
        return {each: _rewritten(inner) for each, inner in value.items()}
    if name in {"items", "additionalProperties", "not"}:
        return _rewritten(value)
    if name in {"allOf", "anyOf", "oneOf"}:
        return [_rewritten(each) for each in value]
    return value
