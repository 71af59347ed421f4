"""What a container inherits from its shim: keyring, bounds on capabilities and processes, OOM score; stdlib only."""

import contextlib
import ctypes
import os
import re
import resource
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PR_CAPBSET_DROP, CAPABILITY_VERSION = 24, 0x20080522
KEYCTL = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine)
JOIN_SESSION_KEYRING = 1
# As the kernel numbers them.
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
MOST_CAPABILITIES = 64

libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def confined(wanted: dict[str, Any]) -> Iterator[None]:
    """Take on what a container is to inherit, and be spared by the kernel again afterwards.

    The shim does this to itself, because a process between it and bubblewrap would cost each start milliseconds. It
    keeps its own rights: the bounding set matters to programs that are executed only.
    """
    leave_session_keyring()
    if (processes := wanted.get("processes")) is not None:
        limit_processes(processes)
    if (kept := wanted.get("capabilities")) is not None:
        bound_capabilities(kept)
    before = set_oom_score(wanted.get("oomScore"))
    try:
        yield
    finally:
        set_oom_score(before)


def set_oom_score(score: int | None) -> int | None:
    """Have the kernel end this process earlier or later than others when memory runs out; give what it was before."""
    if score is None:
        return None
    with contextlib.suppress(OSError):
        file = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
        try:
            before = int(os.pread(file, 64, 0))
            os.pwrite(file, str(score).encode(), 0)
            return before
        finally:
            os.close(file)
    return None


def leave_session_keyring() -> None:
    """Have an empty keyring of its own instead of the one that the machine's processes share.

    A kernel without keyrings, or a user who has as many as he may, changes nothing: containers cannot ask for keys.
    """
    if KEYCTL is not None:
        libc.syscall(KEYCTL, JOIN_SESSION_KEYRING, None)


def limit_processes(count: int) -> None:
    """Let nobody below this process start more processes than the user of this process may have in all."""
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def bound_capabilities(kept: list[str]) -> None:
    """Drop all other capabilities from the bounding set, and have bubblewrap inherit what it needs to begin with.

    bubblewrap narrows what it inherited by itself before it starts the program, and leaves the bounding set alone.
    """
    head, data = struct.pack("Ii", CAPABILITY_VERSION, 0), ctypes.create_string_buffer(24)
    if libc.capget(head, data) != 0:
        return
    effective, permitted, _, more_effective, more_permitted, _ = struct.unpack("6I", data.raw)
    libc.capset(
        head, struct.pack("6I", effective, permitted, permitted, more_effective, more_permitted, more_permitted)
    )
    numbers = {CAPABILITIES.index(name) for name in kept if name in CAPABILITIES}
    for number in range(MOST_CAPABILITIES):
        if number not in numbers and libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            return  # The kernel knows no more.


class Cgroup:
    """Folders in the kernel's tree that hold a container to its limits; one per controller, or one for all."""

    def __init__(self, intent: dict[str, Any]) -> None:
        self._folders = [str(each) for each in intent["folders"]]
        self._settings = [(str(path), str(value)) for path, value in intent["settings"]]
        self._kills = Path(intent["kills"])
        self._procs = str(intent["procs"])
        # Whether the shim may be in the groups for the moment in which it starts the program.
        self.takes_guests = bool(intent.get("homes"))
        self._homes = [str(each) for each in intent.get("homes", ())]

    def make(self) -> None:
        """Make the folders and write the limits; OSError says which one the kernel refuses."""
        for folder in self._folders:
            # Not through Path, as below: every start does this.
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)  # noqa: PTH102
        for path, value in self._settings:
            # Swap is counted only where the kernel was told to; without swap there is nothing to limit.
            with contextlib.suppress(FileNotFoundError):
                _write(path, value.encode())

    def join(self) -> None:
        """Put the calling process, and with it all it will start, under the limits."""
        for folder in self._folders:
            self._enter(folder)

    @contextlib.contextmanager
    def guest(self) -> Iterator[None]:
        """Have what is started meanwhile under the limits, and the calling process only for so long."""
        try:
            self.join()
            yield
        finally:
            for folder in self._homes:
                self._enter(folder)

    def _enter(self, folder: str) -> None:
        _write(f"{folder}/{self._procs}", b"0")

    def has_killed(self) -> bool:
        """Tell whether the kernel ended a process here because memory ran out."""
        with contextlib.suppress(OSError):
            found = re.search(r"^oom_kill (\d+)$", self._kills.read_text(), re.MULTILINE)
            return found is not None and int(found[1]) > 0
        return False

    def remove(self) -> bool:
        """Remove the folders; False when one still holds a process. Such a one is swept when the agent starts next."""
        for folder in self._folders:
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # noqa: PTH106
        return not any(map(os.path.lexists, self._folders))


def _write(path: str, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, data)
    finally:
        os.close(file)
