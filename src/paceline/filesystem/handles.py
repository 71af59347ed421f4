"""Resolve paths beneath a folder once, and use them by handle; standard library only.

A container can replace a folder by a link between any two of our system calls. What was checked by name is therefore
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
# The number of openat2 on all architectures.
OPENAT2 = 437
NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 0x01, 0x02, 0x04, 0x08
# The errors of kernels before 5.6, and of sandboxes that do not allow the call.
UNSUPPORTED = (errno.ENOSYS, errno.EPERM)
# A `..` during a concurrent rename is refused with EAGAIN, and tried again so often.
MOST_TRIES = 128
MOST_LINKS = 40

_libc = ctypes.CDLL(None, use_errno=True)


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(root: int, path: str) -> int:
    """Return a handle (`O_PATH`) of what a relative path leads to; OSError EXDEV if that is not beneath the root."""
    for _ in range(MOST_TRIES):
        try:
            return openat2(root, path or ".", flags=PATH, resolve=BENEATH | NO_MAGICLINKS)
        except OSError as error:
            if error.errno in UNSUPPORTED:
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
    """Do the same as `open_beneath`, one name at a time, for kernels without openat2."""
    pending, links = path.split("/")[::-1], 0
    if path.startswith("/"):
        raise _leads_out(path)
    opened = [os.open(".", PATH | os.O_DIRECTORY, dir_fd=root)]
    try:
        while pending:
            name = pending.pop()
            if name == "..":
                # Back to the handle that we opened before: the folder may have another parent by now.
                os.close(opened.pop())
                if not opened:
                    raise _leads_out(path)
            elif name not in ("", "."):
                opened.append(os.open(name, PATH | os.O_NOFOLLOW, dir_fd=opened[-1]))
                if not stat.S_ISLNK(os.fstat(opened[-1]).st_mode):
                    continue
                link, links = opened.pop(), links + 1
                target = _target(link)
                if target.startswith("/"):
                    raise _leads_out(path)
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                pending.extend(target.split("/")[::-1])
        return opened.pop()
    finally:
        for handle in opened:
            os.close(handle)


def _target(link: int) -> str:
    try:
        return os.readlink("", dir_fd=link)
    finally:
        os.close(link)


def _leads_out(path: str) -> OSError:
    return OSError(errno.EXDEV, "leads out of its folder", path)


def make_beneath(root: int, path: str, mode: int) -> int:
    """Return a handle of what a relative path leads to; missing folders are created.

    The last one gets `mode`, those above it the same without the right to write for others.
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
    """Create a folder unless it exists, and return its handle; OSError if it is a link."""
    is_new = False
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=folder)
        is_new = True
    handle = os.open(name, PATH | os.O_NOFOLLOW | os.O_DIRECTORY, dir_fd=folder)
    if is_new:
        # The exact mode, whatever the umask is.
        link_to(handle).chmod(mode)
    return handle


def link_to(handle: int) -> Path:
    """Return a path to the inode of a handle, for calls that do not accept `O_PATH` descriptors."""
    return Path("/proc/self/fd", str(handle))


@contextlib.contextmanager
def closed(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        os.close(handle)
