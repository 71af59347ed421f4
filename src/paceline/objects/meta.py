"""Reading the metadata of an object that travels as a dict."""

from sys import intern
from typing import Any

# An object as it travels: JSON in memory. Unknown fields stay in it, whoever passes it on.
Object = dict[str, Any]

Key = tuple[str, str]
"""Namespace and name; the namespace of a cluster-scoped object is empty."""

_TIES = ("namespace", "name", "uid", "resourceVersion", "ownerReferences", "finalizers", "deletionTimestamp")


def name_of(obj: Object) -> str:
    """Give the object's name, or "" while it has none."""
    return str(obj.get("metadata", {}).get("name") or "")


def namespace_of(obj: Object) -> str:
    """Give the object's namespace, or "" for a cluster-scoped one."""
    return str(obj.get("metadata", {}).get("namespace") or "")


def key_of(obj: Object) -> Key:
    """Give what tells the object apart from others of its kind."""
    return namespace_of(obj), name_of(obj)


def uid_of(obj: Object) -> str:
    """Give the object's uid, or "" before it was created."""
    return str(obj.get("metadata", {}).get("uid") or "")


def revision_of(obj: Object) -> str:
    """Give the resourceVersion the object was read at, or ""."""
    return str(obj.get("metadata", {}).get("resourceVersion") or "")


def labels_of(obj: Object) -> dict[str, str]:
    """Give the object's labels; changing the answer changes nothing."""
    return dict(obj.get("metadata", {}).get("labels") or {})


def annotations_of(obj: Object) -> dict[str, str]:
    """Give the object's annotations; changing the answer changes nothing."""
    return dict(obj.get("metadata", {}).get("annotations") or {})


def is_deleting(obj: Object) -> bool:
    """Tell whether deletion was asked for and waits for finalizers or a grace period."""
    return bool(obj.get("metadata", {}).get("deletionTimestamp"))


def controller_of(obj: Object) -> dict[str, Any] | None:
    """Give the owner reference of the controller that made the object, if one did."""
    for owner in obj.get("metadata", {}).get("ownerReferences") or ():
        if owner.get("controller"):
            return dict(owner)
    return None


def owned_by(owner: Object) -> dict[str, Any]:
    """Spell the owner reference that makes `owner` the controller of a new object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def ties_of(obj: Object) -> Object:
    """Give of an object which one it is, whom it belongs to and what holds it; the same words are held once."""
    metadata = obj["metadata"]
    kept = {name: metadata[name] for name in _TIES if name in metadata}
    if "namespace" in kept:
        kept["namespace"] = intern(kept["namespace"])
    if "ownerReferences" in kept:
        kept["ownerReferences"] = [_shared(each) for each in kept["ownerReferences"]]
    return {"metadata": kept}


def _shared(owner: dict[str, Any]) -> dict[str, Any]:
    return {name: intern(value) if isinstance(value, str) else value for name, value in owner.items()}
