"""Rules for the volumes of a pod."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.apimachinery.builtin.validation.values import path_faults
from paceline.apimachinery.field_errors import duplicate, forbidden, invalid, required, unsupported
from paceline.apimachinery.meta import Object
from paceline.apimachinery.name_validation import label_problem
from paceline.errors import Fault

_HIGHEST_MODE = 0o777
_MODE_RULE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def volumes_faults(volumes: Any, path: str, good: set[str]) -> Iterator[Fault]:
    """Find what is wrong with volumes; the names of those that can be mounted are added to `good`."""
    for index, volume in enumerate(volumes or ()):
        found = list(_volume_faults(volume, f"{path}[{index}]", good))
        yield from found
        if not found:
            good.add(volume["name"])


def _volume_faults(volume: Object, path: str, taken: set[str]) -> Iterator[Fault]:
    sources = [name for name in volume if name != "name"]
    for name in sources[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 volume type")
    if sources and isinstance(volume[sources[0]], dict):
        yield from _source_faults(sources[0], volume[sources[0]], f"{path}.{sources[0]}")
    elif not sources:
        yield required(path, "must specify a volume type")
    name = volume.get("name") or ""
    if not name:
        yield required(f"{path}.name")
    elif wrong := label_problem(name):
        yield invalid(f"{path}.name", name, wrong)
    if name in taken:
        yield duplicate(f"{path}.name", name)


def _source_faults(name: str, source: Mapping[str, Any], path: str) -> Iterator[Fault]:
    match name:
        case "hostPath":
            yield from host_path_faults(source, path)
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
            yield from nfs_faults(source, path)


def nfs_faults(source: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Find what is wrong with a folder of a file server."""
    for field in ("server", "path"):
        if not source.get(field):
            yield required(f"{path}.{field}")
    if source.get("path") and not source["path"].startswith("/"):
        yield invalid(f"{path}.path", source["path"], "must be an absolute path")


def host_path_faults(source: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Find what is wrong with a folder or file of the machine."""
    at = source.get("path") or ""
    if not at:
        yield required(f"{path}.path")
        return
    if ".." in at.split("/"):
        yield invalid(f"{path}.path", at, "must not contain '..'")
    if (source.get("type") or "") not in _HOST_PATH_TYPES:
        yield unsupported(f"{path}.type", source["type"], _HOST_PATH_TYPES)


def _mode_faults(mode: Any, path: str) -> Iterator[Fault]:
    if mode is not None and not 0 <= mode <= _HIGHEST_MODE:
        yield invalid(path, mode, _MODE_RULE)


def _items_faults(source: Mapping[str, Any], path: str) -> Iterator[Fault]:
    for index, item in enumerate(source.get("items") or ()):
        where = f"{path}.items[{index}]"
        if not item.get("key"):
            yield required(f"{where}.key")
        if not item.get("path"):
            yield required(f"{where}.path")
        yield from path_faults(item.get("path") or "", f"{where}.path")
        yield from _mode_faults(item.get("mode"), f"{where}.mode")
