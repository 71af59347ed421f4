"""Patches: how each sort of them changes an object, and what is said about one that does not fit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson

from paceline.apimachinery.fields.apply import AppliedConfig, Clashes, apply, named_author, note_last_applied
from paceline.apimachinery.fields.fieldset import spell
from paceline.apimachinery.fields.managed_fields import APPLY, from_wire, to_wire
from paceline.apimachinery.fields.typed import faults, go_text
from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.patch.json_patch import MAX_OPERATIONS, Unfit, apply_operations, merge
from paceline.apimachinery.patch.strategic_merge import Strategic
from paceline.apimachinery.scheme import Resource
from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.encoding.request_body import (
    APPLY_YAML,
    content_type,
    duplicate_fields,
    not_a_map,
    read_applied,
    read_json,
)
from paceline.apiserver.http_types import HttpRequest, WriteOptions
from paceline.apiserver.managed_fields import FieldTracker, author_of, ignored_paths
from paceline.apiserver.paths import Target
from paceline.errors import BadRequest

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
_KNOWN = (JSON_PATCH, MERGE, STRATEGIC, APPLY_YAML)
_MAX_SHOWN = 20_000
_METADATA = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
# All that Kubernetes says about operations that cannot be carried out; what is wrong follows.
_REJECTED = "the server rejected our request due to an error in our request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A patch that was read."""

    sort: str
    said: Any
    apply: Callable[[Object], Any]
    # What has to be told about how it is written.
    twice: tuple[str, ...] = ()

    def shown(self, new: Any) -> str:
        """Show what came of it, as complaints about it do."""
        if self.sort == STRATEGIC:
            return go_text(self.said)[:_MAX_SHOWN]
        shown = new
        if isinstance(new, dict):
            shown = dict(sorted(new.items()))
            if isinstance(metadata := new.get("metadata"), dict):
                # What a patch touches is shown in the order of names.
                place: Any = str if "metadata" in self.said else _place
                shown["metadata"] = dict(sorted(metadata.items(), key=lambda each: place(each[0])))
        return orjson.dumps(shown).decode()[:_MAX_SHOWN]


def _place(name: str) -> int:
    return _METADATA.index(name) if name in _METADATA else len(_METADATA)


def check_patch_type(request: HttpRequest, resource: Resource) -> None:
    """Refuse a patch of a sort that is not known, or that the kind does not have."""
    sort = content_type(request)
    if sort not in _KNOWN:
        raise status_errors.unpatchable()
    if sort == STRATEGIC and not resource.is_builtin:
        # Only the schemas of Kubernetes' own kinds say how their lists are merged.
        raise status_errors.unsupported_media_type(", ".join(each for each in _KNOWN if each != STRATEGIC))


def read_patch(request: HttpRequest, resource: Resource, components: Mapping[str, Any]) -> Patch:
    """Read a patch that says what shall change."""
    sort = content_type(request)
    said = read_json(request.body, "" if sort == STRATEGIC else "error decoding patch")
    if sort == JSON_PATCH:
        _check_operations(said)
        return Patch(sort=sort, said=said, apply=partial(_fitted, lambda old: apply_operations(old, said)))
    if said is None and sort == STRATEGIC:
        said = {}
    if said is None:
        raise status_errors.bad_request("Invalid JSON Patch")
    if not isinstance(said, dict):
        raise status_errors.bad_request(
            not_a_map(said) if sort == STRATEGIC else f"error decoding patch: {not_a_map(said)}"
        )
    twice = tuple(f'duplicate field "{path}"' for path in duplicate_fields(request.body, said))
    if sort == MERGE:
        return Patch(sort=sort, said=said, twice=twice, apply=lambda old: merge(old, said))
    strategic = Strategic(components)
    parts = {name: value for name, value in said.items() if name not in {"apiVersion", "kind"}}
    apply = partial(_merged, lambda old: strategic.apply(old, parts, resource.schema))
    return Patch(sort=sort, said=said, twice=twice, apply=apply)


def _check_operations(said: Any) -> None:
    start = "error decoding patch: json: cannot unmarshal"
    words = {dict: "object", str: "string", bool: "bool", list: "array"}
    if said is not None and not isinstance(said, list):
        raise status_errors.bad_request(
            f"{start} {words.get(type(said), 'number')} into Go value of type []handlers.jsonPatchOp"
        )
    operations = said or []
    for each in operations:
        if not isinstance(each, dict):
            name = words.get(type(each), "number")
            raise status_errors.bad_request(f"{start} {name} into Go value of type handlers.jsonPatchOp")
    if len(operations) > MAX_OPERATIONS:
        why = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise status_errors.too_large(why)


def _fitted(apply: Callable[[Object], Any], old: Object) -> Any:
    try:
        return apply(old)
    except Unfit as error:
        status = status_errors.Status(code=422, reason="Invalid", message=f"{_REJECTED}: {error}", details={})
        raise status_errors.StatusError(status) from error
    except BadRequest as error:
        raise status_errors.bad_request(str(error)) from error


def _merged(apply: Callable[[Object], Any], old: Object) -> Any:
    try:
        return apply(old)
    except Unfit as error:
        raise status_errors.bad_request(str(error)) from error


class ApplyHandler:
    """Works out what becomes of objects that somebody applies something to."""

    def __init__(self, tracking: FieldTracker) -> None:
        self._tracking = tracking

    def read(
        self, request: HttpRequest, target: Target, options: WriteOptions
    ) -> tuple[AppliedConfig, tuple[str, ...]]:
        """Read what is said, and what has to be told about how it is written."""
        obj, twice = read_applied(request.body)
        if twice and options.validation == "Strict":
            listed = "\n  ".join(twice)
            why = f"error converting YAML to JSON: yaml: unmarshal errors:\n  {listed}"
            raise status_errors.bad_request(f"error strict decoding YAML: {why}")
        self._check(obj, target)
        author = author_of(request, target, operation=APPLY)
        said = AppliedConfig(author=author, obj=obj, force=options.force, ignored=ignored_paths(target))
        return said, twice if options.validation == "Warn" else ()

    def _check(self, obj: Object, target: Target) -> None:
        resource = target.resource
        version, kind = (part if isinstance(part := obj.get(name), str) else "" for name in ("apiVersion", "kind"))
        if (version, kind) != (resource.api_version, resource.kind):
            group, _, short = version.rpartition("/")
            raise status_errors.bad_request(f"invalid object type: {group}/{short}, Kind={kind}")
        metadata = obj.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise status_errors.bad_request("metadata.managedFields must be nil")
        wrong = tuple(faults(self._tracking.type_of(resource), obj))
        if wrong:
            group = f"{resource.group}/{resource.version}, Kind={kind}"
            inner = metadata if isinstance(metadata, dict) else {}
            where = f"{inner.get('namespace') or ''}/{inner.get('name') or ''}; {group}"
            listed = wrong[0] if len(wrong) == 1 else "errors:\n  " + "\n  ".join(wrong)
            raise status_errors.unfit(f"failed to create typed patch object ({where}): {listed}")

    def onto(self, live: Object, said: AppliedConfig, target: Target) -> Object:
        """Give an object with what is said about it, and whose its parts are then."""
        metadata = {"name": target.name, **(said.obj.get("metadata") or {})}
        if target.namespace:
            metadata.setdefault("namespace", target.namespace)
        said = replace(said, obj={**said.obj, "metadata": metadata})
        return self._made(live, said, target)

    def newborn(self, said: AppliedConfig, target: Target) -> Object:
        """Give an object that is only what is said about it."""
        metadata = said.obj.get("metadata") or {}
        name = metadata.get("name")
        if not name:
            why = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
            raise status_errors.bad_request(why)
        if uid := metadata.get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise status_errors.conflict(target.resource.plural, target.name, why, group=target.resource.group)
        made = self._made(None, said, target)
        return {**made, "metadata": {**made["metadata"], "resourceVersion": ""}}

    def _made(self, live: Object | None, said: AppliedConfig, target: Target) -> Object:
        known = self._tracking.type_of(target.resource)
        there = from_wire(live["metadata"].get("managedFields")) if live else {}
        try:
            new, managed = apply(known, live, there, said=said, now=self._tracking.now)
        except Clashes as error:
            causes = tuple(
                {
                    "reason": "FieldManagerConflict",
                    "message": f"conflict with {named_author(clash.author)}",
                    "field": spell(clash.path),
                }
                for clash in error.clashes
            )
            raise status_errors.apply_conflict(str(error), causes) from error
        except BadRequest as error:
            raise status_errors.bad_request(f"failed to merge {name_of(said.obj)}: {error}") from error
        new = object_strategy.read(object_strategy.dumps(note_last_applied(new, said)))
        if managed:
            new["metadata"]["managedFields"] = to_wire(managed)
        return new
