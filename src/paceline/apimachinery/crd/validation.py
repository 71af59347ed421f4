"""Defaults and rules of CustomResourceDefinitions."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from paceline.apimachinery.builtin.validation.values import choice_faults, name_faults
from paceline.apimachinery.crd.crd import ESTABLISHED, schema_of, unenforced, versions_of
from paceline.apimachinery.crd.structural_schema import schema_faults
from paceline.apimachinery.field_errors import FieldFault, duplicate, forbidden, invalid, required
from paceline.apimachinery.meta import Object, annotations_of, has_condition, is_deleting, name_of
from paceline.apimachinery.name_validation import service_problem, subdomain_problem
from paceline.apimachinery.scheme import Column, Lookup, Resource
from paceline.errors import Fault

_COLUMNS = (Column(name="Created At", path=".metadata.creationTimestamp"),)
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_APPROVED = "api-approved.kubernetes.io"
_PROTECTED = (".k8s.io", ".kubernetes.io")
_SIMPLE_PATH = re.compile(r"\.\S")
_FIELD_PATH = re.compile(r"(\.[A-Za-z_][A-Za-z0-9_-]*)+")
# The path under which Kubernetes reports a field that is the same in all versions.
_SHARED = {
    "schema": "spec.validation",
    "subresources": "spec.subresources",
    "additionalPrinterColumns": "spec.additionalPrinterColumns",
    "selectableFields": "spec.selectableFields",
}


def with_crd_rules(resource: Resource) -> Resource:
    """Return the kind CustomResourceDefinition with its rules and columns."""
    return replace(
        resource, columns=_COLUMNS, check=faults, check_change=change_faults, default=default, warn=unenforced
    )


def default(obj: Object) -> None:
    """Set the default names and status of a definition, which need not be valid."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    spec.setdefault("conversion", {"strategy": "None"})
    names = spec.setdefault("names", {})
    kind = names.get("kind") if isinstance(names, dict) else None
    if isinstance(kind, str) and kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    storage = next((str(version.get("name")) for version in versions_of(obj) if version.get("storage")), None)
    status = obj.get("status") or {"acceptedNames": {"kind": "", "plural": ""}}
    stored = list(status.get("storedVersions") or ())
    if storage is not None and storage not in stored:
        status = {**status, "storedVersions": [*stored, storage]}
    obj["status"] = status


def faults(obj: Object, _lookup: Lookup) -> Iterator[Fault]:
    """Yield the faults of a definition."""
    spec = obj.get("spec") or {}
    yield from _name_faults(obj, spec)
    yield from _version_faults(spec)
    yield from _names_faults(spec.get("names") or {})
    yield from _conversion_faults(spec.get("conversion") or {})
    if spec.get("preserveUnknownFields"):
        hint = "must not be true; set x-kubernetes-preserve-unknown-fields in spec.versions[*].schema instead"
        yield invalid("spec.preserveUnknownFields", value=True, hint=hint)


def change_faults(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the faults of an update of a definition."""
    if is_deleting(new):
        return
    immutable = [("group",), ("names", "plural")]
    if has_condition(old, ESTABLISHED):
        immutable += [("scope",), ("names", "kind")]
    for path in immutable:
        old_value, value = old["spec"], new["spec"]
        for step in path:
            old_value, value = (old_value or {}).get(step), (value or {}).get(step)
        if value != old_value:
            yield invalid(f"spec.{'.'.join(path)}", value, "field is immutable")
    present = {version.get("name") for version in versions_of(new)}
    for index, name in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if name not in present:
            hint = f"must stay in spec.versions until no object is stored as {name} and it is removed from this list"
            yield invalid(f"status.storedVersions[{index}]", name, hint)


def _name_faults(obj: Object, spec: Mapping[str, Any]) -> Iterator[Fault]:
    group, scope = str(spec.get("group") or ""), spec.get("scope")
    plural = str((spec.get("names") or {}).get("plural") or "")
    is_new = not (obj.get("status") or {}).get("conditions")
    if is_new and (name := name_of(obj)) and name != f"{plural}.{group}":
        yield invalid("metadata.name", name, f"must be spec.names.plural and spec.group: {plural}.{group}")
    yield from name_faults(group, "spec.group", _group_problem)
    if not scope:
        yield required("spec.scope")
    yield from choice_faults(scope, ("Cluster", "Namespaced"), "spec.scope")
    if f".{group}".endswith(_PROTECTED) and not annotations_of(obj).get(_APPROVED):
        yield required(f"metadata.annotations[{_APPROVED}]", "must be set for groups of Kubernetes")


def _group_problem(group: str) -> str:
    return subdomain_problem(group) or ("" if "." in group else "should be a domain with at least one dot")


def _version_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    versions: list[Object] = spec.get("versions") or []
    names = [str(version.get("name") or "") for version in versions]
    storage_count = sum(bool(version.get("storage")) for version in versions)
    if len(set(names)) != len(names):
        yield invalid("spec.versions", names, "must contain unique version names")
    if storage_count != 1:
        yield invalid("spec.versions", spec.get("versions"), "must have exactly one version marked as storage version")
    if not storage_count:
        yield FieldFault("status.storedVersions", None, "must have at least one stored version")
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if problem := service_problem(names[index]):
            yield invalid(f"{path}.name", names[index], problem)
        if version.get("deprecationWarning") and not version.get("deprecated"):
            hint = "can only be set for deprecated versions"
            yield invalid(f"{path}.deprecationWarning", version["deprecationWarning"], hint)
        for part, check in _PARTS.items():
            where = part_path(versions, index, part)
            if where is not None:
                yield from check(version, where)


def part_path(versions: list[Object], index: int, part: str) -> str | None:
    """Return the path of a field of a version; None if an earlier version with the same value was checked."""
    value = versions[index].get(part)
    if value and all(version.get(part) == value for version in versions):
        return None if index else _SHARED[part]
    return f"spec.versions[{index}].{part}"


def _schema_faults(version: Object, path: str) -> Iterator[Fault]:
    if not (version.get("schema") or {}).get("openAPIV3Schema"):
        yield required(f"{path}.openAPIV3Schema")
    else:
        yield from schema_faults(schema_of(version), f"{path}.openAPIV3Schema")


def _column_faults(version: Object, path: str) -> Iterator[Fault]:
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        where = f"{path}[{index}]"
        if not column.get("name"):
            yield required(f"{where}.name")
        types_hint = f"must be one of {', '.join(_COLUMN_TYPES)}"
        if not column.get("type"):
            yield required(f"{where}.type", types_hint)
        elif column["type"] not in _COLUMN_TYPES:
            yield invalid(f"{where}.type", column["type"], types_hint)
        if column.get("format") and column["format"] not in _COLUMN_FORMATS:
            yield invalid(f"{where}.format", column["format"], f"must be one of {', '.join(_COLUMN_FORMATS)}")
        yield from _path_faults(str(column.get("jsonPath") or ""), f"{where}.JSONPath")


def _path_faults(json_path: str, path: str, *roots: str) -> Iterator[Fault]:
    """Yield the fault of a JSON path that is not simple or not below one of the roots."""
    if not json_path:
        yield required(path)
    elif not _SIMPLE_PATH.match(json_path):
        yield invalid(path, json_path, "must be a simple JSON path that starts with .")
    elif roots and not json_path.startswith(tuple(f"{root}." for root in roots)):
        yield invalid(path, json_path, f"must be a JSON path below {' or '.join(roots)}")


def _subresource_faults(version: Object, path: str) -> Iterator[Fault]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for name, roots in _SCALE_ROOTS.items():
        json_path = str(scale.get(name) or "")
        if json_path or name != "labelSelectorPath":
            yield from _path_faults(json_path, f"{path}.scale.{name}", *roots)


_SCALE_ROOTS = {
    "specReplicasPath": (".spec",),
    "statusReplicasPath": (".status",),
    "labelSelectorPath": (".spec", ".status"),
}


def _selectable_faults(version: Object, path: str) -> Iterator[Fault]:
    taken: set[str] = set()
    for index, field in enumerate(version.get("selectableFields") or ()):
        json_path, where = str(field.get("jsonPath") or ""), f"{path}[{index}].jsonPath"
        if not json_path:
            yield required(where)
        elif not _FIELD_PATH.fullmatch(json_path) or not _is_scalar(schema_of(version), json_path):
            yield invalid(where, json_path, "must be the path of a string, integer or boolean, such as .spec.color")
        elif json_path in taken:
            yield duplicate(where, json_path)
        taken.add(json_path)


def _is_scalar(schema: Any, path: str) -> bool:
    steps = path[1:].split(".")
    for step in steps:
        schema = (schema.get("properties") or {}).get(step) or {}
    return steps[0] != "metadata" and schema.get("type") in {"boolean", "integer", "string"}


_PARTS = {
    "schema": _schema_faults,
    "additionalPrinterColumns": _column_faults,
    "subresources": _subresource_faults,
    "selectableFields": _selectable_faults,
}


def _names_faults(names: Mapping[str, Any]) -> Iterator[Fault]:
    for field in ("plural", "singular", "kind", "listKind"):
        rule = _kind_problem if field in {"kind", "listKind"} else service_problem
        yield from name_faults(str(names.get(field) or ""), f"spec.names.{field}", rule)
    for field in ("shortNames", "categories"):
        for index, name in enumerate(names.get(field) or ()):
            if problem := service_problem(str(name)):
                yield invalid(f"spec.names.{field}[{index}]", name, problem)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _kind_problem(kind: str) -> str:
    return service_problem(kind.lower())


def _conversion_faults(conversion: Mapping[str, Any]) -> Iterator[Fault]:
    strategy = conversion.get("strategy")
    if strategy == "Webhook":
        hint = "this cluster calls no webhooks; use None, which changes apiVersion only"
        yield forbidden("spec.conversion.strategy", hint)
    yield from choice_faults(strategy, ("None", "Webhook"), "spec.conversion.strategy")
