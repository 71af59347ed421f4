"""The OpenAPI v3 schema of a kind, and its CustomResourceDefinition for a real cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from msgspec import inspect

from paceline.apimachinery.meta import Object
from paceline.apimachinery.name_validation import MAX_SUBDOMAIN
from paceline.apimachinery.scheme import Column, ScalePaths
from paceline.kinds.cel import VALIDATIONS, with_rules
from paceline.kinds.compat import CLEAN_UP, SWITCHED, Path
from paceline.kinds.immutability import LIST_KEYS, LIST_TYPE, with_frozen
from paceline.kinds.kind_types import VERSION, Kind
from paceline.kinds.spec.fields import POD_TEMPLATE
from paceline.kinds.spec.pod_template import PodTemplate
from paceline.model.status_schema import status_schema

Schema = dict[str, Any]

REF = "#/components/schemas/"
OBJECT_META = f"{REF}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
QUANTITY = f"{REF}io.k8s.apimachinery.pkg.api.resource.Quantity"
FREE: Schema = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_STRING: Schema = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
}
STATUS_HELP = (
    "Observed state, written by the controller: phase, conditions, tasks with their replicas, aggregate, restarts, "
    "times, why it is waiting and what failed."
)
OLD_SWITCH: Schema = {"type": "boolean", "description": "Old name for enabled."}


def spec_schema(spec: type[msgspec.Struct]) -> Schema:
    """Return the schema of a spec: its fields with bounds and help. The pod template stays a `$ref`."""
    return _of(inspect.type_info(spec))


def object_schema(kind: Kind) -> Schema:
    """Return the schema of a whole object, as the embedded server publishes it; it also allows old shapes."""
    old_name = f" An old name for {kind.alias_of}." if kind.alias_of else ""
    return {
        "type": "object",
        "description": f"{kind.kind}: {(kind.spec.__doc__ or '').strip()}{old_name}",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": OBJECT_META}]},
            "spec": _with_old_shapes(spec_schema(kind.spec), kind.old),
            "status": {"description": STATUS_HELP, **status_schema(kind.status)},
        },
        "x-kubernetes-group-version-kind": [{"group": kind.group, "version": VERSION, "kind": kind.kind}],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """The schemas that references lead to, and those that are resolved already."""

    schemas: Mapping[str, Any]
    # The fields of a pod template that every kind reads, and their bounds.
    template: type[msgspec.Struct] = PodTemplate
    resolved: dict[tuple[str, type], Schema] = field(default_factory=dict)

    def resolve(self, ref: str) -> Schema:
        """Return the structural schema that a reference leads to."""
        if ref == OBJECT_META:
            return _EMBEDDED_META
        if (ref, self.template) not in self.resolved:
            schema = structural(self.schemas[ref.removeprefix(REF)], self, _ALLOWED)
            if ref == POD_TEMPLATE:
                schema = _with_bounds(schema, spec_schema(self.template))
            self.resolved[ref, self.template] = schema
        return self.resolved[ref, self.template]


def structural(schema: Mapping[str, Any], components: Components, keywords: frozenset[str] | None = None) -> Schema:
    """Return a schema with every `$ref` resolved, and without the keywords that a CRD must not have.

    Defaults are dropped too: specs are stored as written, on both clusters. Kubernetes' own schemas lose more
    `keywords`: the API server allows keys of lists only where they are required.
    """
    keywords = keywords or _ALLOWED | _OURS
    if ref := _ref_of(schema):
        if ref == QUANTITY:
            # Kubernetes accepts plain fractions (`cpu: 0.5`), which int-or-string would reject.
            return dict(FREE)
        inner = components.resolve(ref)
        description = schema.get("description")
        return {**inner, "description": description} if description else dict(inner)
    if schema.get("format") == "int-or-string":
        return dict(INT_OR_STRING)
    allowed = {key: value for key, value in schema.items() if key in keywords}
    if "properties" in schema:
        allowed["properties"] = {
            name: structural(inner, components, keywords) for name, inner in schema["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            allowed[key] = structural(schema[key], components, keywords)
    return allowed


def _with_old_shapes(spec: Schema, old: type[msgspec.Struct] | None) -> Schema:
    """Return a spec's schema that also allows its old shapes.

    If the old shape has an object that the current one lacks, the fields that the current shape requires may be in
    there; so the schema requires nothing, and the kind's check does.
    """
    if old is not None:
        added = spec_schema(old)
        has_moved = any(
            "properties" in field and name not in spec["properties"] for name, field in added["properties"].items()
        )
        spec = _merged(spec, added)
        if has_moved:
            spec.pop("required", None)
    for path in SWITCHED:
        if (part := _part(spec, path)) is not None:
            part["properties"] = {**part["properties"], "enable": OLD_SWITCH}
    for path in CLEAN_UP:
        if (part := _part(spec, path)) is not None:
            part["enum"] = [*part["enum"], *map(str.lower, part["enum"])]
    return spec


def _part(spec: Schema, path: Path) -> Schema | None:
    part: Schema | None = spec
    for name in path[1:]:
        part = None if part is None else part.get("properties", {}).get(name)
    return part


def _merged(current: Schema, old: Schema) -> Schema:
    """Return a schema with the fields of both shapes; where both have a field, merge objects or take the old one."""
    fields = dict(current["properties"])
    for name, schema in old["properties"].items():
        is_part = name in fields and "properties" in schema and "properties" in fields[name]
        fields[name] = _merged(fields[name], schema) if is_part else schema
    return {**current, "properties": fields}


_ALLOWED = frozenset(
    {
        *("type", "format", "enum", "required", "description", "pattern", "anyOf"),
        *("minimum", "maximum", "minItems", "minProperties", "maxLength"),
        *("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"),
    }
)

# Keywords that only schemas of our own have in a CRD.
_OURS = frozenset({"maxItems", LIST_TYPE, LIST_KEYS, VALIDATIONS})
_BOUNDS = ("pattern", "maxLength", "minimum", "maximum", "minItems", "maxItems")


def _with_bounds(schema: Schema, bounds: Mapping[str, Any]) -> Schema:
    """Return a schema with the bounds and required fields that another one has for the same fields."""
    bounded = {**schema, **{key: bounds[key] for key in _BOUNDS if key in bounds}}
    if required := bounds.get("required"):
        bounded["required"] = [*dict.fromkeys((*schema.get("required", ()), *required))]
    if "properties" in schema and "properties" in bounds:
        fields = {name: inner for name, inner in bounds["properties"].items() if name in schema["properties"]}
        changed = {name: _with_bounds(schema["properties"][name], inner) for name, inner in fields.items()}
        bounded["properties"] = {**schema["properties"], **changed}
    if "items" in schema and "items" in bounds:
        bounded["items"] = _with_bounds(schema["items"], bounds["items"])
    return bounded


_NAMES: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
# The fields of a template's metadata that have an effect; a CRD must not declare more of metadata.
_EMBEDDED_META: Schema = {
    "type": "object",
    "properties": {
        "annotations": _NAMES,
        "labels": _NAMES,
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}


def _ref_of(schema: Mapping[str, Any]) -> str | None:
    parts = [schema, *schema.get("allOf", ())]
    return next((str(part["$ref"]) for part in parts if "$ref" in part), None)


def _of(kind: inspect.Type) -> Schema:
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return _with_extra(_of(inner), extra or {})
        case inspect.UnionType(types=arms):
            return _union([arm for arm in arms if not isinstance(arm, inspect.NoneType)])
        case inspect.StructType(cls=cls, fields=fields):
            required = [field.encode_name for field in fields if field.required]
            properties = {field.encode_name: _field(field) for field in fields}
            schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
            return with_rules(schema, getattr(cls, "cel", ()))
        case inspect.DictType(value_type=inspect.AnyType()):
            return {"type": "object", **FREE}
        case inspect.DictType(value_type=value, min_length=min_length):
            return _bounded({"type": "object", "additionalProperties": _of(value)}, minProperties=min_length)
        case inspect.VarTupleType(item_type=item, min_length=min_length, max_length=max_length):
            return _bounded({"type": "array", "items": _of(item)}, minItems=min_length, maxItems=max_length)
        case _:
            return _leaf(kind)


def _leaf(kind: inspect.Type) -> Schema:
    match kind:
        case inspect.EnumType(cls=choices):
            return {"type": "string", "enum": [choice.value for choice in choices]}
        case inspect.LiteralType(values=values):
            return {"type": "string", "enum": list(values)}
        case inspect.IntType(ge=low, le=high):
            return _bounded({"type": "integer"}, minimum=low, maximum=high)
        case inspect.FloatType():
            return {"type": "number"}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.StrType(pattern=pattern, max_length=max_length):
            return _bounded({"type": "string"}, pattern=pattern, maxLength=max_length)
        case _:
            raise TypeError(f"a spec cannot have a field of type {kind}")


def _field(field: inspect.Field) -> Schema:
    schema = _of(field.type)
    default = field.default
    # Empty defaults are obvious.
    if default not in (msgspec.NODEFAULT, None, "", ()) and "description" in schema:
        text = str(default).lower() if isinstance(default, bool) else str(default)
        schema = {**schema, "description": f"{schema['description']} Default: {text}."}
    return schema


def _union(arms: list[inspect.Type]) -> Schema:
    if len(arms) == 1:
        return _of(arms[0])
    if {type(arm) for arm in arms} == {inspect.IntType, inspect.StrType}:
        return dict(INT_OR_STRING)
    # A structural schema cannot express "string or object"; the kind's own check does.
    return dict(FREE)


def _with_extra(schema: Schema, extra: Mapping[str, Any]) -> Schema:
    if ref := extra.get("$ref"):
        schema = {"allOf": [{"$ref": ref}]}
    return {**schema, **{key: value for key, value in extra.items() if key != "$ref"}}


def _bounded(schema: Schema, **bounds: object) -> Schema:
    return {**schema, **{key: value for key, value in bounds.items() if value is not None}}


# Rules about the name are possible only if it is declared.
NAMED: Mapping[str, Any] = {"type": "object", "properties": {"name": {"type": "string", "maxLength": MAX_SUBDOMAIN}}}


def crd(kind: Kind, components: Components, published: Mapping[str, Any]) -> Object:
    """Return the CRD of a kind, with all references of its `object_schema` resolved."""
    schema = structural(published, replace(components, template=kind.template))
    # The API server defines these three itself, and rejects a CRD that declares more of them.
    schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": dict(NAMED)}
    if kind.mutable is not None:
        schema["properties"]["spec"] = with_frozen(schema["properties"]["spec"], kind.mutable)
    schema = with_rules(schema, kind.name_rules)
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}, **({"scale": _scale(kind.scale)} if kind.scale else {})},
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.singular or kind.kind.lower(),
                # The API server stores no empty list: with one, the CRD would look changed at every start.
                **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
                "categories": ["all", "paceline"],
            },
            "versions": [version],
        },
    }


def _scale(paths: ScalePaths) -> dict[str, str]:
    return {"specReplicasPath": paths.spec, "statusReplicasPath": paths.status}


def _column(column: Column) -> dict[str, Any]:
    rendered: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description:
        rendered["description"] = column.description
    if column.priority:
        rendered["priority"] = column.priority
    return rendered
