"""What becomes of an object when it is written: the parts that only the server may set."""

from datetime import datetime
from typing import Any

import orjson

from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource, Scheme
from paceline.apimachinery.timestamps import to_wire
from paceline.apiserver.paths import Target
from paceline.apiserver.status_errors import bad_request, too_large
from paceline.effects import Ids

MAX_OBJECT_BYTES = 1536 * 1024
SUFFIX_LENGTH = 5
_LONGEST_START = 63 - SUFFIX_LENGTH

SCHEME = "pkg/runtime/scheme.go:110"
_TWICE_OWNED = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
_SERVERS_OWN = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


_COUNTED = frozenset({"CustomResourceDefinition", "EndpointSlice", "Pod", "PriorityClass"})


def is_builtin(resource: Resource) -> bool:
    """Tell whether a kind is one of Kubernetes' own; a few rules differ for them."""
    return resource.is_builtin


def counts_generations(resource: Resource) -> bool:
    """Tell whether changes of the spec are counted: for pods and for kinds that are not Kubernetes' own."""
    return not is_builtin(resource) or resource.kind in _COUNTED


def read(value: bytes) -> Object:
    """Read stored bytes, which are always an object."""
    obj: Object = orjson.loads(value)
    return obj


def split_managed_fields(obj: Object) -> tuple[Object, Any]:
    """Give an object without the entries that say whose its fields are, and those: they are large and the server's."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj, None
    rest = {part: value for part, value in metadata.items() if part != "managedFields"}
    return {**obj, "metadata": rest}, metadata["managedFields"]


def restore_managed_fields(obj: Object, entries: Any) -> None:
    """Give an object, in place, the entries that were taken apart from it."""
    if entries:
        obj["metadata"]["managedFields"] = entries


def dumps(obj: Object) -> bytes:
    """Write an object as it is."""
    return orjson.dumps(obj)


def write(obj: Object, revision: int | str) -> bytes:
    """Write an object as of a revision."""
    return orjson.dumps({**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}})


def check_size(obj: Object) -> None:
    """Refuse an object that is larger than one may be."""
    size = len(orjson.dumps(obj))
    if size > MAX_OBJECT_BYTES:
        raise too_large(f"Request entity too large: an object may have {MAX_OBJECT_BYTES} bytes, not {size}")


def set_type_and_namespace(obj: Object, target: Target, *, name: str = "") -> None:
    """Set kind and place of an object in place; refuse what says otherwise. Whether the kind fits is asked before."""
    metadata = obj.setdefault("metadata", {})
    obj["apiVersion"], obj["kind"] = target.resource.api_version, target.resource.kind
    said = metadata.get("namespace") or target.namespace
    # One of a kind that is in no namespace may name one all the same, as on Kubernetes.
    if target.namespace and said != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if target.namespace:
        metadata["namespace"] = target.namespace
    else:
        metadata.pop("namespace", None)
    if name:
        own = metadata.get("name")
        if not own:
            raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
        if own != name:
            raise bad_request(f"the name of the object ({own}) does not match the name on the URL ({name})")
    metadata.pop("selfLink", None)
    for part in ("annotations", "finalizers", "labels", "ownerReferences"):
        # Nothing in it is the same as not being there.
        if part in metadata and metadata[part] in ({}, []):
            del metadata[part]


def wrong_type_reason(obj: Object, resource: Resource, scheme: Scheme) -> str:
    """Say why an object of one of Kubernetes' own kinds is not of the kind that it is written as, or ""."""
    version, kind = obj.get("apiVersion") or resource.api_version, obj.get("kind") or resource.kind
    if (version, kind) == (resource.api_version, resource.kind):
        return ""
    if scheme.of(str(version), str(kind)) is None:
        return f'no kind "{kind}" is registered for version "{version}" in scheme "{SCHEME}"'
    short, inner = str(version).rpartition("/")[2], resource.group.partition(".")[0] or "core"
    return f"converting ({short}.{kind}) to ({inner}.{resource.kind}): unknown conversion"


def dedup_owner_refs(metadata: Object) -> tuple[str, ...]:
    """Take out, in place, owners that stand there twice; give what has to be said about it."""
    owners = metadata.get("ownerReferences")
    if not isinstance(owners, list) or len(owners) < 2:
        return ()
    kept: list[Any] = []
    twice: list[str] = []
    seen: set[str] = set()
    for owner in owners:
        # Compared as they are written: there may be tens of thousands. As text, which takes no more room than it needs.
        spelled = orjson.dumps(owner, option=orjson.OPT_SORT_KEYS).decode()
        if spelled not in seen:
            seen.add(spelled)
            kept.append(owner)
        elif isinstance(owner, dict):
            twice.append(str(owner.get("uid") or ""))
    metadata["ownerReferences"] = kept
    return (_TWICE_OWNED + ", ".join(dict.fromkeys(twice)),) if twice else ()


def prepare_for_create(obj: Object, resource: Resource, *, now: datetime, ids: Ids) -> Object:
    """Give a new object with what only the server may set; the well-known fields come first."""
    metadata = dict(obj["metadata"])
    if metadata.pop("resourceVersion", ""):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for field in _SERVERS_OWN:
        # Where nobody counts, it is whatever was said.
        if field != "generation" or counts_generations(resource):
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
    # A node says with its first word how it is; of everything else that is written by someone else.
    if resource.has_status and not (is_builtin(resource) and resource.kind == "Node"):
        body.pop("status", None)
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {**first, **metadata}, **body}


def prepare_for_update(old: Object, new: Object, target: Target) -> Object:
    """Give the object that a write through one door leaves: each door changes its own half only."""
    resource = target.resource
    metadata = _carried(old["metadata"], new["metadata"])
    if target.subresource == "status":
        if not is_builtin(resource):
            # Only whose the fields are is written through this door, beside the status.
            metadata = {part: value for part, value in old["metadata"].items() if part != "managedFields"}
            restore_managed_fields({"metadata": metadata}, new["metadata"].get("managedFields"))
        kept = {**old, "metadata": metadata}
        return _with(kept, "status", _status(old, new, resource))
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
    said, there = new.get("status"), old.get("status") or {}
    if (resource.group, resource.kind) == ("", "Pod") and isinstance(said, dict) and "qosClass" in there:
        # It follows from the spec: no status takes it away.
        return said if said.get("qosClass") else {**said, "qosClass": there["qosClass"]}
    return said


def _carried(old: Object, new: Object) -> Object:
    carried = {part: value for part, value in new.items() if part not in _SERVERS_OWN}
    own = {part: old[part] for part in _SERVERS_OWN if part in old}
    return {"name": old["name"], **carried, **own}


def _with(obj: Object, part: str, value: Any) -> Object:
    rest = {name: each for name, each in obj.items() if name != part}
    return rest if value is None else {**rest, part: value}


def recount_generation(new: Object, old: Object, resource: Resource) -> None:
    """Count a change, in place, only if one is left after everything was filled in that its author left out."""
    if counts_generations(resource):
        before = int(old["metadata"].get("generation") or 0)
        new["metadata"]["generation"] = before + (_body(new, resource) != _body(old, resource))


def _body(obj: Object, resource: Resource) -> Object:
    split_managed_fields = {"metadata", "status"} if resource.has_status else {"metadata"}
    return {part: value for part, value in obj.items() if part not in split_managed_fields}


def is_same(old: Object, new: Object) -> bool:
    """Tell whether a write would change nothing."""
    before, after = _unversioned(old), _unversioned(new)
    # To Python, true is 1 and 1 is 1.0; in JSON they are three things.
    return before == after and _spelled(before) == _spelled(after)


def _spelled(obj: Object) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)


def _unversioned(obj: Object) -> Object:
    metadata = {part: value for part, value in obj["metadata"].items() if part != "resourceVersion"}
    return {**obj, "metadata": metadata}
