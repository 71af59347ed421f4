"""Resolve a pod's volumes to folders of this machine, and its volumeMounts to paths in the sandbox."""

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
# Modes of new folders. Claims and scratch folders are open to the pod's user; the cluster's own folder above them keeps
# other users out.
SHARED, OWN = 0o777, 0o755
# Memory is like /tmp: users cannot remove each other's files.
STICKY = 0o1777
# What a hostPath of each type must be, and the word that a kubelet uses for it.
HOST_PATHS = {
    "Directory": ("folder", "directory"),
    "DirectoryOrCreate": ("folder", "directory"),
    "File": ("file", "file"),
    "FileOrCreate": ("file", "file"),
    "Socket": ("socket", "socket file"),
    "CharDevice": ("character device", "character device"),
    "BlockDevice": ("block device", "block device"),
}
# Volumes whose files come from other objects.
PROJECTED = ("configMap", "secret", "projected", "downwardAPI")
_REFERENCE = re.compile(r"\$\(([^)]*)\)")
_NO_DRIVER = "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name"


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSpec:
    """A mount that the kernel has to make before containers start: memory with a size limit, or NFS."""

    kind: str
    source: str
    options: tuple[str, ...] = ()


class Mounts(Protocol):
    """The mounts of this machine's pods. They outlive the agent, and a new agent finds them again."""

    async def mount(self, spec: MountSpec, target: Path) -> None:
        """Mount at a folder, created if missing, unless it is mounted already; CannotStart says what is missing."""
        ...

    async def unmount(self, uid: str) -> None:
        """Unmount everything of a pod in which nothing runs any more; ServiceUnavailable if a mount is in use."""
        ...

    def pod_uids(self) -> frozenset[str]:
        """Return the uids of the pods that have mounts."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PodVolume:
    """A volume of a pod on this machine: a folder or file, or memory if there is no source."""

    source: Path | None
    # The name in error messages.
    name: str = ""
    # The mode with which a missing folder is created; None: it must exist.
    make: int | None = None
    # The key in `HOST_PATHS` that the source must match.
    host_type: str = ""
    # Whether the source must exist, whatever it is.
    must_exist: bool = False
    size: int | None = None
    read_only: bool = False
    # The exact content of the folder; None: the content belongs to the user.
    files: tuple[File, ...] | None = None
    # Whether the pod's fsGroup becomes its owner.
    is_shared: bool = False
    # Whether the folder is in memory, on a file system that other users of this machine share.
    is_memory: bool = False
    # What has to be mounted at the source first.
    mounted: MountSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeMount:
    """A volume at a path in the sandbox."""

    target: str
    volume: PodVolume
    # The name of the volume in the pod's spec.
    name: str = ""
    sub_path: str = ""
    read_only: bool = False

    @property
    def source(self) -> Path | None:
        """Return what is bound at the target; None for memory."""
        return self.volume.source / self.sub_path if self.volume.source else None


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeLookup:
    """The objects and folders that a pod's volumes refer to."""

    claims: Mapping[Key, Object]
    volumes: Mapping[Key, Object]
    sources: Sources
    folders: Folders
    # Its capacity is the value of a resource limit that is not set.
    host: Host | None = None


def mounts_of(
    pod: Object, container: Object, lookup: VolumeLookup, env: Mapping[str, str] | None = None
) -> tuple[VolumeMount, ...]:
    """Return a container's mounts, outer paths before inner ones; CannotStart says what is missing."""
    named = {volume["name"]: (index, volume) for index, volume in enumerate(pod["spec"].get("volumes") or ())}
    mounts = []
    for wire in container.get("volumeMounts") or ():
        if wire["name"] not in named:
            message = f"volumeMounts: {wire['name']!r} is not among the pod's volumes: {', '.join(named) or 'none'}"
            raise CannotStart(CONFIG_ERROR, message)
        index, spec = named[wire["name"]]
        volume = volume_of(pod, index, spec, lookup)
        sub_path = _sub_path(wire, env or {})
        read_only = volume.read_only or bool(wire.get("readOnly"))
        target = path_in_sandbox(str(wire["mountPath"]), "mountPath")
        name = str(wire["name"])
        mounts.append(VolumeMount(target=target, volume=volume, name=name, sub_path=sub_path, read_only=read_only))
    return tuple(sorted(mounts, key=lambda mount: PurePosixPath(mount.target).parts))


def mounted_volumes(pod: Object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Return the volumes that containers of a pod mount, with their indexes in the pod's spec."""
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


def volume_of(pod: Object, index: int, spec: Mapping[str, Any], lookup: VolumeLookup) -> PodVolume:
    """Return one of a pod's volumes on this machine; CannotStart says what has to exist first."""
    volume = _volume_of(pod, index, spec, lookup)
    if volume.mounted is None:
        return volume
    if lookup.host is None or not lookup.host.may_mount:
        message = f"{volume.mounted.kind} can only be mounted if the node agent runs as root"
        raise mount_failed(volume.name, f"{message}; mount it on this machine, and use its folder as a hostPath")
    return replace(volume, source=lookup.folders.mounted(uid_of(pod), index))


def _volume_of(pod: Object, index: int, spec: Mapping[str, Any], lookup: VolumeLookup) -> PodVolume:
    if (wire := spec.get("persistentVolumeClaim")) is not None:
        return _claim(pod, str(wire["claimName"]), lookup, read_only=bool(wire.get("readOnly")))
    if spec.get("ephemeral") is not None:
        return _ephemeral(pod, f"{name_of(pod)}-{spec['name']}", lookup)
    if (wire := spec.get("nfs")) is not None:
        return _nfs(str(spec["name"]), wire)
    if (wire := spec.get("hostPath")) is not None:
        return _host_path(str(spec["name"]), wire)
    if any(kind in spec for kind in PROJECTED):
        # As with a kubelet, what may be secret, tokens included, is not written to a disk.
        is_memory = "secret" in spec or "projected" in spec
        folder = (lookup.folders.memory if is_memory else lookup.folders.volume)(uid_of(pod), index)
        return replace(_projected(pod, folder, spec, lookup), is_memory=is_memory)
    if "emptyDir" in spec or len(spec) == 1:
        return _empty_dir(pod, index, spec, lookup)
    kind = next(field for field in spec if field != "name")
    if kind == "csi":
        message = f"{_NO_DRIVER} {spec['csi'].get('driver')} not found in the list of registered CSI drivers"
        raise mount_failed(str(spec["name"]), message)
    message = f"volumes of type {kind} are not supported"
    raise mount_failed(str(spec["name"]), f"{message}; use a claim, emptyDir, hostPath, configMap or secret")


def mount_failed(name: str, message: str) -> CannotStart:
    """Return the error for a volume that cannot be set up, in a kubelet's words."""
    return _failed(f'MountVolume.SetUp failed for volume "{name}" : {message}')


def _failed(message: str) -> CannotStart:
    return CannotStart(FAILED, message, messages=(message,))


def _projected(pod: Object, folder: Path, spec: Mapping[str, Any], lookup: VolumeLookup) -> PodVolume:
    """Return a volume of files; a running pod keeps its files if their source no longer exists."""
    name = str(spec["name"])
    try:
        files = files_of(spec, VolumeContext(pod=pod, sources=lookup.sources, host=lookup.host))
    except CannotStart as error:
        if not has_started(pod):
            raise mount_failed(name, str(error)) from error
        files = None
    return PodVolume(source=folder, name=name, make=SHARED, read_only=True, files=files, is_shared=True)


def _ephemeral(pod: Object, name: str, lookup: VolumeLookup) -> PodVolume:
    claim = lookup.claims.get((namespace_of(pod), name))
    if claim is not None and (controller_of(claim) or {}).get("uid") != uid_of(pod):
        message = f'PVC "{namespace_of(pod)}/{name}" was not created for pod "{namespace_of(pod)}/{name_of(pod)}"'
        raise _failed(f"{message} (pod is not owner)")
    return _claim(pod, name, lookup, read_only=False)


def _claim(pod: Object, name: str, lookup: VolumeLookup, *, read_only: bool) -> PodVolume:
    claim = lookup.claims.get((namespace_of(pod), name))
    if claim is None:
        raise _failed(f'persistentvolumeclaim "{name}" not found')
    if is_deleting(claim) and not has_started(pod):
        raise _failed(f"can't start pod because PVC {namespace_of(pod)}/{name} is being deleted")
    phase = (claim.get("status") or {}).get("phase")
    if phase != "Bound":
        cause = annotations_of(claim).get(WAITING, "")
        lost = " (its volume is gone)" if phase == "Lost" else ""
        message = f'persistentvolumeclaim "{name}" is not bound to a volume{lost}'
        raise _failed(f"{message}: {cause}" if cause else f"{message} yet")
    volume = lookup.volumes.get(("", str(claim["spec"].get("volumeName") or "")))
    if volume is None:
        raise _failed(f'the volume of persistentvolumeclaim "{name}" does not exist')
    return _persistent(name, volume, read_only=read_only)


def _persistent(claim: str, volume: Object, *, read_only: bool) -> PodVolume:
    """Return a PersistentVolume's folder; its access modes limit which pods may use it, not what they may do."""
    spec, name = volume["spec"], name_of(volume)
    if (wire := spec.get("local")) is not None:
        return PodVolume(source=Path(wire["path"]), name=name, must_exist=True, read_only=read_only, is_shared=True)
    if (wire := spec.get("nfs")) is not None:
        return _nfs(name, {**wire, "readOnly": read_only or wire.get("readOnly")}, spec.get("mountOptions") or ())
    if (wire := spec.get("hostPath")) is None:
        message = f'the volume of persistentvolumeclaim "{claim}" is not a folder of this machine (local or hostPath)'
        raise _failed(message)
    if annotations_of(volume).get(PROVISIONED_BY) == FOLDERS:
        return PodVolume(source=Path(wire["path"]), name=name, make=SHARED, read_only=read_only, is_shared=True)
    return replace(_host_path(name, wire), read_only=read_only)


def has_started(pod: Object) -> bool:
    """Return whether a container of a pod has run, so that the pod keeps what it mounts."""
    return any(status.get("containerID") for status in container_statuses_of(pod))


def _host_path(name: str, wire: Mapping[str, Any]) -> PodVolume:
    kind = str(wire.get("type") or "")
    # Without a type nothing is checked, and container runtimes create a missing folder.
    mode = {"DirectoryOrCreate": OWN, "": OWN, "FileOrCreate": 0o644}.get(kind)
    return PodVolume(source=Path(wire["path"]), name=name, make=mode, host_type=kind)


def _empty_dir(pod: Object, index: int, spec: Mapping[str, Any], lookup: VolumeLookup) -> PodVolume:
    wire, folders = spec.get("emptyDir") or {}, lookup.folders
    if wire.get("medium") != "Memory":
        return PodVolume(source=folders.volume(uid_of(pod), index), make=SHARED, is_shared=True)
    limit = wire.get("sizeLimit")
    if _has_one_run(pod):
        return PodVolume(source=None, size=whole(limit) if limit else None)
    # Memory of the machine that all containers of the pod share, and that outlives each of them.
    if limit and lookup.host is not None and lookup.host.may_mount:
        tmpfs = MountSpec(kind=MEMORY, source="tmpfs", options=(f"size={whole(limit)}", f"mode={STICKY:o}"))
        return PodVolume(source=None, name=str(spec["name"]), is_shared=True, mounted=tmpfs)
    # Without the right to mount, the size is checked periodically instead (node/lifecycle/eviction.py).
    return PodVolume(source=folders.memory(uid_of(pod), index), make=STICKY, is_shared=True, is_memory=True)


def _nfs(name: str, wire: Mapping[str, Any], options: Iterable[str] = ()) -> PodVolume:
    read_only = bool(wire.get("readOnly"))
    options = (*map(str, options), *(("ro",) if read_only else ()))
    spec = MountSpec(kind=NFS, source=f"{wire.get('server')}:{wire.get('path')}", options=options)
    return PodVolume(source=None, name=name, read_only=read_only, mounted=spec)


def _has_one_run(pod: Object) -> bool:
    """Return whether a pod's only container runs only once, so that its memory need not be shared."""
    spec = pod["spec"]
    is_single = len(spec["containers"]) == 1 and not spec.get("initContainers")
    return is_single and spec.get("restartPolicy") == "Never" and not (spec.get("securityContext") or {}).get("fsGroup")
