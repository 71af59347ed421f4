"""Rules for the volumes of pods, persistent volumes, claims and storage classes."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.apimachinery.builtin.validation.values import (
    IMMUTABLE,
    choice_faults,
    name_faults,
    path_faults,
    selector_faults,
)
from paceline.apimachinery.field_errors import changes, duplicate, forbidden, invalid, required, unsupported
from paceline.apimachinery.meta import Object
from paceline.apimachinery.name_validation import key_problem, label_problem, subdomain_problem
from paceline.apimachinery.quantity import parse
from paceline.errors import Fault

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_HIGHEST_MODE = 0o777
_HOST_PATH_TYPES = (
    *("", "BlockDevice", "CharDevice", "Directory"),
    *("DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
)
_CLAIM_CHANGE = "only resources.requests and volumeAttributesClassName of a bound claim may change"
# The fields of a persistent volume's spec that do not name its source.
_NOT_SOURCES = frozenset(
    {
        *("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy"),
        *("storageClassName", "volumeAttributesClassName", "volumeMode"),
    }
)


def volumes_faults(volumes: Any, path: str, mountable: set[str]) -> Iterator[Fault]:
    """Yield the faults of a pod's volumes; the names of those without faults are added to `mountable`."""
    for index, volume in enumerate(volumes or ()):
        faults = list(_pod_volume_faults(volume, f"{path}[{index}]", mountable))
        yield from faults
        if not faults:
            mountable.add(volume["name"])


def _pod_volume_faults(volume: Object, path: str, taken: set[str]) -> Iterator[Fault]:
    sources = [name for name in volume if name != "name"]
    yield from _source_count_faults(sources, path)
    if sources and isinstance(volume[sources[0]], dict):
        yield from _source_faults(sources[0], volume[sources[0]], f"{path}.{sources[0]}")
    elif not sources:
        yield required(path, "must specify a volume type")
    name = volume.get("name") or ""
    yield from name_faults(name, f"{path}.name", label_problem)
    if name in taken:
        yield duplicate(f"{path}.name", name)


def _source_count_faults(sources: list[str], path: str) -> Iterator[Fault]:
    return (forbidden(f"{path}.{name}", "may not specify more than 1 volume type") for name in sources[1:])


def _source_faults(name: str, source: Mapping[str, Any], path: str) -> Iterator[Fault]:
    match name:
        case "hostPath":
            yield from _host_path_faults(source, path)
        case "persistentVolumeClaim":
            if not source.get("claimName"):
                yield required(f"{path}.claimName")
        case "configMap" | "secret":
            field = "name" if name == "configMap" else "secretName"
            if not source.get(field):
                yield required(f"{path}.{field}")
            yield from _mode_faults(source.get("defaultMode"), f"{path}.defaultMode")
            yield from _items_faults(source, path)
        case "downwardAPI" | "projected":
            yield from _mode_faults(source.get("defaultMode"), f"{path}.defaultMode")
        case "nfs":
            yield from _nfs_faults(source, path)


def _nfs_faults(source: Mapping[str, Any], path: str) -> Iterator[Fault]:
    for field in ("server", "path"):
        if not source.get(field):
            yield required(f"{path}.{field}")
    if source.get("path") and not source["path"].startswith("/"):
        yield invalid(f"{path}.path", source["path"], "must be an absolute path")


def _host_path_faults(source: Mapping[str, Any], path: str) -> Iterator[Fault]:
    host_path = source.get("path") or ""
    if not host_path:
        yield required(f"{path}.path")
        return
    if ".." in host_path.split("/"):
        yield invalid(f"{path}.path", host_path, "must not contain '..'")
    yield from choice_faults(source.get("type"), _HOST_PATH_TYPES, f"{path}.type")


def _mode_faults(mode: Any, path: str) -> Iterator[Fault]:
    if mode is not None and not 0 <= mode <= _HIGHEST_MODE:
        yield invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")


def _items_faults(source: Mapping[str, Any], path: str) -> Iterator[Fault]:
    for index, item in enumerate(source.get("items") or ()):
        where = f"{path}.items[{index}]"
        for field in ("key", "path"):
            if not item.get(field):
                yield required(f"{where}.{field}")
        yield from path_faults(item.get("path") or "", f"{where}.path")
        yield from _mode_faults(item.get("mode"), f"{where}.mode")


def claim_faults(claim: Object) -> Iterator[Fault]:
    """Yield the faults of a claim."""
    spec = claim.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from selector_faults(spec.get("selector") or {}, "spec.selector")
    yield from _modes_faults(spec)
    storage = _storage(spec)
    if storage is None:
        yield required("spec.resources[storage]")
    elif parse(storage) <= 0:
        yield invalid("spec.resources[storage]", storage, "must be greater than zero")
    yield from _class_name_faults(spec)


def _storage(spec: Mapping[str, Any]) -> Any:
    return ((spec.get("resources") or {}).get("requests") or {}).get("storage")


def _modes_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    modes = spec.get("accessModes") or ()
    for mode in modes:
        yield from choice_faults(mode, _MODES, "spec.accessModes")
    valid = {mode for mode in modes if mode in _MODES}
    if "ReadWriteOncePod" in valid and len(valid) > 1:
        yield forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")


def _class_name_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    name = spec.get("storageClassName")
    yield from name_faults(name, "spec.storageClassName", subdomain_problem, is_required=False)
    yield from choice_faults(spec.get("volumeMode"), _VOLUME_MODES, "spec.volumeMode")


def claim_change_faults(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the faults of an update of a claim."""
    old_spec, new_spec = old.get("spec") or {}, new.get("spec") or {}
    is_bound = (new.get("status") or {}).get("phase") == "Bound"
    mutable = ["resources.requests.storage", "volumeAttributesClassName"] if is_bound else []
    if not old_spec.get("volumeName"):
        mutable.append("volumeName")
    if old_spec.get("storageClassName") is None:
        mutable.append("storageClassName")
    if changed := changes(old_spec, new_spec, tuple(mutable)):
        yield forbidden("spec", f"{_CLAIM_CHANGE}; changed: {', '.join(path for path, _ in changed)}")
    old_storage, storage = _storage(old_spec), _storage(new_spec)
    if old_storage is not None and storage is not None and parse(storage) < parse(old_storage):
        capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage")
        if capacity is None or parse(storage) <= parse(capacity):
            yield forbidden("spec.resources.requests.storage", "must not be less than status.capacity")


def volume_faults(volume: Object) -> Iterator[Fault]:
    """Yield the faults of a persistent volume."""
    spec = volume.get("spec") or {}
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
    policy = spec.get("persistentVolumeReclaimPolicy")
    yield from choice_faults(policy, _RECLAIM_POLICIES, "spec.persistentVolumeReclaimPolicy")
    sources = list(_sources(spec))
    if not sources:
        yield required("spec", "must specify a volume type")
    yield from _source_count_faults(sources, "spec")
    if spec.get("hostPath") is not None:
        yield from _host_path_faults(spec["hostPath"], "spec.hostPath")
    if spec.get("nfs") is not None:
        yield from _nfs_faults(spec["nfs"], "spec.nfs")
    yield from _class_name_faults(spec)


def volume_change_faults(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the faults of an update of a persistent volume."""
    old_spec, new_spec = old.get("spec") or {}, new.get("spec") or {}
    if _sources(old_spec) != _sources(new_spec):
        yield forbidden("spec.persistentvolumesource", "the source of a volume may not change")
    if old_spec.get("volumeMode") != new_spec.get("volumeMode"):
        yield invalid("volumeMode", new_spec.get("volumeMode"), IMMUTABLE)


def _sources(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in spec.items() if name not in _NOT_SOURCES}


def storage_class_faults(storage_class: Object) -> Iterator[Fault]:
    """Yield the faults of a storage class."""
    yield from name_faults(storage_class.get("provisioner"), "provisioner", _provisioner_problem)
    yield from choice_faults(storage_class.get("reclaimPolicy"), ("Delete", "Retain"), "reclaimPolicy")
    yield from choice_faults(storage_class.get("volumeBindingMode"), _BINDING_MODES, "volumeBindingMode")


def _provisioner_problem(name: str) -> str:
    return key_problem(name.lower())


def storage_class_change_faults(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the faults of an update of a storage class."""
    for field in ("parameters", "provisioner", "reclaimPolicy"):
        if (new.get(field) or {}) != (old.get(field) or {}):
            yield forbidden(field, "may not be changed")
    if new.get("volumeBindingMode") != old.get("volumeBindingMode"):
        yield invalid("volumeBindingMode", new.get("volumeBindingMode"), IMMUTABLE)
