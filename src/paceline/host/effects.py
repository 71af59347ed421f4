"""The real side of paceline.effects: this machine's clock, chance, files and processes."""

import asyncio
import contextlib
import ctypes
import errno
import gc
import os
import random
import secrets
import stat
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from paceline.effects import Effects
from paceline.filesystem.handles import FOLDER, PATH, closed, make_beneath
from paceline.filesystem.trees import BLOCK_BYTES, give_tree, remove_entry, used_bytes
from paceline.host.clock import RealClock
from paceline.host.shim_processes import RealProcesses
from paceline.node.runtime import shim

T = TypeVar("T")

# The caches hold many long-lived objects: collecting them again and again costs more than it finds.
GC_THRESHOLD = 50_000
# The letters of Kubernetes' generated names: no vowels and no look-alikes.
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def real_world(mark: str = "") -> Effects:
    """Give this machine as one argument; nothing is opened or started before it is used.

    `mark` is shown in the arguments of every shim's process.
    """
    return Effects(
        clock=RealClock(),
        ids=RealIds(),
        chance=RealChance(),
        files=RealFiles(),
        processes=RealProcesses(mark),
    )


def release_memory() -> None:
    """Give what a start has used and left free back to the machine; a C library that cannot do so keeps it."""
    gc.collect()
    # All of this stays: later searches for garbage need not look at it.
    gc.freeze()
    trim_memory()


def trim_memory() -> None:
    """Give freed memory back to the machine; the interpreter goes on meanwhile."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


class RealIds:
    """Ids from the kernel's random source."""

    def uid(self) -> str:
        """Make a random UUID."""
        return str(uuid.uuid4())

    def suffix(self, length: int) -> str:
        """Make a random name ending."""
        return "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(length))

    def secret(self) -> str:
        """Make a 256-bit secret, as URL-safe text."""
        return secrets.token_urlsafe(32)


class RealChance:
    """Unpredictable dice."""

    def fraction(self) -> float:
        """Draw a number from 0 up to 1."""
        return random.random()  # noqa: S311 - jitter, not cryptography


class RealFiles:
    """Files on disk."""

    def read(self, path: Path) -> bytes:
        """Read a whole file."""
        return path.read_bytes()

    def read_range(self, path: Path, offset: int, limit: int) -> bytes:
        """Read at most `limit` bytes from `offset`."""
        with closed(_open_file(path)) as file:
            return os.pread(file, limit, offset)

    def size(self, path: Path) -> int:
        """Tell how many bytes a file holds."""
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode):
            raise FileNotFoundError(errno.ENOENT, "is no file", str(path))
        return about.st_size

    def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        """Replace a file: write beside it, sync, rename, sync the folder."""
        beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            _fill(beside, data, mode)
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        shim.sync_folder(path.parent)

    def overwrite(self, path: Path, data: bytes, mode: int = 0o644) -> None:
        """Rewrite a file in place; a reader sees the old bytes, the new, or the new with an old tail for an instant."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        try:
            os.fchmod(fd, mode)
            _write_all(fd, data)
            os.ftruncate(fd, len(data))
        finally:
            os.close(fd)

    def make_folder(self, path: Path, mode: int = 0o700) -> None:
        """Make a folder and its parents; the first durable write below makes them last.

        The file systems of Linux keep the order of metadata, so that a synced file never loses the folder it is in.
        """
        if path.is_dir():
            return
        # What others may write to must not lie in folders that others may write to.
        self.make_folder(path.parent, mode & 0o755)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode)
            # Whatever the process masks, the rights are those asked for.
            path.chmod(mode)

    def names(self, path: Path) -> tuple[str, ...]:
        """List a folder's entries, sorted."""
        try:
            return tuple(sorted(os.listdir(path)))  # noqa: PTH208 - names, not paths: this is asked often
        except FileNotFoundError:
            return ()

    def resolve(self, path: Path) -> Path:
        """Follow all links on the way to a path."""
        return path.resolve()

    def exists(self, path: Path) -> bool:
        """Tell whether something is at the path, a dangling link included."""
        return os.path.lexists(path)

    def sort(self, path: Path) -> str:
        """Tell what is at the end of a path."""
        try:
            mode = path.stat().st_mode
        except OSError:
            return ""
        return _SORTS.get(stat.S_IFMT(mode), "")

    def link(self, path: Path, target: str) -> None:
        """Make a link beside the name and rename it over."""
        beside = path.with_name(f"..{secrets.token_hex(4)}.link")
        beside.symlink_to(target)
        try:
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise

    def share(self, path: Path, group: int, *, is_read_only: bool = False) -> None:
        """Change group and rights, from the inside out: the outermost folder says that all in it was done."""
        with closed(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as folder:
            about = os.fstat(folder)
            if about.st_gid != group or not about.st_mode & stat.S_ISGID:
                give_tree(folder, group, is_read_only=is_read_only)

    def move(self, path: Path, target: Path) -> None:
        """Rename a file or a folder."""
        path.rename(target)

    def room(self, path: Path) -> float:
        """Ask the file system, as a user who is not root."""
        disk = os.statvfs(path)
        return disk.f_bavail / disk.f_blocks if disk.f_blocks else 1.0

    def used(self, path: Path) -> int:
        """Add up the blocks of a folder and all in it; a file of two names is counted once."""
        try:
            with closed(os.open(path, FOLDER)) as folder:
                return used_bytes(folder)
        except FileNotFoundError:
            return 0
        except OSError:
            return path.lstat().st_blocks * BLOCK_BYTES

    def remove(self, path: Path) -> None:
        """Remove a file or a whole folder by the handle of the folder that it is in, without following links."""
        with contextlib.suppress(FileNotFoundError):
            folder = os.open(path.parent, PATH | os.O_DIRECTORY)
            with closed(folder):
                remove_entry(folder, path.name)

    def make_beneath(self, root: Path, inner: str, mode: int) -> None:
        """Make the folder at a path in a folder, by handle; what is there already is fine."""
        with closed(os.open(root, PATH)) as folder:
            os.close(make_beneath(folder, inner, mode))


_SORTS = {
    stat.S_IFDIR: "folder",
    stat.S_IFREG: "file",
    stat.S_IFSOCK: "socket",
    stat.S_IFIFO: "pipe",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


def _open_file(path: Path) -> int:
    """Open a file to read from it; a link, or what is no file, is nothing to us."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise FileNotFoundError(errno.ENOENT, "is a link", str(path)) from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise FileNotFoundError(errno.ENOENT, "is no file", str(path))
    return file


def _fill(path: Path, data: bytes, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        os.fchmod(fd, mode)
        _write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Threads:
    """A few threads of their own: calls wait for no more than as many others."""

    def __init__(self, name: str, count: int) -> None:
        self._threads = ThreadPoolExecutor(max_workers=count, thread_name_prefix=name)

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call` on one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def close(self) -> None:
        """End the threads after the calls that wait."""
        self._threads.shutdown()


class OneThread(Threads):
    """One thread of its own, so that calls keep their order."""

    def __init__(self, name: str) -> None:
        super().__init__(name, 1)
