"""Create the folders and files of volumes, with their modes and groups, and check what users must provide."""

import errno
import hashlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from paceline.effects import Files
from paceline.node.host_info import CannotStart
from paceline.node.runtime.env import CONFIG_ERROR
from paceline.node.volumes.projection import FAILED, File
from paceline.node.volumes.volumes import HOST_PATHS, OWN, SHARED, PodVolume, VolumeMount, mount_failed

# As with a kubelet, the visible names are links through this one, so that all files change at once.
CURRENT = "..data"
PRIVATE = 0o700
# Errors for a path that leads out of its volume, or through something that is not a folder.
LEADS_OUT = (errno.EXDEV, errno.ELOOP, errno.ENOTDIR, errno.EAGAIN)


def make_sub_path(files: Files, mount: VolumeMount, container: str) -> None:
    """Create the folder of a subPath in its volume; CannotStart if it would be outside of the volume.

    The shim opens the folder again by handle (node/runtime/subpath_mounts.py): whatever happens to the name in between,
    the container gets a part of its volume or does not start.
    """
    root = mount.volume.source
    if root is None or not mount.sub_path:
        return
    try:
        files.make_beneath(root, mount.sub_path, mount.volume.make or OWN)
    except OSError as error:
        if error.errno not in LEADS_OUT:
            raise
        message = f'failed to prepare subPath for volumeMount "{mount.name}" of container "{container}"'
        raise CannotStart(CONFIG_ERROR, message) from error


def make_volume(files: Files, volume: PodVolume, group: int | None = None) -> None:
    """Create a volume's folder and files; CannotStart if something that must exist is missing."""
    if volume.source is None:
        return
    if volume.is_memory:
        files.make_folder(volume.source.parent, PRIVATE)
    if volume.files is None:
        _make_source(files, volume, volume.source)
    else:
        new = fill(files, volume.source, volume.files)
        if group is not None and new is not None:
            files.share(new, group, is_read_only=True)
    if group is not None and volume.is_shared:
        files.share(volume.source, group, is_read_only=volume.read_only)


def _make_source(files: Files, volume: PodVolume, source: Path) -> None:
    expected, word = HOST_PATHS.get(volume.host_type, ("", ""))
    actual = files.sort(source)
    if not actual and volume.make is not None:
        if volume.host_type == "FileOrCreate":
            _make_file(files, volume, source)
        else:
            files.make_folder(source, volume.make)
    elif expected and actual != expected:
        raise mount_failed(volume.name, f"hostPath type check failed: {source} is not a {word}")
    elif not actual and volume.must_exist:
        message = f'MountVolume.NewMounter initialization failed for volume "{volume.name}"'
        message = f'{message} : path "{source}" does not exist'
        raise CannotStart(FAILED, message, messages=(message,))


def _make_file(files: Files, volume: PodVolume, path: Path) -> None:
    if files.sort(path.parent) != "folder":
        raise mount_failed(volume.name, f"open {path}: no such file or directory")
    files.overwrite(path, b"", volume.make or 0)


def fill(files: Files, folder: Path, content: tuple[File, ...]) -> Path | None:
    """Replace all files of a folder at once; return the folder of the new files, or None if nothing changed."""
    files.make_folder(folder, SHARED)
    version = f"..{_digest(content)}"
    names = {PurePosixPath(name).parts[0] for name, _, _ in content}
    existing = set(files.names(folder))
    if {version, CURRENT, *names} == existing:
        return None
    files.make_folder(folder / version, OWN)
    for name, data, mode in content:
        path = folder / version / name
        files.make_folder(path.parent, OWN)
        files.overwrite(path, data, mode)
    files.link(folder / CURRENT, version)
    for name in sorted(names - existing):
        files.link(folder / name, f"{CURRENT}/{name}")
    for name in sorted(existing - {version, CURRENT, *names}):
        files.remove(folder / name)
    return folder / version


def _digest(content: Iterable[File]) -> str:
    digest = hashlib.sha256()
    for name, data, mode in sorted(content):
        digest.update(f"{name}\0{mode}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()[:16]
