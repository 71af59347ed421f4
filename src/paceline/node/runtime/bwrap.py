"""How a shim starts bubblewrap: its options, the files that it makes, its limits and its network; stdlib only."""

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
from collections.abc import Callable
from typing import Any

from paceline.node.runtime.process_limits import Cgroup
from paceline.node.runtime.subpath_mounts import Binds, check_inside

NOT_STARTED = 128
# What lies in a pipe, at most.
PIPE_BYTES = 256 * 1024
# Above all numbers that the sandbox is given, so that no move treads on another.
ABOVE = 64
# A file of the machine up to this size is copied, because a mount costs more; a larger one is mounted.
COPIED_BYTES = 32 * 1024
# All that a program begins with the usual answer to; worked out once, before shims are forked.
SIGNALS = signal.valid_signals()
# As setns calls the sort of namespace.
NEW_NETWORK = 0x40000000


class Files:
    """Files that are to be in the sandbox, as numbers on which bubblewrap reads them."""

    def __init__(self, first: int, binds: Binds) -> None:
        self._first = first
        self._binds = binds
        self.open: list[int] = []

    def words(self, options: list[Any]) -> bytes:
        """Spell options; those that stand for a file say its place, and its text or its source on the machine.

        Those that stand for a part of a volume say its place, its volume's folder and the path in that.
        Those that stand for a place in a volume (`inside`) are looked at and spell nothing.
        """
        said = (word for each in options for word in ((each,) if isinstance(each, str) else self._file(each)))
        return b"".join(_option(word) for word in said)

    def _file(self, wanted: dict[str, str]) -> tuple[str, ...]:
        if "inside" in wanted:
            check_inside(wanted)
            return ()
        if "subPath" in wanted:
            return self._binds.words(wanted)
        if "filter" in wanted:
            return ("--seccomp", self._number(filled(bytes.fromhex(wanted["filter"]))))
        place, source = wanted["place"], wanted.get("source")
        if source is None:
            return self._given(filled(wanted["text"].encode()), place)
        try:
            file = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return ()  # Not every machine has each of them.
        if os.fstat(file).st_size > COPIED_BYTES:
            os.close(file)
            return ("--ro-bind", source, place)
        return self._given(file, place)

    def _given(self, file: int, place: str) -> tuple[str, ...]:
        return ("--perms", "0644", "--file", self._number(file), place)

    def _number(self, file: int) -> str:
        self.open.append(file)
        return str(self._first + len(self.open) - 1)


def _option(word: str) -> bytes:
    """Spell one word; a NUL in it would end it, and what follows would be an option of the pod's author."""
    if "\0" in word:
        raise OSError(errno.EINVAL, "a path or name must not contain a NUL character", word.replace("\0", "\\0"))
    return word.encode() + b"\0"


def filled(data: bytes) -> int:
    """Give a file that nobody else can read, with something to read in it."""
    file = os.memfd_create("paceline")
    os.write(file, data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def pipe() -> tuple[int, int]:
    """Make a large pipe whose reading end does not block."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(reading, False)
    with contextlib.suppress(OSError):
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return reading, writing


def spawn(argv: list[str], ends: list[int], cgroup: Cgroup | None, enter: Callable[[], None] | None = None) -> int:
    """Start a program with these files from number 1 on, under its limits from its first instruction on.

    `enter` is called by the process that becomes the program.
    """
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, ABOVE) for end in ends]
    try:
        if enter is not None or (cgroup is not None and not cgroup.takes_guests):
            return _spawn_limited(argv, moved, cgroup, enter)
        moves = [(os.POSIX_SPAWN_DUP2, end, fd) for fd, end in enumerate(moved, start=1)]
        with cgroup.guest() if cgroup is not None else contextlib.nullcontext():
            return os.posix_spawn(argv[0], argv, {}, file_actions=moves, setsigdef=SIGNALS, setsigmask=())
    finally:
        for fd in (*ends, *moved):
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
    """Leave the machine's network for a pod's, for good."""
    handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(handle, NEW_NETWORK) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), file)
    finally:
        os.close(handle)
