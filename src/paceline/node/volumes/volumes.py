"""Volumes become folders, and mounts become places in the sandbox."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from paceline.apimachinery.builtin.storage_annotations import FOLDERS, PROVISIONED_BY, WAITING
from paceline.apimachinery.meta import (
    Key,
    Object,
    annotations_of,
    controller_of,
    is_deleting,
    name_of,
    namespace_of,
    uid_of,
)
from paceline.apimachinery.pods import container_statuses_of, containers_of
from paceline.apimachinery.quantity import whole
from paceline.node.host_info import CannotStart, Folders, Host
from paceline.node.runtime.confinement import path_in_sandbox
from paceline.node.runtime.env import CONFIG_ERROR, expand
from paceline.node.volumes.projection import FAILED, File, VolumeContext, files_of, is_inside
from paceline.node.volumes.references import Sources

MEMORY, NFS = "tmpfs", "nfs"


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSpec:
    """What is mounted: a sort of file system, where it comes from, and its options."""

    kind: str
    source: str
    options: tuple[str, ...] = ()


class Mounts(Protocol):
    """The mounts of this machine's pods. They outlive the agent, and are found again by it."""

    async def mount(self, what: MountSpec, target: Path) -> None:
        """Mount at a folder, made if need be; being there already is fine. Blocked says what is missing."""
        ...

    async def unmount(self, uid: str) -> None:
        """Take all mounts of a pod away, now that nothing runs in it; none is fine. Busy when one is in use."""
        ...

    def known(self) -> frozenset[str]:
        """Name the pods that have one."""
        ...


# Claims and scratch folders belong to whoever the pod runs as; the cluster's own folder keeps everybody else out.
SHARED, OWN = 0o777, 0o755
# Memory is as /tmp: what one user puts there, others do not take away.
STICKY = 0o1777
# What a hostPath may have to be, by its type, and how a kubelet says that it is not.
HOST_PATHS = {
    "Directory": ("folder", "directory"),
    "DirectoryOrCreate": ("folder", "directory"),
    "File": ("file", "file"),
    "FileOrCreate": ("file", "file"),
    "Socket": ("socket", "socket file"),
    "CharDevice": ("character device", "character device"),
    "BlockDevice": ("block device", "block device"),
}
# Volumes whose files are made from other objects.
MADE_OF_OTHERS = ("configMap", "secret", "projected", "downwardAPI")
_REFERENCE = re.compile(r"\$\(([^)]*)\)")
_NO_DRIVER = "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Where the bytes of a volume lie: a folder or file of the machine, or memory when there is no source."""

    source: Path | None
    # What it is called where it cannot be made.
    name: str = ""
    # With which rights the folder is made when it is not there; None: it must be there.
    make: int | None = None
    # Which of `HOST_PATHS` the source must be.
    host_type: str = ""
    # Whether somebody must have made the source, whatever it is.
    must_exist: bool = False
    size: int | None = None
    read_only: bool = False
    # What must lie in the folder, and nothing else; None: whatever is in it is the user's.
    files: tuple[File, ...] | None = None
    # Whether it is given to the pod's group.
    is_shared: bool = False
    # Whether the folder lies in memory, where others of this machine have folders too.
    is_memory: bool = False
    # What is mounted at the source first.
    mounted: MountSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A volume at a place in the sandbox."""

    target: str
    volume: Volume
    # What the pod calls the volume.
    name: str = ""
    sub_path: str = ""
    read_only: bool = False

    @property
    def source(self) -> Path | None:
        """Give what is bound at the target; None for memory."""
        return self.volume.source / self.sub_path if self.volume.source else None


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeLookup:
    """What the volumes of a pod are looked up in."""

    claims: Mapping[Key, Object]
    volumes: Mapping[Key, Object]
    sources: Sources
    folders: Folders
    # What an absent limit stands for.
    host: Host | None = None


def mounts_of(
    pod: Object, container: Object, shelf: VolumeLookup, env: Mapping[str, str] | None = None
) -> tuple[Mount, ...]:
    """Return a container's mounts, parents before what is mounted in them; CannotStart says what is missing."""
    named = {volume["name"]: (index, volume) for index, volume in enumerate(pod["spec"].get("volumes") or ())}
    mounts = []
    for wire in container.get("volumeMounts") or ():
        if wire["name"] not in named:
            said = f"volumeMounts: {wire['name']!r} is not among the pod's volumes: {', '.join(named) or 'none'}"
            raise CannotStart(CONFIG_ERROR, said)
        index, spec = named[wire["name"]]
        volume = volume_of(pod, index, spec, shelf)
        sub_path = _sub_path(wire, env or {})
        read_only = volume.read_only or bool(wire.get("readOnly"))
        target = path_in_sandbox(str(wire["mountPath"]), "mountPath")
        name = str(wire["name"])
        mounts.append(Mount(target=target, volume=volume, name=name, sub_path=sub_path, read_only=read_only))
    return tuple(sorted(mounts, key=lambda mount: PurePosixPath(mount.target).parts))


def mounted(pod: Object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give the volumes that containers of a pod mount, and which each of them is."""
    names = {mount["name"] for container in containers_of(pod) for mount in container.get("volumeMounts") or ()}
    volumes = enumerate(pod["spec"].get("volumes") or ())
    return ((index, volume) for index, volume in volumes if volume["name"] in names)


def _sub_path(wire: Mapping[str, Any], env: Mapping[str, str]) -> str:
    text = str(wire.get("subPath") or "")
    if expression := wire.get("subPathExpr"):
        text = expand(str(expression), env)
        if unknown := _REFERENCE.search(text):
            raise CannotStart(CONFIG_ERROR, f"missing value for {unknown[1]}")
    if "\0" in text:
        raise CannotStart(CONFIG_ERROR, f"error SubPath {text!r} must not contain a NUL character")
    if text.startswith("/"):
        raise CannotStart(CONFIG_ERROR, f"error SubPath `{text}` must not be an absolute path")
    if not is_inside(text):
        raise CannotStart(CONFIG_ERROR, f"unable to provision SubPath `{text}`: must not contain '..'")
    return text


def volume_of(pod: Object, index: int, spec: Mapping[str, Any], shelf: VolumeLookup) -> Volume:
    """Find where the bytes of one of a pod's volumes lie; CannotStart says what has to come first."""
    found = _volume_of(pod, index, spec, shelf)
    if found.mounted is not None:
        if shelf.host is None or not shelf.host.may_mount:
            said = f"{found.mounted.kind} can be mounted by a node agent that runs as root only"
            raise not_made(found.name, f"{said}; mount it on this machine, and use its folder as a hostPath")
        return replace(found, source=shelf.folders.mounted(uid_of(pod), index))
    return found


def _volume_of(pod: Object, index: int, spec: Mapping[str, Any], shelf: VolumeLookup) -> Volume:
    own = shelf.folders.volume(uid_of(pod), index)
    if (wire := spec.get("persistentVolumeClaim")) is not None:
        return _claim(pod, str(wire["claimName"]), shelf, read_only=bool(wire.get("readOnly")))
    if spec.get("ephemeral") is not None:
        return _ephemeral(pod, f"{name_of(pod)}-{spec['name']}", shelf)
    if (wire := spec.get("nfs")) is not None:
        return _nfs(str(spec["name"]), wire)
    if (wire := spec.get("hostPath")) is not None:
        return _host_path(str(spec["name"]), wire)
    if any(word in spec for word in MADE_OF_OTHERS):
        # A secret is on no disk.
        # As a kubelet has it: what may be secret, tokens among it, does not go to the disk.
        is_memory = "secret" in spec or "projected" in spec
        place = shelf.folders.memory(uid_of(pod), index) if is_memory else own
        return replace(_of_files(pod, place, spec, shelf), is_memory=is_memory)
    if "emptyDir" in spec or len(spec) == 1:
        return _empty_dir(pod, index, spec, shelf)
    kind = next(word for word in spec if word != "name")
    if kind == "csi":
        said = f"{_NO_DRIVER} {spec['csi'].get('driver')} not found in the list of registered CSI drivers"
        raise not_made(str(spec["name"]), said)
    said = f"a volume of sort {kind} is not offered here"
    raise not_made(str(spec["name"]), f"{said}; use a claim, emptyDir, hostPath, configMap or secret")


def not_made(name: str, why: str) -> CannotStart:
    """Say that a volume cannot be made, as a kubelet does."""
    said = f'MountVolume.SetUp failed for volume "{name}" : {why}'
    return CannotStart(FAILED, said, told=(said,))


def _of_files(pod: Object, place: Path, spec: Mapping[str, Any], shelf: VolumeLookup) -> Volume:
    """Find the files of a volume; a pod that runs keeps those that it was given, also when their source is gone."""
    name = str(spec["name"])
    try:
        files = files_of(spec, VolumeContext(pod=pod, sources=shelf.sources, host=shelf.host))
    except CannotStart as error:
        if not has_begun(pod):
            raise not_made(name, str(error)) from error
        files = None
    return Volume(source=place, name=name, make=SHARED, read_only=True, files=files, is_shared=True)


def _no_claim(said: str) -> CannotStart:
    return CannotStart(FAILED, said, told=(said,))


def _ephemeral(pod: Object, name: str, shelf: VolumeLookup) -> Volume:
    claim = shelf.claims.get((namespace_of(pod), name))
    if claim is not None and (controller_of(claim) or {}).get("uid") != uid_of(pod):
        said = f'PVC "{namespace_of(pod)}/{name}" was not created for pod "{namespace_of(pod)}/{name_of(pod)}"'
        raise _no_claim(f"{said} (pod is not owner)")
    return _claim(pod, name, shelf, read_only=False)


def _claim(pod: Object, name: str, shelf: VolumeLookup, *, read_only: bool) -> Volume:
    claim = shelf.claims.get((namespace_of(pod), name))
    if claim is None:
        raise _no_claim(f'persistentvolumeclaim "{name}" not found')
    if is_deleting(claim) and not has_begun(pod):
        raise _no_claim(f"can't start pod because PVC {namespace_of(pod)}/{name} is being deleted")
    phase = (claim.get("status") or {}).get("phase")
    if phase != "Bound":
        why = annotations_of(claim).get(WAITING, "")
        lost = " (its volume is gone)" if phase == "Lost" else ""
        said = f'persistentvolumeclaim "{name}" is not bound to a volume{lost}'
        raise _no_claim(f"{said}: {why}" if why else f"{said} yet")
    volume = shelf.volumes.get(("", str(claim["spec"].get("volumeName") or "")))
    if volume is None:
        raise _no_claim(f'the volume of persistentvolumeclaim "{name}" is not there')
    return _persistent(name, volume, read_only=read_only)


def _persistent(claim: str, volume: Object, *, read_only: bool) -> Volume:
    """Find the folder of a claim's volume; its access modes say who may have it, and not what may be done with it."""
    spec, name = volume["spec"], name_of(volume)
    if (place := spec.get("local")) is not None:
        return Volume(source=Path(place["path"]), name=name, must_exist=True, read_only=read_only, is_shared=True)
    if (place := spec.get("nfs")) is not None:
        return _nfs(name, {**place, "readOnly": read_only or place.get("readOnly")}, spec.get("mountOptions") or ())
    if (place := spec.get("hostPath")) is None:
        said = f'the volume of persistentvolumeclaim "{claim}" is no folder of this machine (local or hostPath)'
        raise _no_claim(said)
    if annotations_of(volume).get(PROVISIONED_BY) == FOLDERS:
        return Volume(source=Path(place["path"]), name=name, make=SHARED, read_only=read_only, is_shared=True)
    return replace(_host_path(name, place), read_only=read_only)


def has_begun(pod: Object) -> bool:
    """Tell whether a container of a pod has run: what it mounts stays with it then."""
    return any(status.get("containerID") for status in container_statuses_of(pod))


def _host_path(name: str, wire: Mapping[str, Any]) -> Volume:
    kind = str(wire.get("type") or "")
    # Without a type nothing is checked, and container runtimes make what is missing.
    makes = {"DirectoryOrCreate": OWN, "": OWN, "FileOrCreate": 0o644}.get(kind)
    return Volume(source=Path(wire["path"]), name=name, make=makes, host_type=kind)


def _empty_dir(pod: Object, index: int, spec: Mapping[str, Any], shelf: VolumeLookup) -> Volume:
    wire, folders = spec.get("emptyDir") or {}, shelf.folders
    if wire.get("medium") != "Memory":
        return Volume(source=folders.volume(uid_of(pod), index), make=SHARED, is_shared=True)
    limit = wire.get("sizeLimit")
    if _is_alone(pod):
        return Volume(source=None, size=whole(limit) if limit else None)
    # Memory of the machine that all containers of the pod see, and that outlives each of them.
    if limit and shelf.host is not None and shelf.host.may_mount:
        sized = MountSpec(kind=MEMORY, source="tmpfs", options=(f"size={whole(limit)}", f"mode={STICKY:o}"))
        return Volume(source=None, name=str(spec["name"]), is_shared=True, mounted=sized)
    # Whoever may not mount looks from time to time how large it has become (node/lifecycle/eviction.py).
    return Volume(source=folders.memory(uid_of(pod), index), make=STICKY, is_shared=True, is_memory=True)


def _nfs(name: str, wire: Mapping[str, Any], options: Iterable[str] = ()) -> Volume:
    read_only = bool(wire.get("readOnly"))
    chosen = (*map(str, options), *(("ro",) if read_only else ()))
    shared = MountSpec(kind=NFS, source=f"{wire.get('server')}:{wire.get('path')}", options=chosen)
    return Volume(source=None, name=name, read_only=read_only, mounted=shared)


def _is_alone(pod: Object) -> bool:
    """Tell whether a pod's only container runs only once, so that memory of its own is all it can want."""
    spec = pod["spec"]
    is_one = len(spec["containers"]) == 1 and not spec.get("initContainers")
    return is_one and spec.get("restartPolicy") == "Never" and not (spec.get("securityContext") or {}).get("fsGroup")
