"""Start bubblewrap from a shim: its options and files, its cgroup and its network. Standard library only."""

import contextlib
import errno
import fcntl
import os
import signal
import stat
from collections.abc import Callable
from typing import Any

from paceline.node.runtime.process_limits import Cgroup, check_result, libc
from paceline.node.runtime.subpath_mounts import SubpathMounts, check_inside

NOT_STARTED = 128
PIPE_BYTES = 256 * 1024
# Files of the host up to this size are copied, which is faster than a mount; larger ones are mounted.
COPIED_BYTES = 128 * 1024
# The same for folders with up to so many files.
COPIED_FILES = 4
# Signals that a program starts with the default action for; computed once, before shims are forked.
SIGNALS = signal.valid_signals()
CLONE_NEWNET = 0x40000000


class BwrapOptions:
    """Encodes the options of bubblewrap, and keeps open the files that it reads through file descriptors."""

    def __init__(self, first: int, mounts: SubpathMounts) -> None:
        """Take the number that the first file will have in bubblewrap."""
        self._first = first
        self._mounts = mounts
        self.open: list[int] = []

    def encode(self, options: list[Any]) -> bytes:
        """Encode arguments and entries (`sandbox.Option`); an `inside` entry is checked and adds no argument."""
        arguments: list[str] = []
        for option in options:
            if isinstance(option, str):
                arguments.append(option)
            else:
                arguments += self._expand(option)
        return _encode(arguments)

    def _expand(self, entry: dict[str, str]) -> tuple[str, ...]:
        if "inside" in entry:
            check_inside(entry)
            return ()
        if "subPath" in entry:
            return self._mounts.add(entry)
        if "filter" in entry:
            return ("--seccomp", self._number(memory_file(bytes.fromhex(entry["filter"]))))
        place, source = entry["place"], entry.get("source")
        if source is None:
            return self._copy(memory_file(entry["text"].encode()), place)
        return self._show(source, place)

    def _show(self, source: str, place: str) -> tuple[str, ...]:
        """Copy a small file, or a folder with few files; mount a larger one."""
        try:
            file = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return ()  # Not every machine has all of them.
        status = os.fstat(file)
        if not stat.S_ISDIR(status.st_mode) and status.st_size <= COPIED_BYTES:
            return self._copy(file, place)
        os.close(file)
        names = _few_files(source) if stat.S_ISDIR(status.st_mode) else None
        if names is None:
            return ("--ro-bind", source, place)
        shown = (self._show(f"{source}/{name}", f"{place}/{name}") for name in names)
        return ("--dir", place, *(option for options in shown for option in options))

    def _copy(self, file: int, place: str) -> tuple[str, ...]:
        return ("--perms", "0644", "--file", self._number(file), place)

    def _number(self, file: int) -> str:
        self.open.append(file)
        return str(self._first + len(self.open) - 1)


def _few_files(folder: str) -> list[str] | None:
    """Return the names of a folder's files; None when they are many, or when it has other entries but empty folders."""
    names: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    names.append(entry.name)
                elif not entry.is_dir(follow_symlinks=False) or _few_files(entry.path) != []:
                    return None
                if len(names) > COPIED_FILES:
                    return None
    except OSError:
        return None
    return names


def _encode(arguments: list[str]) -> bytes:
    """Encode arguments; after a NUL in one of them, bubblewrap would read options of the pod's author."""
    text = "".join([f"{argument}\0" for argument in arguments])
    if text.count("\0") != len(arguments):
        argument = next(argument for argument in arguments if "\0" in argument)
        raise OSError(errno.EINVAL, "a path or name must not contain a NUL character", argument.replace("\0", "\\0"))
    return text.encode()


def memory_file(data: bytes) -> int:
    """Return an anonymous file with this content, positioned at its beginning."""
    file = os.memfd_create("paceline")
    os.write(file, data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def pipe() -> tuple[int, int]:
    """Return the ends of a large pipe; the reading end does not block."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(reading, False)
    with contextlib.suppress(OSError):
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return reading, writing


def spawn(argv: list[str], ends: list[int], cgroup: Cgroup | None, enter: Callable[[], None] | None = None) -> int:
    """Start a program in its cgroup, with `ends` as its file descriptors from 1 on, and close them here.

    The process that becomes the program calls `enter`.
    """
    # dup2 overwrites the numbers up to that of the ends: copy the ends that have one of these.
    copies = {end: fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, len(ends) + 1) for end in ends if end <= len(ends)}
    moved = [copies.get(end, end) for end in ends]
    try:
        if enter is not None or (cgroup is not None and not cgroup.is_open_to_shim):
            return _spawn_limited(argv, moved, cgroup, enter)
        moves = [(os.POSIX_SPAWN_DUP2, end, fd) for fd, end in enumerate(moved, start=1)]
        with cgroup.visit() if cgroup is not None else contextlib.nullcontext():
            return os.posix_spawn(argv[0], argv, {}, file_actions=moves, setsigdef=SIGNALS, setsigmask=())
    finally:
        for fd in (*ends, *copies.values()):
            os.close(fd)


def _spawn_limited(argv: list[str], ends: list[int], cgroup: Cgroup | None, enter: Callable[[], None] | None) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        for fd, end in enumerate(ends, start=1):
            os.dup2(end, fd)
        if cgroup is not None:
            cgroup.join()
        if enter is not None:
            enter()
        for number in SIGNALS - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        os.execve(argv[0], argv, {})  # noqa: S606 (no shell is wanted)
    except OSError as error:
        os.write(2, f"{error.filename}: {error.strerror}".encode())
    finally:
        os._exit(NOT_STARTED)


def join_network(file: str) -> None:
    """Move this process into a pod's network namespace for good."""
    handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        check_result(libc.setns(handle, CLONE_NEWNET), file)
    finally:
        os.close(handle)
