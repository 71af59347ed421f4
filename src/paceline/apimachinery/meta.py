"""Access to the metadata and conditions of an object in its JSON form."""

from collections.abc import Mapping
from sys import intern
from typing import Any

# An object in its JSON form. Unknown fields are preserved.
Object = dict[str, Any]

Key = tuple[str, str]
"""Namespace and name; the namespace of a cluster-scoped object is empty."""

_TIES = ("namespace", "name", "uid", "resourceVersion", "ownerReferences", "finalizers", "deletionTimestamp")


def name_of(obj: Object) -> str:
    """Return the object's name, or "" if it has none."""
    return str(obj.get("metadata", {}).get("name") or "")


def namespace_of(obj: Object) -> str:
    """Return the object's namespace, or "" if it is cluster-scoped."""
    return str(obj.get("metadata", {}).get("namespace") or "")


def key_of(obj: Object) -> Key:
    """Return the object's namespace and name, which identify it within its kind."""
    return namespace_of(obj), name_of(obj)


def uid_of(obj: Object) -> str:
    """Return the object's uid, or "" if it is not created yet."""
    return str(obj.get("metadata", {}).get("uid") or "")


def revision_of(obj: Object) -> str:
    """Return the object's resourceVersion, or ""."""
    return str(obj.get("metadata", {}).get("resourceVersion") or "")


def labels_of(obj: Object) -> dict[str, str]:
    """Return a copy of the object's labels."""
    return dict(obj.get("metadata", {}).get("labels") or {})


def annotations_of(obj: Object) -> dict[str, str]:
    """Return a copy of the object's annotations."""
    return dict(obj.get("metadata", {}).get("annotations") or {})


def is_deleting(obj: Object) -> bool:
    """Return whether the object is being deleted, and waits for finalizers or a grace period."""
    return bool(obj.get("metadata", {}).get("deletionTimestamp"))


def condition_of(obj: Object, condition_type: str) -> Object | None:
    """Return a condition of the object's status by its type, or None."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == condition_type), None)


def has_condition(obj: Object, condition_type: str) -> bool:
    """Return whether a condition of the object is True."""
    return (condition_of(obj, condition_type) or {}).get("status") == "True"


def controller_of(obj: Object) -> dict[str, Any] | None:
    """Return the owner reference of the object's controller, or None."""
    for owner in obj.get("metadata", {}).get("ownerReferences") or ():
        if owner.get("controller"):
            return dict(owner)
    return None


def owned_by(owner: Object) -> dict[str, Any]:
    """Return the owner reference that makes `owner` the controller of a new object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned_metadata(name: str, namespace: str, labels: Mapping[str, str], owner: Mapping[str, Any]) -> Object:
    """Return the metadata of a new object that the object of an owner reference controls."""
    return {"name": name, "namespace": namespace, "labels": dict(labels), "ownerReferences": [dict(owner)]}


def ties_of(obj: Object) -> Object:
    """Return only the identity, owner references and finalizers of an object, with strings interned."""
    metadata = obj["metadata"]
    reduced = {name: metadata[name] for name in _TIES if name in metadata}
    if "namespace" in reduced:
        reduced["namespace"] = intern(reduced["namespace"])
    if "ownerReferences" in reduced:
        reduced["ownerReferences"] = [_shared(owner) for owner in reduced["ownerReferences"]]
    return {"metadata": reduced}


def _shared(owner: dict[str, Any]) -> dict[str, Any]:
    return {name: intern(value) if isinstance(value, str) else value for name, value in owner.items()}
