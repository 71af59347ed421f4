"""Remove, measure and change the group of trees that containers can write to, by handle; standard library only.

The tree is hostile: links, pipes, devices, folders nested ten thousand deep, and names that change at any time. A step
down opens one name without following a link; a step up goes back to an open handle, or to `..` if that is still the
folder we came from. At most `MOST_OPEN` folders are open, and nothing recurses.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from paceline.filesystem.handles import FOLDER, NO_XDEV, PATH, UNSUPPORTED, closed, link_to, openat2

# How many folders of one branch are open at once; those above are opened again by `..`.
MOST_OPEN = 64
# How often a folder is emptied while other processes fill it.
MOST_ROUNDS = 16
# The unit of st_blocks, whatever the disk's block size is.
BLOCK_BYTES = 512
# The errors for a folder that was removed, or replaced by something else.
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


@dataclass(slots=True)
class Folder:
    """A folder on the current branch: its handle while it is open, and its identity."""

    name: str
    handle: int
    identity: tuple[int, int]
    # The names of folders in it that are still to be walked.
    pending: list[str] = field(default_factory=list)

    def close(self) -> None:
        """Close the handle; the identity stays."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


class Walk:
    """Walks a tree depth first, and yields every folder after those in it; mounts are not entered."""

    def __init__(self, root: int, *, must_open: bool = False) -> None:
        """Start at an open folder, which the caller closes; with `must_open`, folders without rights get them."""
        self._must_open = must_open and os.geteuid() != 0
        # The error of the first existing folder that could not be entered.
        self.refused: OSError | None = None
        self._branch = [_folder(".", os.open(".", FOLDER, dir_fd=root))]

    def folders(self) -> Iterator[tuple[int, str, list[str], int]]:
        """Yield a folder's handle, its name, the names in it except folders, and its parent's handle (-1: none).

        Callers must work by these handles alone, which are closed when the next folder is requested.
        """
        try:
            files = [self._enter()]
            while self._branch:
                here = self._branch[-1]
                if here.pending:
                    if self._descend(here.pending.pop()):
                        files.append(self._enter())
                    continue
                yield here.handle, here.name, files.pop(), self._above()
                self._branch.pop().close()
                # A parent that was moved away is not walked any further.
                while self._branch and self._branch[-1].handle < 0:
                    self._branch.pop()
                    files.pop()
        finally:
            for folder in self._branch:
                folder.close()

    def _enter(self) -> list[str]:
        """List the last folder of the branch; return the names in it that are not folders."""
        here, files = self._branch[-1], []
        if self._must_open:
            with contextlib.suppress(OSError):
                os.fchmod(here.handle, 0o700)
        with contextlib.suppress(OSError), os.scandir(here.handle) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    here.pending.append(entry.name)
                else:
                    files.append(entry.name)
        return files

    def _descend(self, name: str) -> bool:
        """Open a folder in the last one; return False if it was removed, is closed to us, or is a mount."""
        above = self._branch[-1].handle
        try:
            if self._must_open:
                _open_up(above, name)
            handle = open_folder(above, name)
        except OSError as error:
            if error.errno not in GONE:
                self.refused = self.refused or error
            return False
        self._branch.append(_folder(name, handle))
        if len(self._branch) > MOST_OPEN:
            self._branch[-MOST_OPEN].close()
        return True

    def _above(self) -> int:
        """Return the handle of the last folder's parent, opened again if it was closed; -1 if it was moved."""
        if len(self._branch) == 1:
            return -1
        here, above = self._branch[-1], self._branch[-2]
        if above.handle < 0:
            with contextlib.suppress(OSError):
                handle = os.open("..", FOLDER, dir_fd=here.handle)
                if _identity(handle) == above.identity:
                    above.handle = handle
                else:
                    os.close(handle)
        return above.handle


def _open_up(above: int, name: str) -> None:
    """Give the owner of a folder all rights to it."""
    with closed(os.open(name, PATH | os.O_NOFOLLOW | os.O_DIRECTORY, dir_fd=above)) as handle:
        if stat.S_IMODE(os.fstat(handle).st_mode) & stat.S_IRWXU != stat.S_IRWXU:
            link_to(handle).chmod(0o700)


def _identity(handle: int) -> tuple[int, int]:
    status = os.fstat(handle)
    return status.st_dev, status.st_ino


def _folder(name: str, handle: int) -> Folder:
    return Folder(name, handle, _identity(handle))


def open_folder(above: int, name: str) -> int:
    """Open a folder by its name in another one, without following a link or crossing into a mount."""
    try:
        return openat2(above, name, flags=FOLDER, resolve=NO_XDEV)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise OSError(errno.EBUSY, "something is mounted there", name) from error
        if error.errno not in UNSUPPORTED:
            raise
    return os.open(name, FOLDER, dir_fd=above)


def remove_entry(above: int, name: str) -> None:
    """Remove a file or a tree, if it exists, by its name in an open folder; a link is not followed.

    OSError if something stays: a mount in it, or what this user may not remove.
    """
    for _ in range(MOST_ROUNDS):
        # It may change meanwhile: unlink refuses a folder, and rmdir refuses a file.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            if stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
                _remove_folder(above, name)
            else:
                os.unlink(name, dir_fd=above)
        try:
            os.stat(name, dir_fd=above, follow_symlinks=False)
        except FileNotFoundError:
            return
    raise OSError(errno.EBUSY, "another process keeps writing to it", name)


def _remove_folder(above: int, name: str) -> None:
    if os.geteuid() != 0:
        _open_up(above, name)
    try:
        folder = open_folder(above, name)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return  # Replaced by a link meanwhile.
        raise
    with closed(folder):
        failed = _empty(folder)
    try:
        os.rmdir(name, dir_fd=above)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        if failed is not None:
            raise failed from error


def _empty(root: int) -> OSError | None:
    """Remove everything in a folder; return the error of the first thing that stays."""
    failed: OSError | None = None
    walk = Walk(root, must_open=True)
    for handle, name, files, above in walk.folders():
        for file in files:
            try:
                os.unlink(file, dir_fd=handle)
            except (FileNotFoundError, IsADirectoryError):
                continue
            except OSError as error:
                failed = failed or error
        if above >= 0:
            try:
                os.rmdir(name, dir_fd=above)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                failed = failed or error
    return walk.refused or failed


def share_tree(root: int, group: int, *, is_read_only: bool) -> None:
    """Set the group and mode of a tree, inner folders first, as far as this user may."""
    for handle, _, files, _ in Walk(root).folders():
        for name in files:
            _share_file(handle, name, group, 0o440 if is_read_only else 0o660)
        with contextlib.suppress(PermissionError):
            os.fchown(handle, -1, group)
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            os.fchmod(handle, mode | (0o550 if is_read_only else 0o770) | stat.S_ISGID)


def _share_file(folder: int, name: str, group: int, rights: int) -> None:
    """Set the group and mode of a file; of a link itself, not of its target."""
    with contextlib.suppress(FileNotFoundError):
        # An `O_PATH` handle opens no device, and does not wait at a pipe.
        handle = os.open(name, PATH | os.O_NOFOLLOW, dir_fd=folder)
        with closed(handle), contextlib.suppress(PermissionError):
            if stat.S_ISLNK(os.fstat(handle).st_mode):
                os.chown(name, -1, group, dir_fd=folder, follow_symlinks=False)
                return
            os.chown(link_to(handle), -1, group)
            # Read after chown, which removes setuid and setgid; they must not be restored.
            mode = stat.S_IMODE(os.fstat(handle).st_mode) & ~(stat.S_ISUID | stat.S_ISGID)
            link_to(handle).chmod(mode | rights)


def used_bytes(root: int) -> int:
    """Return the bytes of all blocks of a tree; a file with several names counts once."""
    total, seen = 0, set()
    for handle, _, files, _ in Walk(root).folders():
        total += os.fstat(handle).st_blocks * BLOCK_BYTES
        for name in files:
            with contextlib.suppress(OSError):
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                identity = (status.st_dev, status.st_ino)
                if status.st_nlink == 1 or identity not in seen:
                    seen |= {identity} if status.st_nlink > 1 else set()
                    total += status.st_blocks * BLOCK_BYTES
    return total
