"""The order of events, and how pages show them."""

from collections.abc import Iterable
from typing import Any

from paceline.apimachinery.event_manifest import last_seen
from paceline.apimachinery.meta import Object, revision_of, uid_of


def in_order(events: Iterable[Object]) -> tuple[Object, ...]:
    """Return events sorted by time; within one second, by resource version."""
    return tuple(sorted(events, key=lambda event: (last_seen(event)[:19], revision_of(event).zfill(20))))


def event_row(event: Object) -> dict[str, Any]:
    """Return what a page shows of an event."""
    about = event.get("involvedObject") or {}
    return {
        "uid": uid_of(event),
        "time": last_seen(event),
        "count": int(event.get("count") or (event.get("series") or {}).get("count") or 1),
        "type": str(event.get("type") or "Normal"),
        "reason": str(event.get("reason") or ""),
        "object": f"{about.get('kind', '')}/{about.get('name', '')}",
        "message": str(event.get("message") or "").strip(),
        "source": str(event.get("reportingComponent") or (event.get("source") or {}).get("component") or ""),
    }
