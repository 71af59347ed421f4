"""Parts of volumes on their way into a sandbox: each is opened by handle and mounted at a place of the agent's own.

Part of the shim, hence standard library only. Bubblewrap looks up the name of a source again, milliseconds after it was
checked, and in between another container may exchange the folder for a link. It is therefore given a place that no
container can write to, at which the handle is mounted.

As root the mount is made where the agent's other mounts are, and taken away once the sandbox has its own copy. Without
root it is made in a mount namespace that only bubblewrap is started in, and goes with it.
"""

import contextlib
import ctypes
import errno
import os
import stat
from pathlib import Path
from typing import Any

from paceline.filesystem.handles import PATH, closed, link_to, open_beneath

BIND, RECURSIVE, DETACH = 4096, 16384, 2
NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000

_libc = ctypes.CDLL(None, use_errno=True)


class Binds:
    """The parts of volumes that one container is given."""

    def __init__(self, folder: str, *, may_mount: bool, name: str = "") -> None:
        """Take the folder in which the places are made, and what their names begin with."""
        self._folder = Path(folder)
        self._may_mount = may_mount
        self._name = name
        self._places: list[tuple[Path, dict[str, Any]]] = []

    def words(self, wanted: dict[str, Any]) -> tuple[str, ...]:
        """Mount a part of a volume at a place of the agent's own, and spell how bubblewrap binds it from there."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = self._folder / f"{self._name}{len(self._places)}"
        with closed(_opened(wanted)) as handle:
            _make(place, is_folder=stat.S_ISDIR(os.fstat(handle).st_mode))
            self._places.append((place, wanted))
            if self._may_mount:
                _mount(handle, place, wanted)
        return (str(wanted["bind"]), str(place), str(wanted["place"]))

    @property
    def are_up(self) -> bool:
        """Tell whether there are mounts or places that `undo` would take away."""
        return bool(self._places)

    @property
    def is_apart(self) -> bool:
        """Tell whether bubblewrap has to be started in a mount namespace that `enter` makes."""
        return bool(self._places) and not self._may_mount

    def enter(self) -> None:
        """Leave for a mount namespace of one's own, and mount there; only in a process that becomes bubblewrap."""
        uid, gid = os.getuid(), os.getgid()
        _check(_libc.unshare(NEW_USER | NEW_MOUNTS), "a subPath needs user namespaces, or a node agent that is root")
        for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            Path("/proc/self", file).write_text(text)
        for place, wanted in self._places:
            # Opened again: a handle from outside of the namespace cannot be mounted in it.
            with closed(_opened(wanted)) as handle:
                _mount(handle, place, wanted)

    def undo(self) -> None:
        """Take the mounts and their places away; the sandbox keeps what it has bound."""
        while self._places:
            place, _ = self._places.pop()
            remove_place(place)
            with contextlib.suppress(OSError):
                self._folder.rmdir()


def check_inside(wanted: dict[str, Any]) -> None:
    """Refuse a place in a volume, at which something is mounted or made, when a link on the way leads out of it.

    Bubblewrap follows such a link while the machine's root is still in reach, and makes what is missing there. What is
    missing in the volume is made by bubblewrap.
    """
    parts = wanted["inside"].split("/")
    with closed(_opened(wanted)) as root:
        for count in range(len(parts), 0, -1):
            with contextlib.suppress(FileNotFoundError):
                try:
                    os.close(open_beneath(root, "/".join(parts[:count])))
                except OSError as error:
                    if error.errno not in (errno.EXDEV, errno.ELOOP):
                        raise
                    why = f'a link in volume "{wanted["volume"]}" leads out of the volume'
                    raise OSError(error.errno, why, str(wanted["place"])) from error
                return


def remove_place(place: Path) -> None:
    """Take away whatever is mounted at a place, and then the place, which is empty."""
    # More than once when somebody mounted over it; EINVAL says that nothing is mounted any more.
    while _libc.umount2(os.fsencode(place), DETACH) == 0:
        pass
    with contextlib.suppress(OSError):
        if place.is_dir():
            place.rmdir()
        elif place.stat().st_size == 0:
            place.unlink()


def _opened(wanted: dict[str, Any]) -> int:
    try:
        with closed(os.open(wanted["root"], PATH)) as root:
            return open_beneath(root, wanted["subPath"])
    except OSError as error:
        raise _failed(error.errno or errno.EIO, wanted) from error


def _make(place: Path, *, is_folder: bool) -> None:
    """Make what is mounted over: a folder for a folder, else an empty file."""
    remove_place(place)
    if is_folder:
        place.mkdir(mode=0o700)
    else:
        place.touch(mode=0o600)


def _mount(handle: int, place: Path, wanted: dict[str, Any]) -> None:
    if _libc.mount(os.fsencode(link_to(handle)), os.fsencode(place), None, ctypes.c_ulong(BIND | RECURSIVE), None):
        raise _failed(ctypes.get_errno(), wanted)


def _failed(number: int, wanted: dict[str, Any]) -> OSError:
    why = "it leads out of its volume" if number == errno.EXDEV else os.strerror(number)
    said = f'failed to prepare subPath "{wanted["subPath"]}" of volumeMount "{wanted["volume"]}"'
    return OSError(number, why, said)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
