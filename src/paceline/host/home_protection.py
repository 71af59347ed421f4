"""Keep what belongs to a cluster to itself: its folder closed to others, its processes spared when memory runs out."""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from paceline.errors import HostError
from paceline.node.host_info import MEMORY_OWNER
from paceline.settings import Settings

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
OTHERS = 0o077
# Below 0 the kernel takes it from root only; then containers, which are above, end long before these.
SPARED = -900
SCORE = Path("/proc/self/oom_score_adj")
MEMORY = Path("/dev/shm")  # noqa: S108 - folders of their owner's
MEMORY_PREFIX = "paceline-"
PATH_BYTES = 4096


def close_home(settings: Settings) -> None:
    """Make the cluster's folder and close it to everybody else; HostError when it cannot be closed."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
        _close(settings.home, is_folder=True)
        for folder in (settings.keys, settings.store.parent, settings.agent):
            if folder.is_dir():
                _close(folder, is_folder=True)
        os.close(os.open(settings.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))
        _close(settings.log, is_folder=False)
    except OSError as error:
        hint = "PACELINE_HOME chooses another folder"
        raise HostError(f"cannot write in {settings.home}: {error.strerror}; {hint}") from error


def _close(path: Path, *, is_folder: bool) -> None:
    """Take away what others may do, by a handle: what is checked is what is changed."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (os.O_DIRECTORY if is_folder else os.O_NOFOLLOW))
    try:
        about = os.fstat(handle)
        if about.st_uid != os.geteuid():
            said = f"{path} belongs to user {about.st_uid}, who could read this cluster's keys and all claims"
            hint = f"give it to user {os.geteuid()} (chown), or choose another folder by PACELINE_HOME"
            raise HostError(f"{said}; {hint}")
        if stat.S_IMODE(about.st_mode) & OTHERS:
            os.fchmod(handle, stat.S_IMODE(about.st_mode) & ~OTHERS)
        if stat.S_IMODE(os.fstat(handle).st_mode) & OTHERS:
            said = f"{path} is open to other users, who could read this cluster's keys and all claims"
            raise HostError(f"{said}, and its file system keeps it so; choose another folder by PACELINE_HOME")
    finally:
        os.close(handle)


def be_spared_by_oom() -> None:
    """Ask the kernel to end containers before this process; without the right to, containers alone are put above."""
    with contextlib.suppress(OSError):
        SCORE.write_text(str(SPARED))


def private_folders(settings: Settings, cache: Path) -> tuple[str, ...]:
    """Return the folders that no container may see, at their real places."""
    return tuple(dict.fromkeys(str(folder.resolve()) for folder in (settings.home, cache)))


def sweep_memory(root: Path = MEMORY) -> tuple[str, ...]:
    """Remove what pods of clusters left in memory whose folders are gone; give what was removed.

    Only folders of this user that say whose they are, and only when that folder is not there.
    """
    return tuple(name for name in _orphans(root) if _removed(root / name))


def _orphans(root: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for entry in sorted(root.iterdir()):
            if entry.name.startswith(MEMORY_PREFIX) and _is_orphan(entry):
                yield entry.name


def _is_orphan(folder: Path) -> bool:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            return False
        file = os.open(MEMORY_OWNER, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
        try:
            home = os.read(file, PATH_BYTES).decode(errors="surrogateescape")
        finally:
            os.close(file)
    except OSError:
        return False
    finally:
        os.close(handle)
    return home.startswith("/") and not os.path.lexists(home)


def _removed(folder: Path) -> bool:
    # By handles, so that no link is followed (shutil.rmtree.avoids_symlink_attacks).
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()
