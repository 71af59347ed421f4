"""Paths beneath a folder, resolved once and kept as a handle; standard library only.

A container can exchange a folder for a link between any two system calls of ours. What was checked by name is therefore
used by handle: an `O_PATH` descriptor stays with its inode, whatever happens to the name. Links are followed as long
as they stay beneath the folder; absolute ones do not.
"""

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PATH = os.O_PATH | os.O_CLOEXEC
# The number of openat2 on every architecture that Linux has had since it exists.
OPENAT2 = 437
NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 0x01, 0x02, 0x04, 0x08
# What kernels before 5.6, and sandboxes that do not know the call, answer.
NOT_THERE = (errno.ENOSYS, errno.EPERM)
# A `..` while somebody renames is refused and worth another try, as often as this.
MOST_TRIES = 128
MOST_LINKS = 40

_libc = ctypes.CDLL(None, use_errno=True)


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(root: int, path: str) -> int:
    """Return a handle (`O_PATH`) of what a relative path leads to; OSError EXDEV when that is not beneath the root."""
    for _ in range(MOST_TRIES):
        try:
            return openat2(root, path or ".", flags=PATH, resolve=BENEATH | NO_MAGICLINKS)
        except OSError as error:
            if error.errno in NOT_THERE:
                return walk_beneath(root, path)
            if error.errno != errno.EAGAIN:
                raise
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)


def openat2(folder: int, path: str, *, flags: int, resolve: int) -> int:
    """Open a path with limits on how it is resolved."""
    how = _How(flags=flags, resolve=resolve)
    number = _libc.syscall(
        ctypes.c_long(OPENAT2),
        ctypes.c_int(folder),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if number < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    return int(number)


def walk_beneath(root: int, path: str) -> int:
    """Return what `open_beneath` returns, one name at a time, for kernels without openat2."""
    left, links = path.split("/")[::-1], 0
    if path.startswith("/"):
        raise _leads_out(path)
    trail = [os.open(".", PATH | os.O_DIRECTORY, dir_fd=root)]
    try:
        while left:
            name = left.pop()
            if name == "..":
                # Back to a handle that we have: what the kernel calls the parent may have moved.
                os.close(trail.pop())
                if not trail:
                    raise _leads_out(path)
            elif name not in ("", "."):
                trail.append(os.open(name, PATH | os.O_NOFOLLOW, dir_fd=trail[-1]))
                if not stat.S_ISLNK(os.fstat(trail[-1]).st_mode):
                    continue
                link, links = trail.pop(), links + 1
                target = _target(link)
                if target.startswith("/"):
                    raise _leads_out(path)
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                left.extend(target.split("/")[::-1])
        return trail.pop()
    finally:
        for handle in trail:
            os.close(handle)


def _target(link: int) -> str:
    try:
        return os.readlink("", dir_fd=link)
    finally:
        os.close(link)


def _leads_out(path: str) -> OSError:
    return OSError(errno.EXDEV, "leads out of its folder", path)


def make_beneath(root: int, path: str, mode: int) -> int:
    """Return a handle of what a relative path leads to; folders that are missing on the way are made.

    The last one gets `mode`, those above it no right for others to write.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise _leads_out(path)
    present = len(parts)
    while True:
        try:
            handle = open_beneath(root, "/".join(parts[:present]))
            break
        except FileNotFoundError:
            if not present:
                raise
            present -= 1
    for index, name in enumerate(parts[present:], start=present + 1):
        with closed(handle):
            handle = _make(handle, name, mode if index == len(parts) else mode & 0o755)
    return handle


def _make(folder: int, name: str, mode: int) -> int:
    """Make one folder, and return its handle; one that somebody made meanwhile is taken as it is, a link is not."""
    is_new = False
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=folder)
        is_new = True
    made = os.open(name, PATH | os.O_NOFOLLOW | os.O_DIRECTORY, dir_fd=folder)
    if is_new:
        # Whatever the process masks, the rights are those asked for.
        link_to(made).chmod(mode)
    return made


def link_to(handle: int) -> Path:
    """Return a path that leads to the inode of a handle and to nothing else, for calls that take no `O_PATH`."""
    return Path("/proc/self/fd", str(handle))


@contextlib.contextmanager
def closed(handle: int) -> Iterator[int]:
    """Close a handle at the end."""
    try:
        yield handle
    finally:
        os.close(handle)
