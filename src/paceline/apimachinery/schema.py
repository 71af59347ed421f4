"""OpenAPI schemas: references, pruning of unknown fields, conversion to JSON Schema."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.apimachinery.field_errors import did_you_mean
from paceline.apimachinery.meta import Object

REF = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"

Schema = Mapping[str, Any]

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_NOT_VALIDATED = frozenset({"default", "description", "example", "externalDocs", "nullable", "title"})
_INTEGERS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
# Slightly less than what a quantity may be as text, because a number is rounded when it becomes text.
_LARGEST_QUANTITY = 9 * 10**18


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownField:
    """A field that a kind does not have."""

    path: str
    # `, did you mean "…"?`, or empty.
    suggestion: str

    def __str__(self) -> str:
        return f'unknown field "{self.path}"{self.suggestion}'


@dataclass(slots=True, eq=False)
class Shape:
    """The fields that a value may have; a shape without anything allows everything."""

    fields: "dict[str, Shape] | None" = None
    items: "Shape | None" = None
    # The shape of other fields; if there are fields, None allows no others.
    values: "Shape | None" = None
    nullable: bool = False


_ANYTHING = Shape()


@dataclass(slots=True)
class Shapes:
    """The shapes of schemas, each computed once. Schemas may be recursive."""

    components: Mapping[str, Any]
    _by_name: dict[str, Shape] = field(default_factory=dict)

    def of_object(self, schema: Schema, *, structural: bool = False) -> Shape:
        """Return the shape of a whole object; its metadata is always that of Kubernetes.

        A structural schema, as CRDs have it, allows only the fields that it names.
        """
        shape = self._structural(schema) if structural else self._shape(schema)
        return shape if shape.fields is None else self._with_metadata(shape)

    def _with_metadata(self, shape: Shape) -> Shape:
        fields = {"apiVersion": Shape(), "kind": Shape(), **(shape.fields or {})}
        if META in self.components:
            fields["metadata"] = self._shape({"$ref": REF + META})
        return Shape(fields=fields, values=shape.values, nullable=shape.nullable)

    def _structural(self, schema: Schema) -> Shape:
        shape = Shape(nullable=bool(schema.get("nullable")))
        if isinstance(items := schema.get("items"), Mapping):
            shape.items = self._structural(items)
        additional, is_open = schema.get("additionalProperties"), schema.get(_PRESERVE)
        if isinstance(additional, Mapping):
            shape.values = self._structural(additional)
        elif "properties" in schema or (schema.get("type") == "object" and not (additional or is_open)):
            properties = schema.get("properties") or {}
            shape.fields = {name: self._structural(inner) for name, inner in properties.items()}
            shape.values = _ANYTHING if is_open else None
        if schema.get("x-kubernetes-embedded-resource"):
            shape.values = _ANYTHING if is_open else None
            return self._with_metadata(shape)
        return shape

    def _shape(self, schema: Schema) -> Shape:
        reference = reference_of(schema)
        if reference in self._by_name:
            return self._by_name[reference]
        shape = Shape()
        if reference:
            # Registered before it is filled, so that a recursive schema finds it.
            self._by_name[reference] = shape
            schema = self.components.get(reference, {})
        self._fill(shape, schema)
        return shape

    def _fill(self, shape: Shape, schema: Schema) -> None:
        if reference_of(schema):
            target = self._shape(schema)
            shape.fields, shape.items = target.fields, target.items
            shape.values, shape.nullable = target.values, target.nullable
            return
        shape.nullable = bool(schema.get("nullable"))
        additional = schema.get("additionalProperties")
        if isinstance(schema.get("items"), Mapping):
            shape.items = self._shape(schema["items"])
        if isinstance(additional, Mapping):
            shape.values = self._shape(additional)
        elif "properties" in schema and not (additional or schema.get(_PRESERVE)):
            shape.fields = {name: self._shape(inner) for name, inner in schema["properties"].items()}


def prune(obj: Object, shape: Shape) -> tuple[UnknownField, ...]:
    """Remove, in place, every field that the shape does not have, and return them.

    A null that the schema does not allow counts as missing and is removed too, as in Kubernetes.
    """
    unknown: list[UnknownField] = []
    _prune_fields(obj, shape, [], unknown)
    return tuple(unknown)


MOST_SUGGESTIONS = 20
# The steps from the object to a value; joined only for a message.
_Trail = list[str | int]


def _prune_fields(holder: Object, shape: Shape, trail: _Trail, unknown: list[UnknownField]) -> None:
    fields = shape.fields
    others = shape.values or (_ANYTHING if fields is None else None)
    removed: list[str] = []
    for name, value in holder.items():
        inner = others if fields is None else fields.get(name, others)
        if inner is None:
            removed.append(name)
            # Comparing takes long, and nobody reads the hundredth suggestion.
            hint = did_you_mean(name, fields or ()) if len(unknown) < MOST_SUGGESTIONS else ""
            unknown.append(UnknownField(path=spell((*trail, name)), suggestion=hint))
        elif value is None:
            if inner is not _ANYTHING and not inner.nullable:
                removed.append(name)
        elif isinstance(value, (dict, list)):
            _prune_value(value, inner, trail, name, unknown)
    for name in removed:
        del holder[name]


def _prune_value(value: Any, shape: Shape, trail: _Trail, step: str | int, unknown: list[UnknownField]) -> None:
    trail.append(step)
    if isinstance(value, dict):
        _prune_fields(value, shape, trail, unknown)
    elif shape.items is not None:
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _prune_value(item, shape.items, trail, index, unknown)
    trail.pop()


def spell(path: Iterable[str | int]) -> str:
    """Return a path as Kubernetes writes it: spec.containers[0].name."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def reference_of(schema: Schema) -> str:
    """Return the name of the component that a schema refers to, or ""."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    parts: list[Schema] = schema.get("allOf") or []
    return reference_of(parts[0]) if len(parts) == 1 else ""


def reachable(schema: Schema, components: Mapping[str, Any]) -> dict[str, Any]:
    """Return the components that a schema refers to, directly or indirectly."""
    needed: dict[str, Any] = {}
    pending = list(_references(schema))
    while pending:
        name = pending.pop()
        if name not in needed and name in components:
            needed[name] = components[name]
            pending.extend(_references(components[name]))
    return dict(sorted(needed.items()))


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping):
        for name, value in part.items():
            if name == "$ref" and isinstance(value, str):
                yield value.removeprefix(REF)
            else:
                yield from _references(value)
    elif isinstance(part, (list, tuple)):
        for item in part:
            yield from _references(item)


def as_json_schema(schema: Schema, components: Mapping[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI schema and its components as one JSON Schema."""
    shared = {name: _rewritten(component) for name, component in reachable(schema, components).items()}
    if QUANTITY in shared:
        # A format applies to text only, so a number needs bounds.
        bounds = {"minimum": -_LARGEST_QUANTITY, "maximum": _LARGEST_QUANTITY}
        shared[QUANTITY] = {"type": ["string", "number"], "format": "quantity", **bounds}
    return {"allOf": [_rewritten(schema)], "components": {"schemas": shared}}


def _rewritten(schema: Any) -> Any:
    """Return a schema with the keywords of OpenAPI replaced by those of JSON Schema."""
    if not isinstance(schema, Mapping):
        return schema
    plain = {
        name: _rewritten_keyword(name, value)
        for name, value in schema.items()
        if name not in _NOT_VALIDATED and not name.startswith("x-kubernetes-")
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


def _rewritten_keyword(name: str, value: Any) -> Any:
    if name == "properties":
        return {field_name: _rewritten(inner) for field_name, inner in value.items()}
    if name in {"items", "additionalProperties", "not"}:
        return _rewritten(value)
    if name in {"allOf", "anyOf", "oneOf"}:
        return [_rewritten(branch) for branch in value]
    return value
