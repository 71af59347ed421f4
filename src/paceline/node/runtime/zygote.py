"""A small warm parent of all shims: a fork costs a millisecond, a new interpreter twenty.

Started as a program of its own with `python -I -S`; stdlib only. Each message on its socket is a folder's path with the
writing end of a pipe attached; the shim that is forked for it says on the pipe that its program runs. The word `enter`
instead of a path, with a socket attached, asks for a command in a running container (enter.py). Nothing is kept
here, so nothing is lost when it ends; it ends with the agent, and the shims live on.
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


def serve(requests: socket.socket, keep: Callable[[str, int], None]) -> None:
    """Fork a shim for every folder that is asked for, until the agent goes away."""
    # Shims are not waited for here: the kernel takes them away when they end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What is there now is shared with every shim; the collector must not touch it and have it copied.
    gc.collect()
    gc.freeze()
    while True:
        path, fds, _, _ = socket.recv_fds(requests, PATH_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
        if not path:
            return
        _fork(path.decode(), fds[0], keep)


def _fork(folder: str, ready: int, keep: Callable[[str, int], None]) -> None:
    try:
        pid = os.fork()
    except OSError:
        pid = -1  # Too many processes: the closed pipe tells the agent, which tries again later.
    if pid == 0:
        try:
            keep(folder, ready)
        finally:
            os._exit(0)
    os.close(ready)


def _program(clock_offset: int | None) -> Callable[[str, int], None]:
    """Load the shim alone, and what enters it: the package's own start would bring in the SDK and site-packages."""
    package = ModuleType("paceline")
    package.__path__ = [str(Path(__file__).parents[2])]
    sys.modules["paceline"] = package
    importlib.import_module("paceline.node.runtime.cri_log").set_clock(clock_offset)
    keep: Callable[[str, int], None] = importlib.import_module("paceline.node.runtime.shim").run
    enter: Callable[[int], None] = importlib.import_module("paceline.node.runtime.nsenter").run
    return lambda folder, fd: enter(fd) if folder == EXEC else keep(folder, fd)


if __name__ == "__main__":
    offset = int(sys.argv[3]) if len(sys.argv) > 3 else None
    serve(socket.socket(fileno=int(sys.argv[1])), _program(offset))
