"""The order and time of events, and how pages show them."""

from collections.abc import Iterable
from typing import Any

from paceline.apimachinery.meta import Object, revision_of, uid_of


def happened_at(event: Object) -> str:
    """Return the time an event was last seen; empty if it has none."""
    series = event.get("series") or {}
    timestamp = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return str(timestamp or (event.get("metadata") or {}).get("creationTimestamp") or "")


def in_order(events: Iterable[Object]) -> tuple[Object, ...]:
    """Return events sorted by time; within one second, by resource version."""
    return tuple(sorted(events, key=lambda event: (happened_at(event)[:19], revision_of(event).zfill(20))))


def event_row(event: Object) -> dict[str, Any]:
    """Return what a page shows of an event."""
    about = event.get("involvedObject") or {}
    return {
        "uid": uid_of(event),
        "time": happened_at(event),
        "count": int(event.get("count") or (event.get("series") or {}).get("count") or 1),
        "type": str(event.get("type") or "Normal"),
        "reason": str(event.get("reason") or ""),
        "object": f"{about.get('kind', '')}/{about.get('name', '')}",
        "message": str(event.get("message") or "").strip(),
        "source": str(event.get("reportingComponent") or (event.get("source") or {}).get("component") or ""),
    }
