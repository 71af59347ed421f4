"""Mount subPaths of volumes for a sandbox, by handle. Part of the shim: standard library only.

Bubblewrap resolves the path of a source again, milliseconds after it was checked, and in between another container may
replace the folder by a link. Therefore the checked handle is mounted at a place that no container can write to.

As root the shim mounts it where the agent's other mounts are, and unmounts it once the sandbox has its own copy.
Without root it mounts in a mount namespace that only bubblewrap is started in, and that ends with it.
"""

import contextlib
import ctypes
import errno
import os
import stat
from pathlib import Path
from typing import Any

from paceline.filesystem.handles import PATH, closed, link_to, open_beneath
from paceline.node.runtime.process_limits import check_result, libc

MS_BIND, MS_REC, MNT_DETACH = 4096, 16384, 2
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000


class SubpathMounts:
    """The subPaths that one container mounts."""

    def __init__(self, folder: str, *, may_mount: bool, name: str = "") -> None:
        """Take the folder of the mount points, and the prefix of their names."""
        self._folder = folder
        self._may_mount = may_mount
        self._name = name
        self._places: list[tuple[Path, dict[str, Any]]] = []

    def add(self, entry: dict[str, Any]) -> tuple[str, ...]:
        """Mount a subPath, and return the arguments with which bubblewrap binds it from there."""
        # Only here: most containers have no subPath, and their shims need not create a Path.
        folder = Path(self._folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = folder / f"{self._name}{len(self._places)}"
        with closed(_open(entry)) as handle:
            _create(place, is_folder=stat.S_ISDIR(os.fstat(handle).st_mode))
            self._places.append((place, entry))
            if self._may_mount:
                _mount(handle, place, entry)
        return (str(entry["bind"]), str(place), str(entry["place"]))

    @property
    def is_mounted(self) -> bool:
        """Whether `unmount` has anything to do."""
        return bool(self._places)

    @property
    def needs_namespace(self) -> bool:
        """Whether bubblewrap must be started in the mount namespace that `enter` creates."""
        return bool(self._places) and not self._may_mount

    def enter(self) -> None:
        """Create a mount namespace and mount in it; only the process that becomes bubblewrap calls this."""
        uid, gid = os.getuid(), os.getgid()
        problem = "a subPath needs user namespaces, or a node agent that runs as root"
        check_result(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS), problem)
        for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            Path("/proc/self", file).write_text(text)
        for place, entry in self._places:
            # Opened again: a handle from outside of the namespace cannot be mounted in it.
            with closed(_open(entry)) as handle:
                _mount(handle, place, entry)

    def unmount(self) -> None:
        """Unmount, and remove the mount points; the sandbox keeps its own binds."""
        while self._places:
            place, _ = self._places.pop()
            remove_mount_point(place)
            with contextlib.suppress(OSError):
                Path(self._folder).rmdir()


def check_inside(entry: dict[str, Any]) -> None:
    """Raise OSError when a link on the way to a mount point or folder inside of a volume leads out of the volume.

    Bubblewrap creates missing folders, and follows such a link while the host's root is still reachable.
    """
    parts = entry["inside"].split("/")
    with closed(_open(entry)) as root:
        for count in range(len(parts), 0, -1):
            with contextlib.suppress(FileNotFoundError):
                try:
                    os.close(open_beneath(root, "/".join(parts[:count])))
                except OSError as error:
                    if error.errno not in (errno.EXDEV, errno.ELOOP):
                        raise
                    problem = f'a link in volume "{entry["volume"]}" leads out of the volume'
                    raise OSError(error.errno, problem, str(entry["place"])) from error
                return


def remove_mount_point(place: Path) -> None:
    """Unmount everything at a mount point, and remove the mount point, which is empty."""
    # Mounts may be stacked; EINVAL says that nothing is mounted any more.
    while libc.umount2(os.fsencode(place), MNT_DETACH) == 0:
        pass
    with contextlib.suppress(OSError):
        if place.is_dir():
            place.rmdir()
        elif place.stat().st_size == 0:
            place.unlink()


def _open(entry: dict[str, Any]) -> int:
    try:
        with closed(os.open(entry["root"], PATH)) as root:
            return open_beneath(root, entry["subPath"])
    except OSError as error:
        raise _failed(error.errno or errno.EIO, entry) from error


def _create(place: Path, *, is_folder: bool) -> None:
    """Create a mount point: a folder for a folder, else an empty file."""
    remove_mount_point(place)
    if is_folder:
        place.mkdir(mode=0o700)
    else:
        place.touch(mode=0o600)


def _mount(handle: int, place: Path, entry: dict[str, Any]) -> None:
    if libc.mount(os.fsencode(link_to(handle)), os.fsencode(place), None, ctypes.c_ulong(MS_BIND | MS_REC), None):
        raise _failed(ctypes.get_errno(), entry)


def _failed(number: int, entry: dict[str, Any]) -> OSError:
    reason = "it leads out of its volume" if number == errno.EXDEV else os.strerror(number)
    subject = f'failed to prepare subPath "{entry["subPath"]}" of volumeMount "{entry["volume"]}"'
    return OSError(number, reason, subject)
