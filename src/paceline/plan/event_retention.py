"""Which events are kept: those of Kubernetes go after an hour by themselves, ours by age and number."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from paceline.apimachinery.event_manifest import last_seen
from paceline.apimachinery.meta import Object, name_of, namespace_of, revision_of, uid_of
from paceline.apimachinery.timestamps import from_wire
from paceline.model.retention import EventPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEvent:
    """The facts about an event that decide whether it is kept."""

    namespace: str
    name: str
    uid: str
    # Its resource version, which changes when the event recurs.
    revision: str
    seen: datetime


def known(event: Object, now: datetime) -> KnownEvent:
    """Return the facts about an event; its creation time replaces a last time that is malformed or in the future."""
    created = from_wire(event["metadata"]["creationTimestamp"])
    try:
        seen = from_wire(last_seen(event))
    except ValueError:
        seen = created
    return KnownEvent(
        namespace=namespace_of(event),
        name=name_of(event),
        uid=uid_of(event),
        revision=revision_of(event),
        seen=created if seen > now else seen,
    )


def sift(events: Iterable[KnownEvent], policy: EventPolicy, now: datetime) -> tuple[list[KnownEvent], list[KnownEvent]]:
    """Return the events that are kept, and those that are too old or too many."""
    ordered = sorted(events, key=lambda event: event.seen)
    excess = max(len(ordered) - policy.events, 0)
    young = next((index for index, event in enumerate(ordered) if now - event.seen <= policy.age), len(ordered))
    first = max(excess, young)
    return ordered[first:], ordered[:first]
