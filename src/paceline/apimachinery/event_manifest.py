"""Events about objects: the manifest of a v1.Event, with a name that a repetition finds again, and its last time."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from paceline.apimachinery.meta import Object, name_of, namespace_of, uid_of
from paceline.apimachinery.timestamps import to_wire

MAX_MESSAGE = 1024
MAX_NAME = 200
# How the life of a pod begins.
BEGINNING = ("Scheduled", "Pulling", "Pulled", "Created", "Started")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSource:
    """Which component records an event, when, and about which part of the object."""

    component: str
    now: datetime
    part: str = ""


def event_manifest(
    about: Object, reason: str, message: str, *, source: EventSource, is_warning: bool = False
) -> Object:
    """Return an event about an object."""
    now, component = to_wire(source.now), source.component
    kind, message = "Warning" if is_warning else "Normal", message[:MAX_MESSAGE]
    involved = {
        "apiVersion": about.get("apiVersion", ""),
        "kind": about.get("kind", ""),
        "namespace": namespace_of(about),
        "name": name_of(about),
        "uid": uid_of(about),
        "fieldPath": source.part,
    }
    story = "\0".join((uid_of(about), name_of(about), component, kind, reason, message, source.part))
    digest = hashlib.sha256(story.encode()).hexdigest()[:16]
    # Within a second kubectl shows events in the order of their names.
    rank = BEGINNING.index(reason) if reason in BEGINNING else len(BEGINNING)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            # Computed, so that a repetition finds the first event, whichever component recorded it.
            "name": f"{name_of(about)[:MAX_NAME].rstrip('.-')}.{rank}{digest}",
            # Events about objects without a namespace live in the default one, as on Kubernetes.
            "namespace": namespace_of(about) or "default",
        },
        "involvedObject": {name: value for name, value in involved.items() if value},
        "reason": reason,
        "message": message,
        "type": kind,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": component},
        "reportingComponent": component,
    }


def last_seen(event: Object) -> str:
    """Return the time at which an event was last seen, of either API group; empty if it has none."""
    series = event.get("series") or {}
    timestamp = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return str(timestamp or (event.get("metadata") or {}).get("creationTimestamp") or "")
