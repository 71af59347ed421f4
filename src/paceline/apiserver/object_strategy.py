"""Preparation of objects for storage: the fields that only the server may set."""

from datetime import datetime
from typing import Any

import orjson

from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource
from paceline.apimachinery.timestamps import to_wire
from paceline.apiserver.paths import Target, key_for
from paceline.apiserver.status_errors import bad_request, too_large
from paceline.effects import Ids
from paceline.store.store import Store

MAX_OBJECT_BYTES = 1536 * 1024
SUFFIX_LENGTH = 5
_MAX_GENERATE_NAME = 63 - SUFFIX_LENGTH

_DUPLICATE_OWNERS = "metadata.ownerReferences has duplicate entries, which were removed; duplicate UIDs: "
_SERVER_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


_COUNTED_KINDS = frozenset({"CustomResourceDefinition", "EndpointSlice", "Pod", "PriorityClass"})


def counts_generations(resource: Resource) -> bool:
    """Return whether metadata.generation counts the changes of the spec."""
    return not resource.is_builtin or resource.kind in _COUNTED_KINDS


def read(value: bytes) -> Object:
    obj: Object = orjson.loads(value)
    return obj


def split_managed_fields(obj: Object) -> tuple[Object, Any]:
    """Return an object without its managed fields, and these: they are large."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj, None
    other_fields = {part: value for part, value in metadata.items() if part != "managedFields"}
    return {**obj, "metadata": other_fields}, metadata["managedFields"]


def restore_managed_fields(obj: Object, entries: Any) -> None:
    if entries:
        obj["metadata"]["managedFields"] = entries


def write(obj: Object, revision: int | str) -> bytes:
    """Return the bytes to store; they take no more memory than they are long."""
    encoded = orjson.dumps({**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}})
    # orjson keeps the buffer in which it wrote, whose size is a power of two. A copy has the right size.
    return bytes(memoryview(encoded))


def check_size(obj: Object) -> None:
    size = len(orjson.dumps(obj))
    if size > MAX_OBJECT_BYTES:
        raise too_large(f"an object may have {MAX_OBJECT_BYTES} bytes, not {size}")


def set_type_and_namespace(obj: Object, target: Target, *, name: str = "") -> None:
    """Set apiVersion, kind and namespace in place; raise BadRequest if namespace or name do not match."""
    metadata = obj.setdefault("metadata", {})
    obj["apiVersion"], obj["kind"] = target.resource.api_version, target.resource.kind
    namespace = metadata.get("namespace") or target.namespace
    # Like Kubernetes, ignore the namespace of cluster-scoped objects.
    if target.namespace and namespace != target.namespace:
        raise bad_request(f"metadata.namespace is {namespace}, but the URL says {target.namespace}")
    if target.namespace:
        metadata["namespace"] = target.namespace
    else:
        metadata.pop("namespace", None)
    if name:
        object_name = metadata.get("name")
        if not object_name:
            raise bad_request(f"metadata.name must be {name}, as in the URL")
        if object_name != name:
            raise bad_request(f"metadata.name is {object_name}, but the URL says {name}")
    metadata.pop("selfLink", None)
    for part in ("annotations", "finalizers", "labels", "ownerReferences"):
        # Empty and missing are the same.
        if part in metadata and metadata[part] in ({}, []):
            del metadata[part]


def type_problem(obj: Object, resource: Resource) -> str:
    """Return why an object is not of its resource's apiVersion and kind, or "" (empty ones are fine)."""
    version, kind = obj.get("apiVersion") or resource.api_version, obj.get("kind") or resource.kind
    if (version, kind) == (resource.api_version, resource.kind):
        return ""
    return f"the object must be a {resource.api_version} {resource.kind}, not a {version} {kind}"


def dedup_owner_refs(metadata: Object) -> tuple[str, ...]:
    """Remove duplicate owner references in place, and return the warnings."""
    owners = metadata.get("ownerReferences")
    if not isinstance(owners, list) or len(owners) < 2:
        return ()
    unique: list[Any] = []
    duplicates: list[str] = []
    seen: set[str] = set()
    for owner in owners:
        # Compare encoded references: there may be tens of thousands.
        encoded = orjson.dumps(owner, option=orjson.OPT_SORT_KEYS).decode()
        if encoded not in seen:
            seen.add(encoded)
            unique.append(owner)
        elif isinstance(owner, dict):
            duplicates.append(str(owner.get("uid") or ""))
    metadata["ownerReferences"] = unique
    return (_DUPLICATE_OWNERS + ", ".join(dict.fromkeys(duplicates)),) if duplicates else ()


def prepare_for_create(obj: Object, resource: Resource, *, now: datetime, ids: Ids) -> Object:
    """Return a new object with the fields of the server, the well-known ones first."""
    metadata = dict(obj["metadata"])
    if metadata.pop("resourceVersion", ""):
        raise bad_request("metadata.resourceVersion must not be set on objects to be created")
    for field in _SERVER_FIELDS:
        # Without a generation counter, keep the given value.
        if field != "generation" or counts_generations(resource):
            metadata.pop(field, None)
    start = metadata.get("generateName")
    name = metadata.pop("name", None)
    if not name and isinstance(start, str) and start:
        name = f"{start[:_MAX_GENERATE_NAME]}{ids.suffix(SUFFIX_LENGTH)}"
    first: Object = {"name": name} if name else {}
    first |= {part: metadata.pop(part) for part in ("generateName", "namespace") if part in metadata}
    first["uid"] = ids.uid()
    if counts_generations(resource):
        first["generation"] = 1
    first["creationTimestamp"] = to_wire(now)
    body = {part: value for part, value in obj.items() if part not in {"apiVersion", "kind", "metadata"}}
    # A new node may have a status; those of other kinds are written separately.
    if resource.has_status and not (resource.is_builtin and resource.kind == "Node"):
        body.pop("status", None)
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {**first, **metadata}, **body}


def prepare_for_update(old: Object, new: Object, target: Target) -> Object:
    """Return the object after a write; every subresource changes only its own part."""
    resource = target.resource
    metadata = _carried(old["metadata"], new["metadata"])
    if target.subresource == "status":
        if not resource.is_builtin:
            # Besides the status, only managed fields change here.
            metadata = {part: value for part, value in old["metadata"].items() if part != "managedFields"}
            restore_managed_fields({"metadata": metadata}, new["metadata"].get("managedFields"))
        unchanged = {**old, "metadata": metadata}
        return _with(unchanged, "status", _status(old, new, resource))
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


def _status(old: Object, new: Object, resource: Resource) -> Any:
    new_status, old_status = new.get("status"), old.get("status") or {}
    if (resource.group, resource.kind) == ("", "Pod") and isinstance(new_status, dict) and "qosClass" in old_status:
        # It depends on the spec, so a status cannot remove it.
        return new_status if new_status.get("qosClass") else {**new_status, "qosClass": old_status["qosClass"]}
    return new_status


def _carried(old: Object, new: Object) -> Object:
    carried = {part: value for part, value in new.items() if part not in _SERVER_FIELDS}
    server_fields = {part: old[part] for part in _SERVER_FIELDS if part in old}
    return {"name": old["name"], **carried, **server_fields}


def _with(obj: Object, part: str, value: Any) -> Object:
    other_parts = {name: item for name, item in obj.items() if name != part}
    return other_parts if value is None else {**other_parts, part: value}


def recount_generation(new: Object, old: Object, resource: Resource) -> None:
    """Set the generation in place, after defaults were applied."""
    if counts_generations(resource):
        generation = int(old["metadata"].get("generation") or 0)
        new["metadata"]["generation"] = generation + (_body(new, resource) != _body(old, resource))


def _body(obj: Object, resource: Resource) -> Object:
    split_managed_fields = {"metadata", "status"} if resource.has_status else {"metadata"}
    return {part: value for part, value in obj.items() if part not in split_managed_fields}


def is_same(old: Object, new: Object) -> bool:
    old_object, new_object = _unversioned(old), _unversioned(new)
    # In Python, true == 1 == 1.0; in JSON these differ.
    return old_object == new_object and _encoded(old_object) == _encoded(new_object)


def _encoded(obj: Object) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)


def _unversioned(obj: Object) -> Object:
    metadata = {part: value for part, value in obj["metadata"].items() if part != "resourceVersion"}
    return {**obj, "metadata": metadata}


def in_version(resource: Resource, value: bytes) -> bytes:
    """Return an encoded object in the version of a resource; only apiVersion differs between versions."""
    # Every stored object starts with its apiVersion, so the usual case costs one comparison.
    if not resource.is_shared or value.startswith(b'{"apiVersion":"%b",' % resource.api_version.encode()):
        return value
    return orjson.dumps({**orjson.loads(value), "apiVersion": resource.api_version})


def lookup(store: Store, resource: Resource | None, namespace: str, name: str) -> Object | None:
    stored = store.get(key_for(resource, namespace, name)) if resource else None
    return read(stored.value) if stored else None
