"""Rules for built-in kinds that their types cannot say, and which rules are for which kind."""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping

from paceline.apimachinery.builtin.priority_classes import SYSTEM_PRIORITIES
from paceline.apimachinery.builtin.validation.affinity import EFFECTS
from paceline.apimachinery.builtin.validation.event import event_faults
from paceline.apimachinery.builtin.validation.pod import pod_change_faults, pod_faults, pod_spec_faults
from paceline.apimachinery.builtin.validation.service import (
    endpoints_faults,
    service_change_faults,
    service_faults,
    slice_change_faults,
    slice_faults,
)
from paceline.apimachinery.builtin.validation.storage import (
    claim_change_faults,
    claim_faults,
    class_change_faults,
    class_faults,
    volume_change_faults,
    volume_faults,
)
from paceline.apimachinery.builtin.validation.values import choice_faults, data_key_problem, key_faults
from paceline.apimachinery.field_errors import FieldFault, Problem, forbidden, invalid, required
from paceline.apimachinery.meta import Object, annotations_of, name_of
from paceline.apimachinery.name_validation import value_problem
from paceline.apimachinery.scheme import Lookup
from paceline.errors import Fault

__all__ = ["CHANGES", "CHECKS", "pod_spec_faults"]

_MOST_BYTES = 1024 * 1024
_ACCOUNT = "kubernetes.io/service-account.name"
_HIGHEST_PRIORITY = 1_000_000_000
_SYSTEM = "system-"
_IMMUTABLE_SET = "field is immutable when `immutable` is set"
# What each type of secret must hold.
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def secret_faults(secret: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a secret; no message says what it holds."""
    data = secret.get("data") or {}
    found: list[Fault] = [invalid(f"data[{key}]", key, wrong) for key in data if (wrong := data_key_problem(key))]
    if sum(len(text) * 3 // 4 for text in data.values()) > _MOST_BYTES:
        found.append(_too_long("data"))
    return (*found, *_secret_type_faults(secret))


def _secret_type_faults(secret: Object) -> Iterator[Fault]:
    data, kind = secret.get("data") or {}, secret.get("type")
    if kind == "kubernetes.io/service-account-token" and not annotations_of(secret).get(_ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")
    if kind == "kubernetes.io/basic-auth" and not ("username" in data or "password" in data):
        yield required("data[username]")
        yield required("data[password]")
    for key in _NEEDED.get(str(kind), ()):
        if key not in data or (key == "ssh-privatekey" and not data[key]):
            yield required(f"data[{key}]")
        elif key.startswith(".docker") and (wrong := _mapping_problem(b64decode(data[key]))):
            yield invalid(f"data[{key}]", "<secret contents redacted>", wrong)


def _mapping_problem(text: bytes) -> str:
    """Say why text is not a JSON object, without saying what it is; "" when it is one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        first = text.strip()[:1].decode(errors="replace")
        return (
            f"invalid character '{first}' looking for beginning of value" if first else "unexpected end of JSON input"
        )
    return "" if isinstance(value, dict) else "it must be a JSON object"


def config_map_faults(config_map: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a config map."""
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    found: list[Fault] = []
    for part, held in (("data", data), ("binaryData", binary)):
        for key in held:
            if wrong := data_key_problem(key):
                found.append(invalid(f"{part}[{key}]", key, wrong))
            if part == "data" and key in binary:
                found.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    size = sum(len(text.encode()) for text in data.values()) + sum(len(text) * 3 // 4 for text in binary.values())
    if size > _MOST_BYTES:
        found.append(_too_long("[]"))
    return tuple(found)


def _too_long(path: str) -> Fault:
    return FieldFault(path, None, f"may not be more than {_MOST_BYTES} bytes", Problem.TOO_LONG)


def held_change_faults(new: Object, old: Object) -> tuple[Fault, ...]:
    """Find what may not change in a config map or secret that says so itself."""
    found: list[Fault] = []
    if old.get("kind") == "Secret" and new.get("type") != old.get("type"):
        found.append(invalid("type", new.get("type") or "", "field is immutable"))
    if old.get("immutable"):
        if new.get("immutable") is not True:
            found.append(forbidden("immutable", _IMMUTABLE_SET))
        found.extend(
            forbidden(part, _IMMUTABLE_SET)
            for part in ("data", "binaryData")
            if (old.get(part) or {}) != (new.get(part) or {})
        )
    return tuple(found)


def lease_faults(lease: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a lease."""
    spec = lease.get("spec") or {}
    found: list[Fault] = []
    seconds, changed = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        found.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if changed is not None and changed < 0:
        found.append(invalid("spec.leaseTransitions", changed, "must be greater than or equal to 0"))
    return tuple(found)


def node_faults(node: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a node."""
    found: list[Fault] = []
    for index, taint in enumerate((node.get("spec") or {}).get("taints") or ()):
        # The path is as Kubernetes says it.
        path = f"metadata.taints[{index}]"
        found.extend(key_faults(taint.get("key") or "", f"{path}.key"))
        if wrong := value_problem(taint.get("value") or ""):
            found.append(invalid(f"{path}.value", taint["value"], wrong))
        if not taint.get("effect"):
            found.append(required(f"{path}.effect"))
        found.extend(choice_faults(taint.get("effect"), EFFECTS, f"{path}.effect"))
    return tuple(found)


def priority_faults(priority: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a priority class; the highest are for the cluster itself."""
    name, value = name_of(priority), priority.get("value") or 0
    found: list[Fault] = []
    if name.startswith(_SYSTEM):
        if SYSTEM_PRIORITIES.get(name, {}).get("value") != value:
            hint = "priority class names with 'system-' prefix are reserved for system use only"
            found.append(forbidden("metadata.name", f"{hint}. error: {name} is not a known system priority class"))
    elif value > _HIGHEST_PRIORITY:
        hint = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        found.append(forbidden("value", hint))
    found.extend(choice_faults(priority.get("preemptionPolicy"), ("PreemptLowerPriority", "Never"), "preemptionPolicy"))
    return tuple(found)


def priority_change_faults(new: Object, old: Object) -> tuple[Fault, ...]:
    """Find what may not change in a priority class."""
    found: list[Fault] = []
    if (new.get("value") or 0) != (old.get("value") or 0):
        found.append(forbidden("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        found.append(invalid("preemptionPolicy", new.get("preemptionPolicy"), "field is immutable"))
    return tuple(found)


CHECKS: Mapping[tuple[str, str], Callable[[Object, Lookup], tuple[Fault, ...]]] = {
    ("", "ConfigMap"): config_map_faults,
    ("", "Endpoints"): endpoints_faults,
    ("", "Event"): event_faults,
    ("", "Node"): node_faults,
    ("", "PersistentVolume"): volume_faults,
    ("", "PersistentVolumeClaim"): claim_faults,
    ("", "Pod"): pod_faults,
    ("", "Secret"): secret_faults,
    ("", "Service"): service_faults,
    ("coordination.k8s.io", "Lease"): lease_faults,
    ("discovery.k8s.io", "EndpointSlice"): slice_faults,
    ("scheduling.k8s.io", "PriorityClass"): priority_faults,
    ("storage.k8s.io", "StorageClass"): class_faults,
}

CHANGES: Mapping[tuple[str, str], Callable[[Object, Object], tuple[Fault, ...]]] = {
    ("", "ConfigMap"): held_change_faults,
    ("", "PersistentVolume"): volume_change_faults,
    ("", "PersistentVolumeClaim"): claim_change_faults,
    ("", "Pod"): pod_change_faults,
    ("", "Secret"): held_change_faults,
    ("", "Service"): service_change_faults,
    ("discovery.k8s.io", "EndpointSlice"): slice_change_faults,
    ("scheduling.k8s.io", "PriorityClass"): priority_change_faults,
    ("storage.k8s.io", "StorageClass"): class_change_faults,
}
