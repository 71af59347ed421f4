"""Compute the files of configMap, secret, downwardAPI and projected volumes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from paceline.apimachinery.meta import Object, namespace_of
from paceline.apimachinery.pods import container_named
from paceline.node.host_info import CannotStart, Host
from paceline.node.runtime.env import field_of, resource_of
from paceline.node.volumes.references import Sources, token_key

FAILED = "FailedMount"
_FILE_NAME = re.compile(r"[-._a-zA-Z0-9]+")
_DEFAULT_MODE = 0o644
_NO_KEY = {
    "configmap": "configmap references non-existent config key",
    "secret": "references non-existent secret key",
}

# Path in the volume, content and mode.
File = tuple[str, bytes, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeContext:
    pod: Object
    sources: Sources
    # Its capacity is the value of a resource limit that is not set.
    host: Host | None = None


def is_inside(path: str) -> bool:
    """Return whether a path is relative and has no '..' in it."""
    return not path.startswith("/") and ".." not in PurePosixPath(path).parts


def files_of(spec: Mapping[str, Any], context: VolumeContext) -> tuple[File, ...] | None:
    """Return the files of a volume; None if it is not made of files. CannotStart says what is missing."""
    if (wire := spec.get("projected")) is not None:
        return tuple(_projected(wire, context))
    wire = next((spec[kind] for kind in ("configMap", "secret", "downwardAPI") if spec.get(kind) is not None), None)
    return None if wire is None else tuple(_source(spec, context, _mode(wire)))


def _projected(wire: Mapping[str, Any], context: VolumeContext) -> Iterable[File]:
    """Return the files of all sources, later ones in place of earlier ones; CannotStart lists all that is missing."""
    files: dict[str, File] = {}
    missing = []
    for source in wire.get("sources") or ():
        try:
            files |= {file[0]: file for file in _source(source, context, _mode(wire))}
        except CannotStart as error:
            missing.append(str(error))
    if missing:
        raise CannotStart(FAILED, missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]")
    return files.values()


def _mode(wire: Mapping[str, Any]) -> int:
    return _DEFAULT_MODE if wire.get("defaultMode") is None else int(wire["defaultMode"])


def _source(source: Mapping[str, Any], context: VolumeContext, mode: int) -> Iterator[File]:
    if (wire := source.get("configMap")) is not None:
        yield from _from_object("configmap", wire, context, mode)
    elif (wire := source.get("secret")) is not None:
        yield from _from_object("secret", wire, context, mode)
    elif (wire := source.get("downwardAPI")) is not None:
        yield from _downward(wire, context, mode)
    elif (wire := source.get("serviceAccountToken")) is not None:
        yield _token(wire, context, mode)
    else:
        raise CannotStart(FAILED, f"projected sources of type {', '.join(source) or 'nothing'} are not supported")


def _token(wire: Mapping[str, Any], context: VolumeContext, mode: int) -> File:
    token, path = context.sources.tokens.get(token_key(wire)), str(wire["path"])
    _check_path("serviceAccountToken", path)
    if token is None:
        account = f"{namespace_of(context.pod)}/{context.pod['spec'].get('serviceAccountName') or 'default'}"
        raise CannotStart(FAILED, f'failed to fetch token: serviceaccounts "{account}" not found')
    return path, token.encode(), mode


def _from_object(kind: str, wire: Mapping[str, Any], context: VolumeContext, mode: int) -> Iterator[File]:
    # A volume names its Secret in another field than a projected source.
    name = str(wire.get("secretName") or wire.get("name") or "")
    data = context.sources.data(kind, name)
    if data is None and not wire.get("optional"):
        raise CannotStart(FAILED, f'{kind} "{name}" not found')
    entries = data or {}
    items = wire.get("items")
    if not items:
        yield from ((key, value, mode) for key, value in entries.items())
        return
    for item in items:
        key, path = str(item["key"]), str(item["path"])
        _check_path(f'{kind} "{name}"', path)
        if key in entries:
            yield path, entries[key], mode if item.get("mode") is None else int(item["mode"])
        elif not wire.get("optional"):
            raise CannotStart(FAILED, f"{_NO_KEY[kind]}: {key}")


def _downward(wire: Mapping[str, Any], context: VolumeContext, mode: int) -> Iterator[File]:
    for item in wire.get("items") or ():
        path = str(item["path"])
        _check_path("downwardAPI", path)
        yield path, _downward_value(item, context).encode(), mode if item.get("mode") is None else int(item["mode"])


def _downward_value(item: Mapping[str, Any], context: VolumeContext) -> str:
    if reference := item.get("fieldRef"):
        return field_of(context.pod, str(reference["fieldPath"]))
    reference = item.get("resourceFieldRef") or {}
    container = container_named(context.pod, reference.get("containerName"))
    if container is None:
        raise CannotStart(FAILED, f"container {reference.get('containerName') or ''} not found")
    return resource_of(container, reference, context.host)


def _check_path(source: str, path: str) -> None:
    if not is_inside(path) or not all(_FILE_NAME.fullmatch(part) for part in PurePosixPath(path).parts):
        raise CannotStart(FAILED, f"{source}: {path!r} is not a valid file name")
