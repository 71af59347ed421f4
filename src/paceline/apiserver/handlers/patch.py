"""Patches: how each sort of them changes an object, and what is said about one that does not fit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from paceline.apimachinery.fields.typed import go_text
from paceline.apimachinery.meta import Object
from paceline.apimachinery.patch.json_patch import MAX_OPERATIONS, Unfit, apply_operations, merge
from paceline.apimachinery.patch.strategic_merge import Strategic
from paceline.apimachinery.scheme import Resource
from paceline.apiserver import status_errors
from paceline.apiserver.encoding.request_body import APPLY_YAML, content_type, duplicate_fields, not_a_map, read_json
from paceline.apiserver.http_types import HttpRequest
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
