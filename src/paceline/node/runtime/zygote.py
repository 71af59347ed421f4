"""The zygote: a small process that forks all shims, because a fork takes a millisecond and a new interpreter twenty.

A program of its own, started with `python -I -S`; standard library only. Every message on its socket is a folder's path
with the writing end of a pipe attached, on which the forked shim reports that its program runs. The message `enter`
instead of a path, with a socket attached, starts a command in a running container (nsenter.py). The zygote has no state
and ends with the agent; the shims live on.
"""

import gc
import importlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

PATH_BYTES = 8192
EXEC = "enter"
# A shim makes hardly any cycles, and a collection at its start would take half a millisecond.
GC_THRESHOLD = 50_000


def serve(requests: socket.socket, run_shim: Callable[[str, int], None]) -> None:
    """Fork a shim for every requested folder, until the agent ends."""
    # The kernel reaps shims when they end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Memory is shared with every shim until a garbage collection touches it.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    while True:
        path, fds, _, _ = socket.recv_fds(requests, PATH_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
        if not path:
            return
        _fork(path.decode(), fds[0], run_shim)


def _fork(folder: str, ready: int, run_shim: Callable[[str, int], None]) -> None:
    try:
        pid = os.fork()
    except OSError:
        pid = -1  # Too many processes: the agent sees the closed pipe and retries later.
    if pid == 0:
        try:
            run_shim(folder, ready)
        finally:
            os._exit(0)
    os.close(ready)


def _program(clock_offset: int | None) -> Callable[[str, int], None]:
    """Import only the shim and nsenter: the package's own __init__ would import the SDK and site-packages."""
    package = ModuleType("paceline")
    package.__path__ = [str(Path(__file__).parents[2])]
    sys.modules["paceline"] = package
    importlib.import_module("paceline.node.runtime.cri_log").set_clock(clock_offset)
    shim = importlib.import_module("paceline.node.runtime.shim")
    run_shim: Callable[[str, int], None] = shim.run
    # The shims inherit it, and need not read it again.
    shim.boot_id()
    run_exec: Callable[[int], None] = importlib.import_module("paceline.node.runtime.nsenter").run
    return lambda folder, fd: run_exec(fd) if folder == EXEC else run_shim(folder, fd)


if __name__ == "__main__":
    offset = int(sys.argv[3]) if len(sys.argv) > 3 else None
    serve(socket.socket(fileno=int(sys.argv[1])), _program(offset))
