"""Make what mounts show: folders, files, rights. What the user must bring is only looked for."""

import errno
import hashlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from paceline.effects import Files
from paceline.node.host_info import CannotStart
from paceline.node.runtime.env import CONFIG_ERROR
from paceline.node.volumes.projection import FAILED, File
from paceline.node.volumes.volumes import HOST_PATHS, OWN, SHARED, Mount, Volume, not_made

# As a kubelet has it: what is shown is a link to the files of one moment, so that all of them change at once.
CURRENT = "..data"
PRIVATE = 0o700
# What a path that leads out of its volume, or through something that is no folder, is refused with.
ASTRAY = (errno.EXDEV, errno.ELOOP, errno.ENOTDIR, errno.EAGAIN)


def make_sub_path(files: Files, mount: Mount, container: str) -> None:
    """Make the folder in a volume that a mount of a container shows; CannotStart when it would lie outside of it.

    The shim opens it once more, by handle (node/runtime/subpath_mounts.py): whatever happens to the name from here on,
    the container is shown a part of its volume or does not start.
    """
    root = mount.volume.source
    if root is None or not mount.sub_path:
        return
    try:
        files.make_beneath(root, mount.sub_path, mount.volume.make or OWN)
    except OSError as error:
        if error.errno not in ASTRAY:
            raise
        said = f'failed to prepare subPath for volumeMount "{mount.name}" of container "{container}"'
        raise CannotStart(CONFIG_ERROR, said) from error


def make_volume(files: Files, volume: Volume, group: int | None = None) -> None:
    """Make a volume's folder and the files that are to be in it."""
    if volume.source is None:
        return
    if volume.is_memory:
        files.make_folder(volume.source.parent, PRIVATE)
    if volume.files is None:
        _make_place(files, volume, volume.source)
    else:
        fresh = fill(files, volume.source, volume.files)
        if group is not None and fresh is not None:
            files.share(fresh, group, is_read_only=True)
    if group is not None and volume.is_shared:
        files.share(volume.source, group, is_read_only=volume.read_only)


def _make_place(files: Files, volume: Volume, source: Path) -> None:
    wanted, word = HOST_PATHS.get(volume.host_type, ("", ""))
    found = files.sort(source)
    if not found and volume.make is not None:
        if volume.host_type == "FileOrCreate":
            _make_file(files, volume, source)
        else:
            files.make_folder(source, volume.make)
    elif wanted and found != wanted:
        raise not_made(volume.name, f"hostPath type check failed: {source} is not a {word}")
    elif not found and volume.must_exist:
        said = f'MountVolume.NewMounter initialization failed for volume "{volume.name}"'
        said = f'{said} : path "{source}" does not exist'
        raise CannotStart(FAILED, said, told=(said,))


def _make_file(files: Files, volume: Volume, path: Path) -> None:
    if files.sort(path.parent) != "folder":
        raise not_made(volume.name, f"open {path}: no such file or directory")
    files.overwrite(path, b"", volume.make or 0)


def fill(files: Files, folder: Path, wanted: tuple[File, ...]) -> Path | None:
    """Let a folder hold these files and no others, all at once; give where the new ones lie, if any are new."""
    files.make_folder(folder, SHARED)
    version = f"..{_digest(wanted)}"
    tops = {PurePosixPath(name).parts[0] for name, _, _ in wanted}
    before = set(files.names(folder))
    if {version, CURRENT, *tops} == before:
        return None
    files.make_folder(folder / version, OWN)
    for name, data, mode in wanted:
        path = folder / version / name
        files.make_folder(path.parent, OWN)
        files.overwrite(path, data, mode)
    files.link(folder / CURRENT, version)
    for name in sorted(tops - before):
        files.link(folder / name, f"{CURRENT}/{name}")
    for name in sorted(before - {version, CURRENT, *tops}):
        files.remove(folder / name)
    return folder / version


def _digest(wanted: Iterable[File]) -> str:
    found = hashlib.sha256()
    for name, data, mode in sorted(wanted):
        found.update(f"{name}\0{mode}\0{len(data)}\0".encode())
        found.update(data)
    return found.hexdigest()[:16]
