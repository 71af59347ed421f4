"""Patches: JSON patch, merge patch, strategic merge patch and server-side apply."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from paceline.apimachinery.fields.apply import AppliedConfig, ApplyConflict, apply, named_author, note_last_applied
from paceline.apimachinery.fields.fieldset import spell
from paceline.apimachinery.fields.managed_fields import APPLY, from_wire, to_wire
from paceline.apimachinery.fields.typed import faults
from paceline.apimachinery.json_patch import MAX_OPERATIONS, PatchFailed, apply_operations, merge
from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.scheme import Resource
from paceline.apimachinery.strategic_merge import Strategic
from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.encoding.request_body import (
    APPLY_YAML,
    check_object,
    content_type,
    duplicate_warnings,
    read_applied,
    read_json,
)
from paceline.apiserver.http_types import HttpRequest, Warnings, WriteOptions
from paceline.apiserver.managed_fields import FieldTracker, author_of, ignored_paths
from paceline.apiserver.paths import Target
from paceline.errors import BadRequest

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
_SUPPORTED = (JSON_PATCH, MERGE, STRATEGIC, APPLY_YAML)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A decoded patch: `apply` returns the patched object."""

    apply: Callable[[Object], Any]
    # Warnings about duplicate fields.
    duplicates: Warnings = ()


def check_patch_type(request: HttpRequest, resource: Resource) -> None:
    """Raise UnsupportedMediaType if the kind does not support this type of patch."""
    # Only the schemas of built-in kinds specify how lists are merged.
    supported = [name for name in _SUPPORTED if resource.is_builtin or name != STRATEGIC]
    if content_type(request) not in supported:
        raise status_errors.unsupported_media_type(", ".join(supported))


def read_patch(request: HttpRequest, resource: Resource, components: Mapping[str, Any]) -> Patch:
    media_type = content_type(request)
    body = read_json(request.body, "the patch")
    if media_type == JSON_PATCH:
        operations = _operations(body)
        return Patch(apply=lambda old: _apply_json_patch(old, operations))
    if body is None and media_type == STRATEGIC:
        body = {}
    check_object(body, "the patch")
    duplicates = duplicate_warnings(request.body, body)
    if media_type == MERGE:
        return Patch(duplicates=duplicates, apply=lambda old: merge(old, body))
    strategic = Strategic(components)
    fields = {name: value for name, value in body.items() if name not in {"apiVersion", "kind"}}

    def apply_strategic(old: Object) -> Any:
        try:
            return strategic.apply(old, fields, resource.schema)
        except PatchFailed as error:
            raise status_errors.bad_request(str(error)) from error

    return Patch(duplicates=duplicates, apply=apply_strategic)


def _operations(body: Any) -> list[Any]:
    operations: Any = [] if body is None else body
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise status_errors.bad_request("a JSON patch must be a list of operations")
    if len(operations) > MAX_OPERATIONS:
        message = f"a JSON patch may have {MAX_OPERATIONS} operations, not {len(operations)}"
        raise status_errors.too_large(message)
    return operations


def _apply_json_patch(old: Object, operations: list[Any]) -> Any:
    try:
        return apply_operations(old, operations)
    except PatchFailed as error:
        message = f"the JSON patch cannot be applied: {error}"
        status = status_errors.Status(code=422, reason="Invalid", message=message, details={})
        raise status_errors.StatusError(status) from error
    except BadRequest as error:
        raise status_errors.bad_request(str(error)) from error


class ApplyHandler:
    def __init__(self, tracking: FieldTracker) -> None:
        self._tracking = tracking

    def read(self, request: HttpRequest, target: Target, options: WriteOptions) -> tuple[AppliedConfig, Warnings]:
        """Return the applied configuration, and a warning for each duplicate key."""
        obj, duplicates = read_applied(request.body)
        if duplicates and options.validation == "Strict":
            raise status_errors.bad_request(f"the applied configuration has duplicate keys: {', '.join(duplicates)}")
        self._check(obj, target)
        author = author_of(request, target, operation=APPLY)
        config = AppliedConfig(author=author, obj=obj, force=options.force, ignored=ignored_paths(target))
        return config, duplicates if options.validation == "Warn" else ()

    def _check(self, obj: Object, target: Target) -> None:
        resource = target.resource
        if (obj.get("apiVersion"), obj.get("kind")) != (resource.api_version, resource.kind):
            expected = f"apiVersion {resource.api_version} and kind {resource.kind}"
            raise status_errors.bad_request(f"the applied configuration must have {expected}")
        metadata = obj.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise status_errors.bad_request("metadata.managedFields must not be set")
        if errors := tuple(faults(self._tracking.type_of(resource), obj)):
            raise status_errors.bad_request(f"the applied configuration does not fit the schema: {'; '.join(errors)}")

    def onto(self, live: Object, config: AppliedConfig, target: Target) -> Object:
        metadata = {"name": target.name, **(config.obj.get("metadata") or {})}
        if target.namespace:
            metadata.setdefault("namespace", target.namespace)
        return self._applied(live, replace(config, obj={**config.obj, "metadata": metadata}), target)

    def created(self, config: AppliedConfig, target: Target) -> Object:
        metadata = config.obj.get("metadata") or {}
        if not metadata.get("name"):
            raise status_errors.bad_request(f"metadata.name must be {target.name}, as in the URL")
        if uid := metadata.get("uid"):
            reason = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise status_errors.conflict(target.resource.plural, target.name, reason, group=target.resource.group)
        obj = self._applied(None, config, target)
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": ""}}

    def _applied(self, live: Object | None, config: AppliedConfig, target: Target) -> Object:
        object_type = self._tracking.type_of(target.resource)
        managed = from_wire(live["metadata"].get("managedFields")) if live else {}
        try:
            new, managed = apply(object_type, live, managed, config=config, now=self._tracking.now)
        except ApplyConflict as error:
            causes = tuple(
                {
                    "reason": "FieldManagerConflict",
                    "message": f"conflict with {named_author(clash.author)}",
                    "field": spell(clash.path),
                }
                for clash in error.conflicts
            )
            raise status_errors.apply_conflict(str(error), causes) from error
        except BadRequest as error:
            raise status_errors.bad_request(f"failed to merge {name_of(config.obj)}: {error}") from error
        new = object_strategy.read(orjson.dumps(note_last_applied(new, config)))
        if managed:
            new["metadata"]["managedFields"] = to_wire(managed)
        return new
