"""Delete objects, and optionally wait until they are gone."""

from typing import Any

from paceline.apimachinery.meta import Object, uid_of
from paceline.errors import NotFound
from paceline.sdk.client import Session
from paceline.sdk.discovery import Kind

BACKGROUND = {"propagationPolicy": "Background"}


def remove(session: Session, kind: Kind, obj: Object) -> None:
    """Delete this object, guarded by its uid so that a newer object of the same name is kept."""
    metadata = obj["metadata"]
    options = {**BACKGROUND, "preconditions": {"uid": uid_of(obj)}}
    session.cluster.delete(kind.where, (str(metadata.get("namespace") or ""), str(metadata["name"])), options)


def remove_and_wait(session: Session, kind: Kind, metadata: dict[str, Any]) -> None:
    """Delete an object if it exists, and return when its name is free."""
    name = str(metadata.get("name") or "")
    namespace = str(metadata.get("namespace") or session.namespace)
    if not name:
        return
    try:
        existing = session.cluster.get(kind.where, namespace, name)
        remove(session, kind, existing)
    except NotFound:
        return
    session.wait_gone(kind, existing)
