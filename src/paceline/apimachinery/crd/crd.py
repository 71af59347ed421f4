"""CustomResourceDefinitions: what they make the server serve.

In     a definition as it is stored, without faults.
Out    one resource per version that it serves.
Never  reads a store or a clock.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from paceline.apimachinery.crd.list_types import list_faults
from paceline.apimachinery.meta import Object, is_deleting, name_of, uid_of
from paceline.apimachinery.scheme import Column, Resource, ScalePaths, no_defaults, no_faults

GROUP, KIND, PLURAL = "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
ESTABLISHED, NAMES_ACCEPTED, TERMINATING = "Established", "NamesAccepted", "Terminating"

# A definition without a schema is not possible any more; one that allows all is.
_ALL: Mapping[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY = {"alpha": 1, "beta": 2, None: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A kind whose author is in this program: what a definition cannot say about it, and the definition."""

    resource: Resource
    definition: Object


def condition_of(definition: Object, kind: str) -> Object:
    """Give one condition of a definition, or nothing."""
    listed = (definition.get("status") or {}).get("conditions") or ()
    return next((dict(each) for each in listed if each.get("type") == kind), {})


def holds(definition: Object, kind: str) -> bool:
    """Tell whether a condition of a definition is true."""
    return condition_of(definition, kind).get("status") == "True"


def is_served(definition: Object) -> bool:
    """Tell whether the objects of a definition can be reached."""
    return holds(definition, ESTABLISHED)


def fingerprint(definition: Object) -> tuple[object, ...]:
    """Give what the resources of a definition depend on, without its bulk."""
    generation = definition["metadata"].get("generation")
    names = repr((definition.get("status") or {}).get("acceptedNames"))
    return name_of(definition), uid_of(definition), generation, names, is_served(definition), is_deleting(definition)


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Rank a version so that the one clients prefer comes first when sorted: v2, v1, v1beta1, v1alpha1, others."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (0, 0, 0, version)
    major, stability, minor = match.groups()
    return (-_STABILITY[stability], -int(major), -int(minor or 0), version)


def versions_of(definition: Object) -> list[Object]:
    """Give the versions of a definition."""
    spec = definition.get("spec")
    said = spec.get("versions") if isinstance(spec, dict) else None
    # Asked before it is checked, so nothing is known yet about what is where.
    return [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []


def resources_of(definition: Object, known: Mapping[tuple[str, str], Known]) -> tuple[Resource, ...]:
    """Give what a definition makes the server serve: one resource per served version, the preferred one first."""
    spec, versions = definition["spec"], versions_of(definition)
    author = known.get((spec["group"], spec["names"]["kind"]))
    stored = next((str(each["name"]) for each in versions if each.get("storage")), "")
    made = (
        replace(_resource(definition, version, author), is_shared=len(versions) > 1, stored_version=stored)
        for version in versions
        if version.get("served")
    )
    return tuple(sorted(made, key=lambda each: version_rank(each.version)))


def _resource(definition: Object, version: Object, author: Known | None) -> Resource:
    spec = definition["spec"]
    # Those that others do not have already.
    names = (definition.get("status") or {}).get("acceptedNames") or spec["names"]
    parts = version.get("subresources") or {}
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
        subresources=tuple(name for name in ("status", "scale") if parts.get(name) is not None),
        verbs=_verbs(definition),
        schema_name=f"{'.'.join(reversed(spec['group'].split('.')))}.{version['name']}.{names['kind']}",
        schema=schema_of(version),
        is_structural=True,
        scale=_scale(parts.get("scale")),
        selectable=tuple(str(each["jsonPath"])[1:] for each in version.get("selectableFields") or ()),
        columns=tuple(map(_column, version.get("additionalPrinterColumns") or ())),
    )
    if author is not None:
        return _attached(resource, definition, author)
    schema = resource.schema
    return replace(resource, check=_check_of(schema), default=_default_of(schema))


def _attached(resource: Resource, definition: Object, author: Known) -> Resource:
    """Add what only the kind's author knows. Its own words about its fields count while the definition is its own."""
    said = author.resource
    changes: dict[str, Any] = {
        "check": said.check,
        "check_change": said.check_change,
        "default": said.default,
        "mutable": said.mutable,
        "warn": said.warn,
    }
    if definition["spec"]["versions"] == author.definition["spec"]["versions"]:
        changes |= {"schema": said.schema, "is_structural": said.is_structural}
    return replace(resource, **changes)


def _verbs(definition: Object) -> tuple[str, ...]:
    all_verbs = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
    return tuple(verb for verb in all_verbs if verb != "create" or not is_deleting(definition))


def schema_of(version: Object) -> Mapping[str, Any]:
    """Give the schema of one version."""
    schema: Mapping[str, Any] = (version.get("schema") or {}).get("openAPIV3Schema") or _ALL
    return schema


def _scale(said: Object | None) -> ScalePaths | None:
    if said is None:
        return None
    spec, status = str(said["specReplicasPath"]), str(said["statusReplicasPath"])
    return ScalePaths(spec=spec, status=status, selector=str(said.get("labelSelectorPath") or ""))


def _column(said: Object) -> Column:
    return Column(
        name=said["name"],
        path=said["jsonPath"],
        type=said["type"],
        format=said.get("format") or "",
        description=said.get("description") or "",
        priority=int(said.get("priority") or 0),
    )


def _default_of(schema: Mapping[str, Any]) -> Any:
    return partial(_fill, schema=schema) if _has(schema, "default") else no_defaults


def _check_of(schema: Mapping[str, Any]) -> Any:
    return partial(list_faults, schema=schema) if _has(schema, "x-kubernetes-list-type") else no_faults


def _fill(obj: Object, *, schema: Mapping[str, Any]) -> None:
    fill_defaults(obj, schema)


def fill_defaults(value: Any, schema: Mapping[str, Any]) -> None:
    """Fill in, in place, what a schema gives where nothing was said; a null that may not be counts as nothing."""
    if isinstance(value, list):
        items = schema.get("items")
        for each in value if isinstance(items, Mapping) else ():
            fill_defaults(each, items or {})
    if not isinstance(value, dict):
        return
    fields: Mapping[str, Any] = schema.get("properties") or {}
    for name, inner in fields.items():
        said = value.get(name)
        if "default" in inner and (name not in value or (said is None and not inner.get("nullable"))):
            value[name] = deepcopy(inner["default"])
    others = schema.get("additionalProperties")
    for name, each in value.items():
        inner = fields.get(name, others)
        if isinstance(inner, Mapping):
            fill_defaults(each, inner)


def _has(schema: Any, word: str) -> bool:
    """Tell whether a schema says a word anywhere; a field of that name counts too, which does no harm."""
    if isinstance(schema, Mapping):
        return word in schema or any(_has(each, word) for each in schema.values())
    return isinstance(schema, list) and any(_has(each, word) for each in schema)


def unenforced(definition: Object) -> tuple[str, ...]:
    """Name the versions whose rules in CEL are kept but not run here."""
    return tuple(
        f"spec.versions[{index}].schema.openAPIV3Schema: x-kubernetes-validations are stored but not enforced here"
        for index, version in enumerate(versions_of(definition))
        if _has(schema_of(version), "x-kubernetes-validations")
    )
