"""Limits that a shim sets on its container: cgroup, capabilities, processes, OOM score, keyring; stdlib only."""

import contextlib
import ctypes
import os
import re
import resource
import struct
from collections.abc import Iterator
from typing import Any

PR_CAPBSET_DROP, CAPABILITY_VERSION = 24, 0x20080522
KEYCTL = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine)
JOIN_SESSION_KEYRING = 1
# In the kernel's order.
CAPABILITIES = tuple(
    f"CAP_{name}"
    for name in (
        *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP"),
        *("LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER"),
        *("SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE"),
        *("SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP"),
        *("MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF"),
        "CHECKPOINT_RESTORE",
    )
)
MAX_CAPABILITIES = 64
READ_BYTES = 64 * 1024
OOM_KILLS = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)

libc = ctypes.CDLL(None, use_errno=True)


def check_result(result: int, subject: str) -> None:
    """Raise OSError about the subject if a call of the C library failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), subject)


@contextlib.contextmanager
def confined(limits: dict[str, Any]) -> Iterator[None]:
    """Set the limits that a program started meanwhile inherits; only the shim's OOM score is restored.

    The shim sets them on itself, because a process between it and bubblewrap would cost each start milliseconds. It
    keeps its own capabilities: the bounding set only matters to programs that are executed.
    """
    leave_session_keyring()
    if (processes := limits.get("processes")) is not None:
        limit_processes(processes)
    if (capabilities := limits.get("capabilities")) is not None:
        bound_capabilities(capabilities)
    score = set_oom_score(limits.get("oomScore"))
    try:
        yield
    finally:
        set_oom_score(score)


def set_oom_score(score: int | None) -> int | None:
    """Set the oom_score_adj of this process, and return the previous one; None changes nothing."""
    if score is None:
        return None
    with contextlib.suppress(OSError):
        file = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
        try:
            previous = int(os.pread(file, 64, 0))
            os.pwrite(file, str(score).encode(), 0)
            return previous
        finally:
            os.close(file)
    return None


def leave_session_keyring() -> None:
    """Join a new, empty session keyring instead of the one that the host's processes share.

    An error (no keyrings in the kernel, or the user's quota) is ignored: containers cannot ask for keys anyway.
    """
    if KEYCTL is not None:
        libc.syscall(KEYCTL, JOIN_SESSION_KEYRING, None)


def limit_processes(count: int) -> None:
    """Limit the number of processes that the user of this process may have in all, for it and its descendants."""
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    limit = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def bound_capabilities(capabilities: list[str]) -> None:
    """Drop all other capabilities from the bounding set, and let bubblewrap inherit those that it needs.

    bubblewrap drops inherited capabilities before it starts the program, but leaves the bounding set alone.
    """
    head, data = struct.pack("Ii", CAPABILITY_VERSION, 0), ctypes.create_string_buffer(24)
    if libc.capget(head, data) != 0:
        return
    effective, permitted, _, more_effective, more_permitted, _ = struct.unpack("6I", data.raw)
    libc.capset(
        head, struct.pack("6I", effective, permitted, permitted, more_effective, more_permitted, more_permitted)
    )
    numbers = {CAPABILITIES.index(name) for name in capabilities if name in CAPABILITIES}
    for number in range(MAX_CAPABILITIES):
        if number not in numbers and libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            return  # The kernel has no more.


class Cgroup:
    """The cgroups of one container: one folder per controller, or one for all."""

    def __init__(self, intent: dict[str, Any]) -> None:
        self._folders = [str(folder) for folder in intent["folders"]]
        self._settings = [(str(path), str(value)) for path, value in intent["settings"]]
        self._kills = str(intent["kills"])
        self._procs = str(intent["procs"])
        self._homes = [str(folder) for folder in intent.get("homes", ())]
        # Whether the shim may join the cgroups while it starts the program.
        self.is_open_to_shim = bool(self._homes)

    def create(self) -> None:
        """Create the cgroups and write their limits; OSError names the one that the kernel refuses."""
        for folder in self._folders:
            # Without Path, here and below, because every start does this.
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)  # noqa: PTH102
        for path, value in self._settings:
            # A kernel without swap accounting has no file for its limit.
            with contextlib.suppress(FileNotFoundError):
                write_file(path, value.encode())

    def join(self) -> None:
        """Move the calling process, and so all that it will start, into the cgroups."""
        for folder in self._folders:
            self._enter(folder)

    @contextlib.contextmanager
    def visit(self) -> Iterator[None]:
        """Start processes in the cgroups meanwhile; the calling process leaves them again."""
        try:
            self.join()
            yield
        finally:
            for folder in self._homes:
                self._enter(folder)

    def _enter(self, folder: str) -> None:
        write_file(f"{folder}/{self._procs}", b"0")

    def has_killed(self) -> bool:
        """Return whether the kernel killed a process here because memory ran out."""
        with contextlib.suppress(OSError):
            match = OOM_KILLS.search(read_file(self._kills))
            return match is not None and int(match[1]) > 0
        return False

    def remove(self) -> bool:
        """Remove the cgroups; False when one still has a process. The agent removes such a one at its next start."""
        is_removed = True
        for folder in self._folders:
            try:
                os.rmdir(folder)  # noqa: PTH106
            except FileNotFoundError:
                pass
            except OSError:
                is_removed = False
        return is_removed


def read_file(path: str) -> bytes:
    """Return the contents of a file, with half of the system calls of Path.read_bytes: every start reads several."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(file, READ_BYTES), b""))
    finally:
        os.close(file)


def write_file(path: str, data: bytes) -> None:
    """Write to a file of the kernel, without the system calls that Path.write_bytes adds."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, data)
    finally:
        os.close(file)
