"""CustomResourceDefinitions: the resources that they define, and the validation of their objects."""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from paceline.apimachinery.field_errors import duplicate, invalid
from paceline.apimachinery.meta import Object, annotations_of, has_condition, is_deleting, name_of, uid_of
from paceline.apimachinery.scheme import Column, Lookup, Resource, ScalePaths, no_defaults, no_faults
from paceline.errors import Fault

GROUP, KIND, PLURAL = "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
ESTABLISHED, NAMES_ACCEPTED, TERMINATING = "Established", "NamesAccepted", "Terminating"
MAX_REPLICAS = 2**31 - 1
# The annotation of definitions whose rules the embedded API server checks by its own code.
SERVERS_OWN = "paceline.dev/owner"

# For old definitions without a schema: it allows everything.
_ANY_OBJECT: Mapping[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY = {"alpha": 1, "beta": 2, None: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedKind:
    """A kind that Paceline defines: its definition, and its rules that a definition cannot express."""

    resource: Resource
    definition: Object


def is_served(definition: Object) -> bool:
    """Return whether the objects of a definition are served."""
    return has_condition(definition, ESTABLISHED)


def fingerprint(definition: Object) -> tuple[object, ...]:
    """Return a small value that changes whenever the resources of a definition do."""
    generation = definition["metadata"].get("generation")
    names = repr((definition.get("status") or {}).get("acceptedNames"))
    return name_of(definition), uid_of(definition), generation, names, is_served(definition), is_deleting(definition)


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Return a sort key that puts the preferred version first: v2, v1, v1beta1, v1alpha1, others."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (0, 0, 0, version)
    major, stability, minor = match.groups()
    return (-_STABILITY[stability], -int(major), -int(minor or 0), version)


def versions_of(definition: Object) -> list[Object]:
    """Return the versions of a definition, which need not be valid."""
    spec = definition.get("spec")
    versions = spec.get("versions") if isinstance(spec, dict) else None
    return [version for version in versions if isinstance(version, dict)] if isinstance(versions, list) else []


def schema_of(version: Object) -> Mapping[str, Any]:
    """Return the schema of one version."""
    schema: Mapping[str, Any] = (version.get("schema") or {}).get("openAPIV3Schema") or _ANY_OBJECT
    return schema


def resources_of(definition: Object, shipped: Mapping[tuple[str, str], ShippedKind]) -> tuple[Resource, ...]:
    """Return one resource per served version of a definition, the preferred version first."""
    spec, versions = definition["spec"], versions_of(definition)
    kind = shipped.get((spec["group"], spec["names"]["kind"]))
    stored = next((str(version["name"]) for version in versions if version.get("storage")), "")
    resources = (
        replace(_resource(definition, version, kind), is_shared=len(versions) > 1, stored_version=stored)
        for version in versions
        if version.get("served")
    )
    return tuple(sorted(resources, key=lambda resource: version_rank(resource.version)))


def _resource(definition: Object, version: Object, kind: ShippedKind | None) -> Resource:
    spec = definition["spec"]
    names = (definition.get("status") or {}).get("acceptedNames") or spec["names"]
    subresources, schema = version.get("subresources") or {}, schema_of(version)
    resource = Resource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or "",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        namespaced=spec.get("scope") != "Cluster",
        subresources=tuple(name for name in ("status", "scale") if subresources.get(name) is not None),
        verbs=tuple(verb for verb in _VERBS if verb != "create" or not is_deleting(definition)),
        schema_name=f"{'.'.join(reversed(spec['group'].split('.')))}.{version['name']}.{names['kind']}",
        schema=schema,
        is_structural=True,
        scale=_scale(subresources.get("scale")),
        selectable=tuple(str(field["jsonPath"])[1:] for field in version.get("selectableFields") or ()),
        columns=tuple(map(_column, version.get("additionalPrinterColumns") or ())),
    )
    return _with_schema_rules(resource) if kind is None else _with_shipped_rules(resource, definition, kind)


def _with_schema_rules(resource: Resource) -> Resource:
    """Return a resource with the rules that its schema implies; a search in a large schema takes milliseconds."""
    schema = resource.schema
    return replace(
        resource,
        check=partial(list_faults, schema=schema) if _mentions(schema, "x-kubernetes-list-type") else no_faults,
        default=partial(fill_defaults, schema=schema) if _mentions(schema, "default") else no_defaults,
    )


def _with_shipped_rules(resource: Resource, definition: Object, kind: ShippedKind) -> Resource:
    """Return a resource with the rules of a shipped kind, and with its schema unless the definition was changed."""
    shipped = kind.resource
    if definition["spec"]["versions"] == kind.definition["spec"]["versions"]:
        resource = replace(resource, schema=shipped.schema, is_structural=shipped.is_structural)
    return replace(
        resource,
        check=shipped.check,
        check_change=shipped.check_change,
        default=shipped.default,
        warn=shipped.warn,
    )


def _scale(wire: Object | None) -> ScalePaths | None:
    if wire is None:
        return None
    spec, status = str(wire["specReplicasPath"]), str(wire["statusReplicasPath"])
    return ScalePaths(spec=spec, status=status, selector=str(wire.get("labelSelectorPath") or ""))


def _column(wire: Object) -> Column:
    return Column(
        name=wire["name"],
        path=wire["jsonPath"],
        type=wire["type"],
        format=wire.get("format") or "",
        description=wire.get("description") or "",
        priority=int(wire.get("priority") or 0),
    )


def fill_defaults(value: Any, schema: Mapping[str, Any]) -> None:
    """Set, in place, the defaults of a schema; null counts as missing unless it is allowed."""
    if isinstance(value, list):
        items = schema.get("items")
        for item in value if isinstance(items, Mapping) else ():
            fill_defaults(item, items or {})
    if not isinstance(value, dict):
        return
    fields: Mapping[str, Any] = schema.get("properties") or {}
    for name, inner in fields.items():
        if "default" in inner and (name not in value or (value[name] is None and not inner.get("nullable"))):
            value[name] = deepcopy(inner["default"])
    additional = schema.get("additionalProperties")
    for name, item in value.items():
        inner = fields.get(name, additional)
        if isinstance(inner, Mapping):
            fill_defaults(item, inner)


def _mentions(schema: Any, keyword: str) -> bool:
    """Return whether a schema contains a keyword; a field of that name counts too, which does no harm."""
    if isinstance(schema, Mapping):
        return keyword in schema or any(_mentions(inner, keyword) for inner in schema.values())
    return isinstance(schema, list) and any(_mentions(inner, keyword) for inner in schema)


def unenforced(definition: Object, _lookup: Lookup | None) -> tuple[str, ...]:
    """Return a warning for every version with CEL rules, which are stored but not enforced."""
    if SERVERS_OWN in annotations_of(definition):
        return ()
    return tuple(
        f"spec.versions[{index}].schema.openAPIV3Schema: x-kubernetes-validations are stored but not enforced here"
        for index, version in enumerate(versions_of(definition))
        if _mentions(schema_of(version), "x-kubernetes-validations")
    )


def list_faults(obj: Object, _lookup: Lookup, *, schema: Mapping[str, Any]) -> tuple[Fault, ...]:
    """Return a fault for every repeated item of a list with list type `set` or `map`."""
    return tuple(_list_faults(obj, schema, ""))


def _list_faults(value: Any, schema: Any, path: str) -> Iterator[Fault]:
    if not isinstance(schema, Mapping):
        return
    if isinstance(value, dict):
        fields, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, inner in value.items():
            inner_path = f"{path}[{name}]" if name not in fields else f"{path}.{name}" if path else name
            yield from _list_faults(inner, fields.get(name, additional), inner_path)
    elif isinstance(value, list):
        yield from _duplicates(value, schema, path)
        for index, inner in enumerate(value):
            yield from _list_faults(inner, schema.get("items"), f"{path}[{index}]")


def _duplicates(items: list[Any], schema: Mapping[str, Any], path: str) -> Iterator[Fault]:
    list_type = schema.get("x-kubernetes-list-type")
    if list_type not in {"map", "set"}:
        return
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    taken: set[str] = set()
    for index, item in enumerate(items):
        identity = {key: item[key] for key in keys if key in item} if list_type == "map" else item
        # The type counts too: 1, "1" and True are different items.
        text = repr(identity)
        if text in taken:
            yield duplicate(f"{path}[{index}]", identity)
        taken.add(text)


def value_at(obj: Any, path: str) -> Any:
    """Return the value at a simple path such as `.spec.replicas`, or None."""
    for step in path[1:].split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def scale_faults(obj: Object, paths: ScalePaths, *, status: bool = False) -> Iterator[Fault]:
    """Yield the faults of a replica count, in the spec or in the status."""
    path = paths.status if status else paths.spec
    *parents, name = path[1:].split(".")
    holder: Any = obj
    for parent in parents:
        holder = holder.get(parent, {})
        if not isinstance(holder, dict):
            yield invalid(path, 0, f"{parent} must be an object")
            return
    value = holder.get(name)
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        yield invalid(path, 0, "must be an integer")
    elif not 0 <= value <= MAX_REPLICAS:
        yield invalid(path, value, f"must be between 0 and {MAX_REPLICAS}, inclusive")
