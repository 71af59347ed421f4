"""The files that volumes made of other objects hold: config maps, secrets, what a pod is told about itself."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from paceline.apimachinery.meta import Object, namespace_of
from paceline.apimachinery.pods import container_named
from paceline.node.host_info import CannotStart, Host
from paceline.node.runtime.env import field_of, resource_of
from paceline.node.volumes.references import Sources, ask_of

FAILED = "FailedMount"
_FILE_NAME = re.compile(r"[-._a-zA-Z0-9]+")
_RIGHTS = 0o644
_NO_KEY = {
    "configmap": "configmap references non-existent config key",
    "secret": "references non-existent secret key",
}

# Where it lies in the volume, what it holds, and its rights.
File = tuple[str, bytes, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeContext:
    """What the files of a pod's volumes are made from."""

    pod: Object
    sources: Sources
    # What an absent limit stands for.
    host: Host | None = None


def is_inside(path: str) -> bool:
    """Tell whether a relative path stays below where it starts."""
    return not path.startswith("/") and ".." not in PurePosixPath(path).parts


def files_of(spec: Mapping[str, Any], telling: VolumeContext) -> tuple[File, ...] | None:
    """Give the files of a volume; None for one that is not made of files."""
    if (wire := spec.get("configMap")) is not None:
        return tuple(_keyed("configmap", str(wire.get("name") or ""), wire, telling, _rights(wire)))
    if (wire := spec.get("secret")) is not None:
        return tuple(_keyed("secret", str(wire.get("secretName") or ""), wire, telling, _rights(wire)))
    if (wire := spec.get("downwardAPI")) is not None:
        return tuple(_told(wire, telling, _rights(wire)))
    if (wire := spec.get("projected")) is not None:
        return tuple(_together(wire, telling))
    return None


def _together(wire: Mapping[str, Any], telling: VolumeContext) -> Iterable[File]:
    """Put the files of several sources into one folder, the later ones over the earlier; say all that is missing."""
    together: dict[str, File] = {}
    missing = []
    for source in wire.get("sources") or ():
        try:
            together |= {file[0]: file for file in _projected(source, telling, _rights(wire))}
        except CannotStart as error:
            missing.append(str(error))
    if missing:
        raise CannotStart(FAILED, missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]")
    return together.values()


def _rights(wire: Mapping[str, Any]) -> int:
    return _RIGHTS if wire.get("defaultMode") is None else int(wire["defaultMode"])


def _projected(source: Mapping[str, Any], telling: VolumeContext, rights: int) -> Iterator[File]:
    if (wire := source.get("configMap")) is not None:
        yield from _keyed("configmap", str(wire.get("name") or ""), wire, telling, rights)
    elif (wire := source.get("secret")) is not None:
        yield from _keyed("secret", str(wire.get("name") or ""), wire, telling, rights)
    elif (wire := source.get("downwardAPI")) is not None:
        yield from _told(wire, telling, rights)
    elif (wire := source.get("serviceAccountToken")) is not None:
        yield _token(wire, telling, rights)
    else:
        raise CannotStart(FAILED, f"a projected volume of {', '.join(source) or 'nothing'} is not offered here")


def _token(wire: Mapping[str, Any], telling: VolumeContext, rights: int) -> File:
    token, path = telling.sources.tokens.get(ask_of(wire)), str(wire["path"])
    _check_path("serviceAccountToken", path)
    if token is None:
        account = f"{namespace_of(telling.pod)}/{telling.pod['spec'].get('serviceAccountName') or 'default'}"
        raise CannotStart(FAILED, f'failed to fetch token: serviceaccounts "{account}" not found')
    return path, token.encode(), rights


def _keyed(kind: str, name: str, wire: Mapping[str, Any], telling: VolumeContext, rights: int) -> Iterator[File]:
    data = telling.sources.data(kind, name)
    if data is None and not wire.get("optional"):
        raise CannotStart(FAILED, f'{kind} "{name}" not found')
    has = data or {}
    items = wire.get("items")
    if not items:
        yield from ((key, value, rights) for key, value in has.items())
        return
    for item in items:
        key, path = str(item["key"]), str(item["path"])
        _check_path(f'{kind} "{name}"', path)
        if key in has:
            yield path, has[key], rights if item.get("mode") is None else int(item["mode"])
        elif not wire.get("optional"):
            raise CannotStart(FAILED, f"{_NO_KEY[kind]}: {key}")


def _told(wire: Mapping[str, Any], telling: VolumeContext, rights: int) -> Iterator[File]:
    for item in wire.get("items") or ():
        path = str(item["path"])
        _check_path("downwardAPI", path)
        mode = rights if item.get("mode") is None else int(item["mode"])
        yield path, _told_value(item, telling).encode(), mode


def _told_value(item: Mapping[str, Any], telling: VolumeContext) -> str:
    if reference := item.get("fieldRef"):
        return field_of(telling.pod, str(reference["fieldPath"]))
    reference = item.get("resourceFieldRef") or {}
    container = container_named(telling.pod, reference.get("containerName"))
    if container is None:
        raise CannotStart(FAILED, f"container {reference.get('containerName') or ''} not found")
    return resource_of(container, reference, telling.host)


def _check_path(what: str, path: str) -> None:
    if not is_inside(path) or not all(_FILE_NAME.fullmatch(part) for part in PurePosixPath(path).parts):
        raise CannotStart(FAILED, f"{what}: {path!r} cannot be a file name")
