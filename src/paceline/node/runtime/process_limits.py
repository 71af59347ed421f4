"""What a container inherits from its shim: keyring, bounds on capabilities and processes, OOM score; stdlib only."""

import contextlib
import ctypes
import os
import resource
import struct
from collections.abc import Iterator
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
