"""The rules of CustomResourceDefinitions, in the words of Kubernetes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from paceline.apimachinery.crd.crd import ESTABLISHED, holds, schema_of, unenforced, versions_of
from paceline.apimachinery.crd.structural_schema import schema_faults
from paceline.apimachinery.field_errors import FieldFault, Problem, forbidden, invalid, required, unsupported
from paceline.apimachinery.meta import Object, annotations_of, is_deleting, name_of
from paceline.apimachinery.name_validation import service_problem, subdomain_problem
from paceline.apimachinery.scheme import Column, Lookup, Resource
from paceline.errors import Fault

_COLUMNS = (Column(name="Created At", path=".metadata.creationTimestamp"),)
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_APPROVED = "api-approved.kubernetes.io"
_PROTECTED = ("k8s.io", "kubernetes.io")
_IMMUTABLE = "field is immutable"
_SIMPLE_PATH = re.compile(r"\.\S")
_PLAIN_PATH = re.compile(r"(\.[A-Za-z_][A-Za-z0-9_-]*)+")
# Where Kubernetes looks for a part that all versions have in common.
_SHARED = {
    "schema": "spec.validation",
    "subresources": "spec.subresources",
    "additionalPrinterColumns": "spec.additionalPrinterColumns",
    "selectableFields": "spec.selectableFields",
}


def ruled(resource: Resource) -> Resource:
    """Give the kind of definitions its rules, and the column that people expect."""
    rules: dict[str, Any] = {"check": faults, "check_change": change_faults, "default": default, "warn": warnings}
    return replace(resource, columns=_COLUMNS, **rules)


def default(obj: Object) -> None:
    """Fill in the names and the status that a definition has from the start."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    spec.setdefault("conversion", {"strategy": "None"})
    names = spec.setdefault("names", {})
    kind = names.get("kind") if isinstance(names, dict) else None
    if isinstance(kind, str) and kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    storage = [str(each.get("name")) for each in versions_of(obj) if each.get("storage")]
    status = obj.get("status") or {"acceptedNames": {"kind": "", "plural": ""}}
    stored = list(status.get("storedVersions") or ())
    if wanted := [each for each in storage[:1] if each not in stored]:
        status = {**status, "storedVersions": [*stored, *wanted]}
    obj["status"] = status


def faults(obj: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find everything that is wrong with a definition."""
    spec: Mapping[str, Any] = obj.get("spec") or {}
    found = [
        *_name_faults(obj, spec),
        *_approval_faults(obj, str(spec.get("group") or "")),
        *_version_faults(spec),
        *_names_faults(spec.get("names") or {}),
        *_conversion_faults(spec.get("conversion") or {}),
    ]
    if spec.get("preserveUnknownFields"):
        hint = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        found.append(invalid("spec.preserveUnknownFields", value=True, hint=hint))
    return tuple(found)


def change_faults(new: Object, old: Object) -> tuple[Fault, ...]:
    """Find what may not change: the names that others know a kind by, and versions that are still stored."""
    said, before = new["spec"], old["spec"]
    found: list[Fault] = []
    wanted, known = (said.get("names") or {}), (before.get("names") or {})
    fixed = [("spec.group", said.get("group"), before.get("group"))]
    fixed.append(("spec.names.plural", wanted.get("plural"), known.get("plural")))
    if holds(old, ESTABLISHED):
        fixed.append(("spec.scope", said.get("scope"), before.get("scope")))
        fixed.append(("spec.names.kind", wanted.get("kind"), known.get("kind")))
    found.extend(invalid(path, value, _IMMUTABLE) for path, value, was in fixed if value != was)
    present = {each.get("name") for each in versions_of(new)}
    for index, name in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if name not in present:
            hint = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            found.append(invalid(f"status.storedVersions[{index}]", name, hint))
    return tuple(found) if not is_deleting(new) else ()


def warnings(obj: Object) -> tuple[str, ...]:
    """Say what of a definition has no effect here."""
    return unenforced(obj)


def _name_faults(obj: Object, spec: Mapping[str, Any]) -> Iterator[Fault]:
    group = str(spec.get("group") or "")
    plural = str((spec.get("names") or {}).get("plural") or "")
    is_new = not (obj.get("status") or {}).get("conditions")
    if is_new and (name := name_of(obj)) and name != f"{plural}.{group}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield required("spec.group")
    elif wrong := subdomain_problem(group):
        yield invalid("spec.group", group, wrong)
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope")
    if not scope:
        yield required("spec.scope")
    elif scope not in {"Cluster", "Namespaced"}:
        yield unsupported("spec.scope", scope, ("Cluster", "Namespaced"))


def _approval_faults(obj: Object, group: str) -> Iterator[Fault]:
    is_protected = any(group == each or group.endswith(f".{each}") for each in _PROTECTED)
    if is_protected and not annotations_of(obj).get(_APPROVED):
        where = "https://github.com/kubernetes/enhancements/pull/1111"
        hint = f'protected groups must have approval annotation "{_APPROVED}", see {where}'
        yield required(f"metadata.annotations[{_APPROVED}]", hint)


def _version_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    versions: list[Object] = spec.get("versions") or []
    names = [str(each.get("name") or "") for each in versions]
    if len(set(names)) != len(names):
        yield invalid("spec.versions", names, "must contain unique version names")
    if sum(bool(each.get("storage")) for each in versions) != 1:
        yield invalid("spec.versions", spec.get("versions"), "must have exactly one version marked as storage version")
    if not any(each.get("storage") for each in versions):
        yield FieldFault("status.storedVersions", None, "must have at least one stored version")
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if wrong := service_problem(names[index]):
            yield invalid(f"{path}.name", names[index], wrong)
        if version.get("deprecationWarning") and not version.get("deprecated"):
            hint = "can only be set for deprecated versions"
            yield invalid(f"{path}.deprecationWarning", version["deprecationWarning"], hint)
        for part, check in _PARTS.items():
            where = part_path(versions, index, part)
            if where is not None:
                yield from check(version, where)


def part_path(versions: list[Object], index: int, part: str) -> str | None:
    """Tell where a part of a version is spoken of; None when it was with the first, for all have it in common."""
    said = versions[index].get(part)
    is_shared = bool(said) and all(each.get(part) == said for each in versions)
    if is_shared:
        return None if index else _SHARED[part]
    return f"spec.versions[{index}].{part}"


def _schema_part(version: Object, path: str) -> Iterator[Fault]:
    if not (version.get("schema") or {}).get("openAPIV3Schema"):
        yield required(f"{path}.openAPIV3Schema")
        return
    wrong = schema_faults(schema_of(version), f"{path}.openAPIV3Schema")
    yield from wrong


def _columns_part(version: Object, path: str) -> Iterator[Fault]:
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        where = f"{path}[{index}]"
        if not column.get("name"):
            yield required(f"{where}.name")
        sort, of_sorts = column.get("type"), f"must be one of {','.join(_COLUMN_TYPES)}"
        if not sort:
            yield required(f"{where}.type", of_sorts)
        elif sort not in _COLUMN_TYPES:
            yield invalid(f"{where}.type", sort, of_sorts)
        if (form := column.get("format")) and form not in _COLUMN_FORMATS:
            yield invalid(f"{where}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
        yield from _path_faults(column.get("jsonPath"), f"{where}.JSONPath")


def _path_faults(path: Any, where: str) -> Iterator[Fault]:
    if not path:
        yield required(where)
    elif not _SIMPLE_PATH.match(str(path)):
        yield invalid(where, path, "must be a simple json path starting with .")


def _subresources_part(version: Object, path: str) -> Iterator[Fault]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for name, roots in (("specReplicasPath", (".spec",)), ("statusReplicasPath", (".status",))):
        where, said = f"{path}.scale.{name}", str(scale.get(name) or "")
        if wrong := tuple(_path_faults(said, where)):
            yield from wrong
        elif not said.startswith(f"{roots[0]}."):
            yield invalid(where, said, f"should be a json path under {roots[0]}")
    if said := str(scale.get("labelSelectorPath") or ""):
        where = f"{path}.scale.labelSelectorPath"
        if wrong := tuple(_path_faults(said, where)):
            yield from wrong
        elif not said.startswith((".spec.", ".status.")):
            yield invalid(where, said, "should be a json path under either .spec or .status")


def _selectable_part(version: Object, path: str) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, each in enumerate(version.get("selectableFields") or ()):
        said, where = str(each.get("jsonPath") or ""), f"{path}[{index}].jsonPath"
        if not said:
            yield required(where)
        elif not said.startswith((".", "[")):
            yield invalid(where, said, f"is an invalid path: expected [ or . but got: {said.partition('.')[0]}")
        elif not _PLAIN_PATH.fullmatch(said) or not _is_scalar(schema_of(version), said):
            yield invalid(where, said, "is an invalid path: does not refer to a valid field")
        elif said in seen:
            yield FieldFault(where, said, "", Problem.DUPLICATE)
        seen.add(said)


def _is_scalar(schema: Any, path: str) -> bool:
    steps = path[1:].split(".")
    for step in steps:
        schema = (schema.get("properties") or {}).get(step) or {}
    return steps[0] != "metadata" and schema.get("type") in {"boolean", "integer", "string"}


_PARTS = {
    "schema": _schema_part,
    "additionalPrinterColumns": _columns_part,
    "subresources": _subresources_part,
    "selectableFields": _selectable_part,
}


def _names_faults(names: Mapping[str, Any]) -> Iterator[Fault]:
    for part in ("plural", "singular", "kind", "listKind"):
        said, path = str(names.get(part) or ""), f"spec.names.{part}"
        if not said:
            yield required(path)
        elif part in {"plural", "singular"}:
            if wrong := service_problem(said):
                yield invalid(path, said, wrong)
        elif wrong := service_problem(said.lower()):
            yield invalid(path, said, f"may have mixed case, but should otherwise match: {wrong}")
    for part in ("shortNames", "categories"):
        for index, said in enumerate(names.get(part) or ()):
            if wrong := service_problem(str(said)):
                yield invalid(f"spec.names.{part}[{index}]", said, wrong)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _conversion_faults(conversion: Mapping[str, Any]) -> Iterator[Fault]:
    strategy = conversion.get("strategy")
    if strategy == "Webhook":
        hint = "this cluster calls no webhooks; use None, which changes apiVersion only"
        yield forbidden("spec.conversion.strategy", hint)
    elif strategy not in {None, "", "None"}:
        yield unsupported("spec.conversion.strategy", strategy, ("None", "Webhook"))
