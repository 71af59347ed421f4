"""A disk that does not confirm writes: in the control process, fsync and fdatasync fail once a file is there.

On PYTHONPATH of a cluster, this is imported by each of its processes. The filter, once on, stays on for the process, as
a page cache that lost a write stays wrong; the next process has it only if the file is still there.
"""

import ctypes
import os
import struct
import sys
import threading
import time

PR_SET_NO_NEW_PRIVS, SET_MODE_FILTER, TSYNC = 38, 1, 1
ALLOW, ERRNO, EIO = 0x7FFF0000, 0x00050000, 5
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
# seccomp, fsync, fdatasync
CALLS = {"x86_64": (317, 74, 75), "aarch64": (277, 82, 83)}[os.uname().machine]


def fail_syncs() -> None:
    """Let the syncs of all threads of this process fail with EIO."""
    libc = ctypes.CDLL(None, use_errno=True)
    seccomp, fsync, fdatasync = CALLS
    rules = ((LOAD, 0, 0, 0), (EQUAL, 1, 0, fsync), (EQUAL, 0, 1, fdatasync), (RETURN, 0, 0, ERRNO | EIO))
    program = b"".join(struct.pack("HBBI", *rule) for rule in (*rules, (RETURN, 0, 0, ALLOW)))
    code = ctypes.create_string_buffer(program)
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code)))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(seccomp, SET_MODE_FILTER, TSYNC, head) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def watch(path: str) -> None:
    """Wait for the file, then break the disk, and say so."""
    while not os.path.exists(path):  # noqa: PTH110
        time.sleep(0.01)
    fail_syncs()
    with open(f"{path}.done", "w") as file:  # noqa: PTH123
        file.write(str(os.getpid()))


# The module that `-m` names is not known yet when this is imported.
if "paceline.cluster.control_plane_main" in sys.orig_argv:
    home = sys.orig_argv[sys.orig_argv.index("paceline.cluster.control_plane_main") + 1]
    threading.Thread(target=watch, args=(f"{home}/broken-disk",), daemon=True).start()
