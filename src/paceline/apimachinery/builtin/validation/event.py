"""Rules for events: few for those of old, more for those that say when they happened and who reports them."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.apimachinery.builtin.validation.values import key_faults
from paceline.apimachinery.field_errors import invalid, required
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Lookup
from paceline.errors import Fault

_SHORT = 128
_LONG = 1024
_TYPES = ("Normal", "Warning")
# What the events of old say, and new ones may not.
_OLD: Mapping[str, Any] = {"firstTimestamp": None, "lastTimestamp": None, "count": 0}


def event_faults(event: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with an event."""
    return tuple(_faults(event, "reportingComponent"))


def new_event_faults(event: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with an event that comes in by events.k8s.io; the fields have the names of the core group."""
    return (*_faults(event, "reportingController"), *_strict_faults(event))


def _faults(event: Object, reporter: str) -> Iterator[Fault]:
    """Look at where the event lives, which is where the object lives that it is about, and at who reports it."""
    about, own = event.get("involvedObject") or {}, event["metadata"].get("namespace")
    said = about.get("namespace") or ""
    if (said or "default") != own:
        yield invalid("involvedObject.namespace", said, "does not match event.namespace")
    if not event.get("eventTime"):
        return
    controller = event.get("reportingComponent") or ""
    if not controller:
        yield required(reporter)
    yield from key_faults(controller, reporter)
    for field in ("reportingInstance", "action", "reason"):
        if not event.get(field):
            yield required(field)
        elif len(event[field]) > _SHORT:
            yield invalid(field, "", f"can have at most {_SHORT} characters")
    if len(event.get("message") or "") > _LONG:
        yield invalid("message", "", f"can have at most {_LONG} characters")


def _strict_faults(event: Object) -> Iterator[Fault]:
    series = event.get("series")
    if isinstance(series, dict):
        if (series.get("count") or 0) < 2:
            yield invalid("series.count", "", "should be at least 2")
        if not series.get("lastObservedTime"):
            yield required("series.lastObservedTime")
    if not event.get("eventTime"):
        yield required("eventTime")
    kind = event.get("type") or ""
    if kind not in _TYPES:
        yield invalid("type", "", f"has invalid value: {kind}")
    for field, nothing in _OLD.items():
        if (event.get(field) or nothing) != nothing:
            yield invalid(field, "", "needs to be unset")
    source = event.get("source") or {}
    if source.get("component") or source.get("host"):
        yield invalid("source", "", "needs to be unset")
