"""Volumes become folders, and mounts become places in the sandbox."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from paceline.node.host import Blocked, Folders
from paceline.node.sources import Sources
from paceline.objects.meta import Key, Object, namespace_of, uid_of
from paceline.objects.quantity import whole

# Claims and scratch folders belong to whoever the pod runs as; the cluster's own folder keeps everybody else out.
SHARED, OWN = 0o777, 0o755
_FILE_NAME = re.compile(r"[-._a-zA-Z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Where the bytes of a volume lie: a folder or file of the machine, or memory when there is no source."""

    source: Path | None
    # With which rights the folder is made when it is not there; None: it must be there.
    make: int | None = None
    size: int | None = None
    read_only: bool = False
    # What must lie in the folder: (name, bytes, rights).
    files: tuple[tuple[str, bytes, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A volume at a place in the sandbox."""

    target: str
    volume: Volume
    sub_path: str = ""
    read_only: bool = False

    @property
    def source(self) -> Path | None:
        """Give what is bound at the target; None for memory."""
        return self.volume.source / self.sub_path if self.volume.source else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """What the volumes of a pod are looked up in."""

    claims: Mapping[Key, Object]
    volumes: Mapping[Key, Object]
    sources: Sources
    folders: Folders


def mounts_of(pod: Object, container: Object, shelf: Shelf) -> tuple[Mount, ...]:
    """Work out a container's mounts, parents before what is mounted in them; Blocked says what has to come first."""
    named = {volume["name"]: (index, volume) for index, volume in enumerate(pod["spec"].get("volumes") or ())}
    mounts = []
    for wire in container.get("volumeMounts") or ():
        if wire["name"] not in named:
            said = f"volumeMounts: {wire['name']!r} is not among the pod's volumes: {', '.join(named) or 'none'}"
            raise Blocked("CreateContainerConfigError", said)
        index, spec = named[wire["name"]]
        volume = _volume(pod, index, spec, shelf)
        sub_path = str(wire.get("subPath") or "")
        if not is_inside(sub_path):
            said = f"subPath {sub_path!r} leads out of volume {wire['name']!r}"
            raise Blocked("CreateContainerConfigError", said)
        read_only = volume.read_only or bool(wire.get("readOnly"))
        target = str(PurePosixPath(wire["mountPath"]))
        mounts.append(Mount(target=target, volume=volume, sub_path=sub_path, read_only=read_only))
    return tuple(sorted(mounts, key=lambda mount: PurePosixPath(mount.target).parts))


def is_inside(path: str) -> bool:
    """Tell whether a relative path stays below where it starts."""
    return not path.startswith("/") and ".." not in PurePosixPath(path).parts


def _volume(pod: Object, index: int, spec: Mapping[str, Any], shelf: Shelf) -> Volume:
    own = shelf.folders.volume(uid_of(pod), index)
    if (wire := spec.get("persistentVolumeClaim")) is not None:
        return _claim(namespace_of(pod), wire, shelf)
    if (wire := spec.get("hostPath")) is not None:
        return _host_path(wire)
    if (wire := spec.get("configMap")) is not None:
        return _files(own, "configmap", str(wire["name"]), wire, shelf.sources)
    if (wire := spec.get("secret")) is not None:
        return _files(own, "secret", str(wire["secretName"]), wire, shelf.sources)
    if "emptyDir" in spec or len(spec) == 1:
        return _empty_dir(own, spec.get("emptyDir") or {})
    kind = next(word for word in spec if word != "name")
    said = f"volume {spec['name']!r} is a {kind}, which is not offered here"
    raise Blocked("FailedMount", f"{said}; use a claim, emptyDir, hostPath, configMap or secret")


def _claim(namespace: str, wire: Mapping[str, Any], shelf: Shelf) -> Volume:
    name = str(wire["claimName"])
    claim = shelf.claims.get((namespace, name))
    if claim is None:
        raise Blocked("FailedMount", f'persistentvolumeclaim "{name}" not found')
    if (claim.get("status") or {}).get("phase") != "Bound":
        raise Blocked("FailedMount", f'persistentvolumeclaim "{name}" is not bound to a volume yet')
    volume = shelf.volumes.get(("", str(claim["spec"].get("volumeName") or "")))
    if volume is None:
        raise Blocked("FailedMount", f'the volume of persistentvolumeclaim "{name}" is not there')
    spec = volume["spec"]
    place = spec.get("local") or spec.get("hostPath")
    if place is None:
        said = f'the volume of persistentvolumeclaim "{name}" is no folder of this machine (local or hostPath)'
        raise Blocked("FailedMount", said)
    return Volume(source=Path(place["path"]), make=SHARED, read_only=bool(wire.get("readOnly")))


def _host_path(wire: Mapping[str, Any]) -> Volume:
    makes = wire.get("type") == "DirectoryOrCreate"
    return Volume(source=Path(wire["path"]), make=OWN if makes else None)


def _empty_dir(own: Path, wire: Mapping[str, Any]) -> Volume:
    if wire.get("medium") == "Memory":
        limit = wire.get("sizeLimit")
        return Volume(source=None, size=whole(limit) if limit else None)
    return Volume(source=own, make=SHARED)


def _files(own: Path, kind: str, name: str, wire: Mapping[str, Any], sources: Sources) -> Volume:
    data = sources.data(kind, name)
    if data is None and not wire.get("optional"):
        raise Blocked("FailedMount", f'{kind} "{name}" not found')
    rights = int(wire.get("defaultMode") or 0o644)
    chosen = [
        (str(item["key"]), str(item["path"]), int(item.get("mode") or rights)) for item in wire.get("items") or ()
    ]
    files = []
    for key, path, mode in chosen or [(key, key, rights) for key in data or ()]:
        if key not in (data or {}):
            if wire.get("optional"):
                continue
            raise Blocked("FailedMount", f'{kind} "{name}" has no entry {key!r}')
        if not is_inside(path) or not all(_FILE_NAME.fullmatch(part) for part in PurePosixPath(path).parts):
            raise Blocked("FailedMount", f'{kind} "{name}": {path!r} cannot be a file name')
        files.append((path, (data or {})[key], mode))
    return Volume(source=own, make=OWN, read_only=True, files=tuple(files))
