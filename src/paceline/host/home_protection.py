"""Protect a cluster: close its folder to other users, and its processes from the OOM killer."""

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
# Only root may set a value below 0; containers have higher values and are killed long before.
SPARED = -900
SCORE = Path("/proc/self/oom_score_adj")
MEMORY = Path("/dev/shm")  # noqa: S108 - private folders
MEMORY_PREFIX = "paceline-"
PATH_BYTES = 4096


def close_home(settings: Settings) -> None:
    """Create the cluster's folder and close it to other users; HostError if it cannot be closed."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
        _close(settings.home, is_folder=True)
        for folder in (settings.keys, settings.store.parent, settings.agent):
            if folder.is_dir():
                _close(folder, is_folder=True)
        os.close(os.open(settings.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))
        _close(settings.log, is_folder=False)
    except OSError as error:
        hint = "set PACELINE_HOME to another folder"
        raise HostError(f"cannot write in {settings.home}: {error.strerror}; {hint}") from error


def _close(path: Path, *, is_folder: bool) -> None:
    """Remove the rights of other users, by handle, so that the checked file is the changed one."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (os.O_DIRECTORY if is_folder else os.O_NOFOLLOW))
    try:
        status = os.fstat(handle)
        if status.st_uid != os.geteuid():
            message = f"{path} belongs to user {status.st_uid}, who could read this cluster's keys and all claims"
            hint = f"give it to user {os.geteuid()} (chown), or set PACELINE_HOME to another folder"
            raise HostError(f"{message}; {hint}")
        if stat.S_IMODE(status.st_mode) & OTHERS:
            os.fchmod(handle, stat.S_IMODE(status.st_mode) & ~OTHERS)
        if stat.S_IMODE(os.fstat(handle).st_mode) & OTHERS:
            message = f"{path} is open to other users, who could read this cluster's keys and all claims"
            raise HostError(
                f"{message}, and its file system does not allow to close it; set PACELINE_HOME to another folder"
            )
    finally:
        os.close(handle)


def protect_from_oom() -> None:
    """Have the kernel kill containers before this process; without the right to, only containers' scores are raised."""
    with contextlib.suppress(OSError):
        SCORE.write_text(str(SPARED))


def private_folders(settings: Settings, cache: Path) -> tuple[str, ...]:
    """Return the resolved paths of the folders that no container may see."""
    return tuple(dict.fromkeys(str(folder.resolve()) for folder in (settings.home, cache)))


def sweep_memory(root: Path = MEMORY) -> tuple[str, ...]:
    """Remove pods' folders in memory whose cluster's folder no longer exists; return the names of the removed ones.

    Only folders of this user that name their cluster's folder are removed.
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
