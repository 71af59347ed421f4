"""Rules for the small built-in kinds, and the tables of all rules by kind."""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from paceline.apimachinery.builtin.scheduling import SYSTEM_PRIORITIES
from paceline.apimachinery.builtin.validation import pod, service, storage
from paceline.apimachinery.builtin.validation.values import (
    IMMUTABLE,
    at_least,
    choice_faults,
    data_key_problem,
    key_faults,
)
from paceline.apimachinery.field_errors import FieldFault, Problem, forbidden, invalid, required
from paceline.apimachinery.meta import Object, annotations_of, name_of
from paceline.apimachinery.name_validation import value_problem
from paceline.apimachinery.scheme import Lookup
from paceline.errors import Fault

_MOST_BYTES = 1024 * 1024
_ACCOUNT = "kubernetes.io/service-account.name"
_HIGHEST_PRIORITY = 1_000_000_000
_IMMUTABLE_SET = "field is immutable when `immutable` is set"
# Keys that a Secret of a type must have.
_SECRET_KEYS: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_MOST_EVENT_CHARS = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
# Fields of events of the core group that events.k8s.io replaced.
_DEPRECATED_EVENT_FIELDS: Mapping[str, Any] = {"firstTimestamp": None, "lastTimestamp": None, "count": 0}


def _secret_faults(secret: Object) -> Iterator[Fault]:
    """Yield the faults of a secret; no message contains its data."""
    data, kind = secret.get("data") or {}, secret.get("type")
    yield from _data_key_faults(data, "data")
    if sum(map(_decoded_size, data.values())) > _MOST_BYTES:
        yield _too_long("data")
    if kind == "kubernetes.io/service-account-token" and not annotations_of(secret).get(_ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")
    if kind == "kubernetes.io/basic-auth" and not ("username" in data or "password" in data):
        yield required("data[username]")
        yield required("data[password]")
    for key in _SECRET_KEYS.get(str(kind), ()):
        if key not in data or (key == "ssh-privatekey" and not data[key]):
            yield required(f"data[{key}]")
        elif key.startswith(".docker") and not _is_json_object(b64decode(data[key])):
            yield invalid(f"data[{key}]", "<secret contents redacted>", "must be a JSON object")


def _is_json_object(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _config_map_faults(config_map: Object) -> Iterator[Fault]:
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    yield from _data_key_faults(data, "data")
    for key in data:
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    yield from _data_key_faults(binary, "binaryData")
    if sum(len(text.encode()) for text in data.values()) + sum(map(_decoded_size, binary.values())) > _MOST_BYTES:
        yield _too_long("[]")


def _data_key_faults(data: Mapping[str, Any], path: str) -> Iterator[Fault]:
    return (invalid(f"{path}[{key}]", key, problem) for key in data if (problem := data_key_problem(key)))


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4


def _too_long(path: str) -> Fault:
    return FieldFault(path, None, f"may not be more than {_MOST_BYTES} bytes", Problem.TOO_LONG)


def _data_change_faults(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the faults of an update of a ConfigMap or Secret."""
    if old.get("kind") == "Secret" and new.get("type") != old.get("type"):
        yield invalid("type", new.get("type") or "", IMMUTABLE)
    if old.get("immutable"):
        if new.get("immutable") is not True:
            yield forbidden("immutable", _IMMUTABLE_SET)
        for field in ("data", "binaryData"):
            if (old.get(field) or {}) != (new.get(field) or {}):
                yield forbidden(field, _IMMUTABLE_SET)


def _lease_faults(lease: Object) -> Iterator[Fault]:
    spec = lease.get("spec") or {}
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid("spec.leaseTransitions", transitions, at_least(0))


def _node_faults(node: Object) -> Iterator[Fault]:
    for index, taint in enumerate((node.get("spec") or {}).get("taints") or ()):
        # Kubernetes reports taints below metadata.
        path = f"metadata.taints[{index}]"
        yield from key_faults(taint.get("key") or "", f"{path}.key")
        if problem := value_problem(taint.get("value") or ""):
            yield invalid(f"{path}.value", taint["value"], problem)
        if not taint.get("effect"):
            yield required(f"{path}.effect")
        yield from choice_faults(taint.get("effect"), pod.TAINT_EFFECTS, f"{path}.effect")


def _priority_class_faults(priority: Object) -> Iterator[Fault]:
    name, value = name_of(priority), priority.get("value") or 0
    if name.startswith("system-"):
        if SYSTEM_PRIORITIES.get(name, {}).get("value") != value:
            yield forbidden("metadata.name", "names that start with 'system-' are reserved for Kubernetes")
    elif value > _HIGHEST_PRIORITY:
        yield forbidden("value", f"must be at most {_HIGHEST_PRIORITY}")
    yield from choice_faults(priority.get("preemptionPolicy"), pod.PREEMPTION_POLICIES, "preemptionPolicy")


def _priority_class_change_faults(new: Object, old: Object) -> Iterator[Fault]:
    if (new.get("value") or 0) != (old.get("value") or 0):
        yield forbidden("value", "may not be changed")
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        yield invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE)


def _event_faults(event: Object, reporter: str = "reportingComponent") -> Iterator[Fault]:
    namespace = (event.get("involvedObject") or {}).get("namespace") or ""
    if (namespace or "default") != event["metadata"].get("namespace"):
        yield invalid("involvedObject.namespace", namespace, "does not match event.namespace")
    if not event.get("eventTime"):
        return
    controller = event.get("reportingComponent") or ""
    if not controller:
        yield required(reporter)
    yield from key_faults(controller, reporter)
    for field, most in _MOST_EVENT_CHARS.items():
        if not event.get(field):
            if field != "message":
                yield required(field)
        elif len(event[field]) > most:
            yield invalid(field, "", f"can have at most {most} characters")


def events_v1_faults(event: Object, _lookup: Lookup) -> Iterator[Fault]:
    """Yield the faults of an event of events.k8s.io, which is given with the field names of the core group."""
    yield from _event_faults(event, "reportingController")
    series = event.get("series")
    if isinstance(series, dict):
        if (series.get("count") or 0) < 2:
            yield invalid("series.count", "", "should be at least 2")
        if not series.get("lastObservedTime"):
            yield required("series.lastObservedTime")
    if not event.get("eventTime"):
        yield required("eventTime")
    if event.get("type") not in {"Normal", "Warning"}:
        yield invalid("type", "", "must be Normal or Warning")
    for field, empty in _DEPRECATED_EVENT_FIELDS.items():
        if (event.get(field) or empty) != empty:
            yield invalid(field, "", "must not be set")
    source = event.get("source") or {}
    if source.get("component") or source.get("host"):
        yield invalid("source", "", "must not be set")


CHECKS: Mapping[tuple[str, str], Callable[[Object], Iterator[Fault]]] = {
    ("", "ConfigMap"): _config_map_faults,
    ("", "Endpoints"): service.endpoints_faults,
    ("", "Event"): _event_faults,
    ("", "Node"): _node_faults,
    ("", "PersistentVolume"): storage.volume_faults,
    ("", "PersistentVolumeClaim"): storage.claim_faults,
    ("", "Pod"): pod.pod_faults,
    ("", "Secret"): _secret_faults,
    ("", "Service"): service.service_faults,
    ("coordination.k8s.io", "Lease"): _lease_faults,
    ("discovery.k8s.io", "EndpointSlice"): service.slice_faults,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class_faults,
    ("storage.k8s.io", "StorageClass"): storage.storage_class_faults,
}

CHANGES: Mapping[tuple[str, str], Callable[[Object, Object], Iterator[Fault]]] = {
    ("", "ConfigMap"): _data_change_faults,
    ("", "PersistentVolume"): storage.volume_change_faults,
    ("", "PersistentVolumeClaim"): storage.claim_change_faults,
    ("", "Pod"): pod.pod_change_faults,
    ("", "Secret"): _data_change_faults,
    ("", "Service"): service.service_change_faults,
    ("discovery.k8s.io", "EndpointSlice"): service.slice_change_faults,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class_change_faults,
    ("storage.k8s.io", "StorageClass"): storage.storage_class_change_faults,
}
