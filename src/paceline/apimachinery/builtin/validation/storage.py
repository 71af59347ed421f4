"""Rules for volumes, for claims on them, and for their classes."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.apimachinery.builtin.validation.values import choice_faults, selector_faults
from paceline.apimachinery.builtin.validation.volume import host_path_faults, nfs_faults
from paceline.apimachinery.field_errors import forbidden, invalid, required, unsupported
from paceline.apimachinery.immutable_fields import changes
from paceline.apimachinery.meta import Object
from paceline.apimachinery.name_validation import key_problem, subdomain_problem
from paceline.apimachinery.quantity import parse
from paceline.apimachinery.scheme import Lookup
from paceline.errors import Fault

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_IMMUTABLE = "field is immutable"
_CLAIM_CHANGE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
# What a volume has beside the place where its data lies.
_NOT_SOURCES = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


def claim_faults(claim: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a claim."""
    return tuple(_claim_faults(claim.get("spec") or {}))


def _claim_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from selector_faults(spec.get("selector") or {}, "spec.selector")
    yield from _modes_faults(spec)
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield required("spec.resources[storage]")
    elif parse(storage) <= 0:
        yield invalid("spec.resources[storage]", storage, "must be greater than zero")
    yield from _class_faults(spec)


def _modes_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    modes = spec.get("accessModes") or ()
    for mode in modes:
        yield from choice_faults(mode, _MODES, "spec.accessModes")
    known = {mode for mode in modes if mode in _MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        yield forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")


def _class_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    name = spec.get("storageClassName")
    if name and (wrong := subdomain_problem(name)):
        yield invalid("spec.storageClassName", name, wrong)
    yield from choice_faults(spec.get("volumeMode"), _VOLUME_MODES, "spec.volumeMode")


def claim_change_faults(new: Object, old: Object) -> tuple[Fault, ...]:
    """Find what may not change in a claim."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    is_bound = (new.get("status") or {}).get("phase") == "Bound"
    may = ["resources.requests.storage", "volumeAttributesClassName"] if is_bound else []
    if not before.get("volumeName"):
        may.append("volumeName")
    if before.get("storageClassName") is None:
        may.append("storageClassName")
    found: list[Fault] = []
    if changed := changes(before, after, tuple(may)):
        found.append(forbidden("spec", f"{_CLAIM_CHANGE}; changed: {', '.join(path for path, _ in changed)}"))
    then, now = _storage(before), _storage(after)
    if then is not None and now is not None and parse(now) < parse(then):
        has = ((old.get("status") or {}).get("capacity") or {}).get("storage")
        if has is None or parse(now) <= parse(has):
            hint = "field can not be less than status.capacity"
            found.append(forbidden("spec.resources.requests.storage", hint))
    return tuple(found)


def _storage(spec: Mapping[str, Any]) -> Any:
    return ((spec.get("resources") or {}).get("requests") or {}).get("storage")


def volume_faults(volume: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a persistent volume."""
    return tuple(_volume_faults(volume.get("spec") or {}))


def _volume_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    yield from _modes_faults(spec)
    capacity = spec.get("capacity") or {}
    if not capacity:
        yield required("spec.capacity")
    if set(capacity) != {"storage"}:
        yield unsupported("spec.capacity", capacity or None, ("storage",))
    for name, amount in capacity.items():
        if parse(amount) <= 0:
            yield invalid(f"spec.capacity[{name}]", amount, "must be greater than zero")
    yield from choice_faults(
        spec.get("persistentVolumeReclaimPolicy"), _RECLAIM_POLICIES, "spec.persistentVolumeReclaimPolicy"
    )
    sources = [name for name in spec if name not in _NOT_SOURCES]
    if not sources:
        yield required("spec", "must specify a volume type")
    for name in sources[1:]:
        yield forbidden(f"spec.{name}", "may not specify more than 1 volume type")
    if spec.get("hostPath") is not None:
        yield from host_path_faults(spec["hostPath"], "spec.hostPath")
    if spec.get("nfs") is not None:
        yield from nfs_faults(spec["nfs"], "spec.nfs")
    yield from _class_faults(spec)


def volume_change_faults(new: Object, old: Object) -> tuple[Fault, ...]:
    """Find what may not change in a persistent volume: where its data lies."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    found: list[Fault] = []
    if _sources(before) != _sources(after):
        hint = "spec.persistentvolumesource is immutable after creation"
        found.append(forbidden("spec.persistentvolumesource", hint))
    if before.get("volumeMode") != after.get("volumeMode"):
        found.append(invalid("volumeMode", after.get("volumeMode"), _IMMUTABLE))
    return tuple(found)


def _sources(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in spec.items() if name not in _NOT_SOURCES}


def class_faults(storage_class: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a storage class."""
    return tuple(_storage_class_faults(storage_class))


def _storage_class_faults(storage_class: Object) -> Iterator[Fault]:
    provisioner = storage_class.get("provisioner") or ""
    if not provisioner:
        yield required("provisioner")
    elif wrong := key_problem(provisioner.lower()):
        yield invalid("provisioner", provisioner, wrong)
    yield from choice_faults(storage_class.get("reclaimPolicy"), ("Delete", "Retain"), "reclaimPolicy")
    yield from choice_faults(storage_class.get("volumeBindingMode"), _BINDING_MODES, "volumeBindingMode")


def class_change_faults(new: Object, old: Object) -> tuple[Fault, ...]:
    """Find what may not change in a storage class."""
    found: list[Fault] = []
    if (new.get("parameters") or {}) != (old.get("parameters") or {}):
        found.append(forbidden("parameters", "updates to parameters are forbidden."))
    if new.get("provisioner") != old.get("provisioner"):
        found.append(forbidden("provisioner", "updates to provisioner are forbidden."))
    if new.get("reclaimPolicy") != old.get("reclaimPolicy"):
        found.append(forbidden("reclaimPolicy", "updates to reclaimPolicy are forbidden."))
    if new.get("volumeBindingMode") != old.get("volumeBindingMode"):
        found.append(invalid("volumeBindingMode", new.get("volumeBindingMode"), _IMMUTABLE))
    return tuple(found)
