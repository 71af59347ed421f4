"""The real implementation of paceline.effects: this machine's clock, random numbers, files and processes."""

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
from paceline.filesystem.trees import BLOCK_BYTES, remove_entry, share_tree, used_bytes
from paceline.host.clock import RealClock
from paceline.host.shim_processes import RealProcesses
from paceline.node.runtime import shim

T = TypeVar("T")

# The caches hold many long-lived objects: frequent collections cost more than they free.
GC_THRESHOLD = 50_000
# How much of a file is read at a time.
READ_BYTES = 64 * 1024
# The letters of Kubernetes' generated names: no vowels and no look-alikes.
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def real_world(mark: str = "") -> Effects:
    """Return the effects of this machine; nothing is opened or started before it is used.

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
    """Return memory that was freed after the start to the machine, where the C library can do so."""
    gc.collect()
    # These objects stay: later collections need not look at them.
    gc.freeze()
    trim_memory()


def trim_memory() -> None:
    """Return freed memory to the machine, without holding the interpreter's lock."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


class RealIds:
    def uid(self) -> str:
        return str(uuid.uuid4())

    def suffix(self, length: int) -> str:
        return "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(length))

    def secret(self) -> str:
        return secrets.token_urlsafe(32)


class RealChance:
    def fraction(self) -> float:
        return random.random()  # noqa: S311 - jitter, not cryptography


class RealFiles:
    def read(self, path: Path) -> bytes:
        # Without Python's file objects: records are small, and read many times for each pod.
        with closed(os.open(path, os.O_RDONLY | os.O_CLOEXEC)) as file:
            return b"".join(iter(lambda: os.read(file, READ_BYTES), b""))

    def read_range(self, path: Path, offset: int, limit: int) -> bytes:
        with closed(_open_file(path)) as file:
            return os.pread(file, limit, offset)

    def size(self, path: Path) -> int:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a regular file", str(path))
        return status.st_size

    def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        """Replace a file: write a new one, sync it, rename it, sync the folder."""
        new = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            _fill(new, data, mode)
            new.replace(path)
        except BaseException:
            new.unlink(missing_ok=True)
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

    def write_at(self, path: Path, offset: int, data: bytes) -> None:
        with closed(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)) as file:
            os.pwrite(file, data, offset)

    def make_folder(self, path: Path, mode: int = 0o700) -> None:
        """Create a folder and its parents; the first durable write below makes them durable.

        The file systems of Linux keep the order of metadata, so a synced file never loses its folder.
        """
        if path.is_dir():
            return
        # The parents of a folder that others may write to must not be writable for others.
        self.make_folder(path.parent, mode & 0o755)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode)
            # The exact mode, whatever the umask is.
            path.chmod(mode)

    def names(self, path: Path) -> tuple[str, ...]:
        try:
            return tuple(sorted(os.listdir(path)))  # noqa: PTH208 - speed: names, not paths
        except FileNotFoundError:
            return ()

    def resolve(self, path: Path) -> Path:
        return path.resolve()

    def exists(self, path: Path) -> bool:
        return os.path.lexists(path)

    def sort(self, path: Path) -> str:
        try:
            mode = path.stat().st_mode
        except OSError:
            return ""
        return _SORTS.get(stat.S_IFMT(mode), "")

    def link(self, path: Path, target: str) -> None:
        """Create or replace a link in one step."""
        new = path.with_name(f"..{secrets.token_hex(4)}.link")
        new.symlink_to(target)
        try:
            new.replace(path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise

    def share(self, path: Path, group: int, *, is_read_only: bool = False) -> None:
        """Set group and mode of a tree; the outermost folder last, so that its group shows that all is done."""
        with closed(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as folder:
            status = os.fstat(folder)
            if status.st_gid != group or not status.st_mode & stat.S_ISGID:
                share_tree(folder, group, is_read_only=is_read_only)

    def move(self, path: Path, target: Path) -> None:
        path.rename(target)

    def room(self, path: Path) -> float:
        disk = os.statvfs(path)
        return disk.f_bavail / disk.f_blocks if disk.f_blocks else 1.0

    def used(self, path: Path) -> int:
        """Return the bytes of all blocks in a folder; a file with several names counts once."""
        try:
            with closed(os.open(path, FOLDER)) as folder:
                return used_bytes(folder)
        except FileNotFoundError:
            return 0
        except OSError:
            return path.lstat().st_blocks * BLOCK_BYTES

    def remove(self, path: Path) -> None:
        """Remove a file or a tree by the handle of its parent, without following links."""
        with contextlib.suppress(FileNotFoundError):
            folder = os.open(path.parent, PATH | os.O_DIRECTORY)
            with closed(folder):
                remove_entry(folder, path.name)

    def make_beneath(self, root: Path, inner: str, mode: int) -> None:
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
    """Open a regular file for reading; FileNotFoundError if it is a link or anything else."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise FileNotFoundError(errno.ENOENT, "is a link", str(path)) from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise FileNotFoundError(errno.ENOENT, "not a regular file", str(path))
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
    """A thread pool of a fixed size."""

    def __init__(self, name: str, count: int) -> None:
        self._threads = ThreadPoolExecutor(max_workers=count, thread_name_prefix=name)

    async def run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def close(self) -> None:
        self._threads.shutdown()


class OneThread(Threads):
    """A single thread, so that calls keep their order."""

    def __init__(self, name: str) -> None:
        super().__init__(name, 1)
