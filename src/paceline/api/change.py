"""What becomes of an object when it is written: the parts that only the server may set."""

from datetime import datetime
from typing import Any

import orjson

from paceline.api.paths import Target
from paceline.api.refusal import bad_request, too_large
from paceline.objects.meta import Object
from paceline.objects.scheme import Resource
from paceline.objects.times import to_wire
from paceline.world import Ids

MAX_OBJECT_BYTES = 1536 * 1024
SUFFIX_LENGTH = 5
_LONGEST_START = 63 - SUFFIX_LENGTH

_SERVERS_OWN = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def is_builtin(resource: Resource) -> bool:
    """Tell whether a kind is one of Kubernetes' own; a few rules differ for them."""
    return resource.schema_name.startswith("io.k8s.")


def counts_generations(resource: Resource) -> bool:
    """Tell whether changes of the spec are counted: for pods and for kinds that are not Kubernetes' own."""
    return not is_builtin(resource) or resource.kind in {"Pod", "CustomResourceDefinition"}


def read(value: bytes) -> Object:
    """Read stored bytes, which are always an object."""
    obj: Object = orjson.loads(value)
    return obj


def write(obj: Object, revision: int) -> bytes:
    """Write an object as of a revision."""
    return orjson.dumps({**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}})


def check_size(obj: Object) -> None:
    """Refuse an object that is larger than one may be."""
    size = len(orjson.dumps(obj))
    if size > MAX_OBJECT_BYTES:
        raise too_large(f"Request entity too large: an object may have {MAX_OBJECT_BYTES} bytes, not {size}")


def identify(obj: Object, target: Target, *, name: str = "") -> None:
    """Set kind and place of an object in place; refuse what says otherwise."""
    resource, metadata = target.resource, obj.setdefault("metadata", {})
    _match_kind(obj, resource)
    said = metadata.get("namespace") or target.namespace
    if said != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if target.namespace:
        metadata["namespace"] = target.namespace
    else:
        metadata.pop("namespace", None)
    if name:
        own = metadata.setdefault("name", name)
        if own != name:
            raise bad_request(f"the name of the object ({own}) does not match the name on the URL ({name})")
    metadata.pop("managedFields", None)
    metadata.pop("selfLink", None)
    for part in ("annotations", "finalizers", "labels", "ownerReferences"):
        # Nothing in it is the same as not being there.
        if part in metadata and metadata[part] in ({}, []):
            del metadata[part]


def _match_kind(obj: Object, resource: Resource) -> None:
    version, kind = obj.get("apiVersion"), obj.get("kind")
    for field, said in (("apiVersion", version), ("kind", kind)):
        if said is not None and not isinstance(said, str):
            raise bad_request(f"the object provided is unrecognized: {field} must be a string")
    if not is_builtin(resource) and not kind:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): Object 'Kind' is missing"
        )
    if version and version != resource.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
        )
    if kind and kind != resource.kind:
        raise bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}')
    obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind


def newborn(obj: Object, resource: Resource, *, now: datetime, ids: Ids) -> Object:
    """Give a new object with what only the server may set; the well-known fields come first."""
    metadata = dict(obj["metadata"])
    if metadata.pop("resourceVersion", ""):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for field in _SERVERS_OWN:
        metadata.pop(field, None)
    start = metadata.get("generateName")
    name = metadata.pop("name", None)
    if not name and isinstance(start, str) and start:
        name = f"{start[:_LONGEST_START]}{ids.suffix(SUFFIX_LENGTH)}"
    first: Object = {"name": name} if name else {}
    first |= {part: metadata.pop(part) for part in ("generateName", "namespace") if part in metadata}
    first["uid"] = ids.uid()
    if counts_generations(resource):
        first["generation"] = 1
    first["creationTimestamp"] = to_wire(now)
    body = {part: value for part, value in obj.items() if part not in {"apiVersion", "kind", "metadata"}}
    if resource.has_status:
        body.pop("status", None)
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {**first, **metadata}, **body}


def successor(old: Object, new: Object, target: Target) -> Object:
    """Give the object that a write through one door leaves: each door changes its own half only."""
    resource = target.resource
    metadata = _carried(old["metadata"], new["metadata"])
    if target.subresource == "status":
        kept = {**old, "metadata": metadata if is_builtin(resource) else old["metadata"]}
        return _with(kept, "status", new.get("status"))
    changed = {**new, "metadata": metadata}
    if target.subresource == "finalize":
        return {**old, "spec": new.get("spec") or {}}
    if (resource.group, resource.kind) == ("", "Namespace"):
        changed = _with(changed, "spec", old.get("spec"))
    if resource.has_status:
        changed = _with(changed, "status", old.get("status"))
    if counts_generations(resource) and _body(changed, resource) != _body(old, resource):
        metadata["generation"] = int(old["metadata"].get("generation") or 0) + 1
    return changed


def _carried(old: Object, new: Object) -> Object:
    carried = {part: value for part, value in new.items() if part not in _SERVERS_OWN}
    own = {part: old[part] for part in _SERVERS_OWN if part in old}
    return {"name": old["name"], **carried, **own}


def _with(obj: Object, part: str, value: Any) -> Object:
    rest = {name: each for name, each in obj.items() if name != part}
    return rest if value is None else {**rest, part: value}


def _body(obj: Object, resource: Resource) -> Object:
    apart = {"metadata", "status"} if resource.has_status else {"metadata"}
    return {part: value for part, value in obj.items() if part not in apart}


def is_same(old: Object, new: Object) -> bool:
    """Tell whether a write would change nothing."""
    return _unversioned(old) == _unversioned(new)


def _unversioned(obj: Object) -> Object:
    metadata = {part: value for part, value in obj["metadata"].items() if part != "resourceVersion"}
    return {**obj, "metadata": metadata}
