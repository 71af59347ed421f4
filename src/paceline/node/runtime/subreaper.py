"""Replaces bubblewrap in a cluster without sandboxes: runs one program, and kills all of its descendants at its end.

A program of its own, standard library only, which the shim starts like bubblewrap: `subreaper.py --args FD
--json-status-fd FD -- COMMAND…`. It supports bubblewrap's options `--chdir` and `--setenv`. It kills what the program
leaves running when it ends, and everything on SIGQUIT or when the shim ends: orphans become children of this process.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
KILLED = 137
OPTIONS_BYTES = 64 * 1024 * 1024


class Subreaper:
    """One program and its descendants."""

    def __init__(self, status: int) -> None:
        self._status = status
        self._main = 0
        self._code = KILLED

    def run(self, argv: list[str]) -> int:
        """Run the program, kill what it leaves running, and return its exit code as bubblewrap does."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGQUIT, lambda *_: self._kill_all())
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
        self._main = os.posix_spawnp(
            argv[0], argv, os.environ, setsid=True, setsigdef=signal.valid_signals(), setsigmask=()
        )
        self._report({"child-pid": os.getpid()})
        while self._main:
            self._reap(0)
        self._kill_all()
        self._report({"exit-code": self._code})
        return self._code

    def _reap(self, options: int) -> bool:
        """Wait for a child that has ended; False when there is none."""
        try:
            pid, status = os.waitpid(-1, options)
        except ChildProcessError:
            self._main = 0
            return False
        if pid and pid == self._main:
            code = os.waitstatus_to_exitcode(status)
            self._main, self._code = 0, code if code >= 0 else 128 - code
        return bool(pid)

    def _kill_all(self) -> None:
        """Kill every descendant; all are stopped first, so that none forks meanwhile."""
        while True:
            stopped: set[int] = set()
            while new := set(_descendants(os.getpid())) - stopped:
                for pid in new:
                    _send(pid, signal.SIGSTOP)
                stopped |= new
            for pid in stopped:
                _send(pid, signal.SIGKILL)
            while self._reap(os.WNOHANG):
                pass
            if not stopped:
                return

    def _report(self, status: dict[str, int]) -> None:
        with contextlib.suppress(OSError):
            os.write(self._status, json.dumps(status).encode() + b"\n")


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _descendants(root: int) -> list[int]:
    """Return the descendants of a process without zombies."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            state, parent = (entry / "stat").read_bytes().rpartition(b") ")[2].split()[:2]
            if state not in (b"Z", b"X"):
                children.setdefault(int(parent), []).append(int(entry.name))
    descendants, queue = [], [root]
    while queue:
        pids = children.get(queue.pop(), [])
        descendants += pids
        queue += pids
    return descendants


def main(arguments: list[str]) -> int:
    """Read the options as bubblewrap does, run the command, and return its exit code."""
    cut = arguments.index("--")
    numbers = dict(zip(arguments[:cut:2], map(int, arguments[1:cut:2]), strict=True))
    options = _read_all(numbers["--args"]).split(b"\0")[:-1]
    os.environ.clear()
    while options:
        match options.pop(0):
            case b"--chdir":
                os.chdir(options.pop(0))
            case b"--setenv":
                name, value, *options = options
                os.environb[name] = value
            case unknown:
                raise ValueError(unknown)
    status = numbers["--json-status-fd"]
    os.set_inheritable(status, False)  # noqa: FBT003 - the standard library's signature
    return Subreaper(status).run(arguments[cut + 1 :])


def _read_all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read(OPTIONS_BYTES)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as error:
        # The shim recognizes bubblewrap's message.
        os.write(2, f"execvp {error.filename or sys.argv[-1]}: {error.strerror}\n".encode())
        os._exit(1)
