"""Start and follow the shims of this machine, and run commands in their containers.

Both are forked by the zygote (node/runtime/zygote.py), which starts with the first of them. A shim is identified by
the lock that it holds, its pid, its start time and the boot.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path

from paceline.effects import ProcessHandle
from paceline.errors import ServiceUnavailable
from paceline.host.lockfile import is_locked
from paceline.node.runtime import shim, zygote
from paceline.node.runtime.exec_types import STDERR, STDOUT, ContainerGone, ExecError, ExecRequest
from paceline.node.runtime.nsenter import GONE

CHUNK = 64 * 1024
MAX_FDS = 3
LINE_BYTES = 16 * 1024
KILLED = 137


def raise_open_files() -> int:
    """Raise this process's soft limit on open files to the hard limit; return the old soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A kernel may have a lower ceiling than the hard limit; then the soft limit stays.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft


class RealProcesses:
    """Starts shims through the zygote, and follows them."""

    def __init__(self, mark: str = "", *, clock_offset: int | None = None, open_files: int | None = None) -> None:
        # Shown in the arguments of every shim, so that `ps` tells the clusters of a machine apart.
        self._mark = mark
        # The cluster's time minus uptime, in nanoseconds, for the shims' time stamps; None is the machine's clock.
        self._clock_offset = clock_offset
        # The soft limit on open files of the shims, if it differs from that of this process.
        self._open_files = open_files
        self._zygote: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._boot_id = ""

    def boot_id(self) -> str:
        """Return the id of the machine's current boot, which cannot change while this process lives."""
        self._boot_id = self._boot_id or shim.boot_id()
        return self._boot_id

    async def start(self, folder: Path) -> None:
        """Start a shim and return once its program runs, or has failed to start, or the shim has ended."""
        # Retried once if there was no answer: a dying zygote accepts requests that it does not answer.
        if not await self._start(folder):
            await self._start(folder)

    def warm_up(self) -> None:
        """Start the zygote now, so that the first container does not wait for it."""
        if self._zygote is not None and self._zygote.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        offset = [] if self._clock_offset is None else [str(self._clock_offset)]
        with theirs:
            self._zygote = subprocess.Popen(
                [sys.executable, "-I", "-S", zygote.__file__, str(theirs.fileno()), self._mark, *offset],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        if self._open_files is not None:
            # Before the first request: its shims inherit the limit.
            _set_open_files(self._zygote.pid, self._open_files)
        self._requests = ours

    def close(self) -> None:
        """End the zygote; its shims keep running."""
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._zygote is not None:
            self._zygote.wait()
            self._zygote = None

    def holds(self, folder: Path) -> bool:
        return is_locked(folder / shim.LOCK)

    def alive(self, process: ProcessHandle) -> bool:
        return process.boot_id == self.boot_id() and shim.start_ticks(process.pid) == process.start_ticks

    async def ended(self, process: ProcessHandle) -> None:
        with _pidfd(self, process) as pidfd:
            if pidfd is not None:
                await _readable(pidfd)

    def signal(self, process: ProcessHandle, number: int) -> None:
        with _pidfd(self, process) as pidfd, contextlib.suppress(ProcessLookupError):
            if pidfd is not None:
                signal.pidfd_send_signal(pidfd, number)

    async def _start(self, folder: Path) -> bool:
        """Request a shim; return False if it or the zygote ended without an answer."""
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            try:
                self._request(os.fsencode(folder), writing)
            finally:
                os.close(writing)
            await _readable(reading)
            return bool(os.read(reading, 1))
        finally:
            os.close(reading)

    def enter(self) -> socket.socket:
        """Fork a process that runs a command in a container; return the socket to it (node/runtime/nsenter.py)."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._request(zygote.EXEC.encode(), theirs.fileno())
        return ours

    def _request(self, request: bytes, fd: int) -> None:
        for _ in range(2):
            self.warm_up()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                if self._requests is not None:
                    socket.send_fds(self._requests, [request], [fd])
                    return
            # The zygote ended after `warm_up` looked.
            self.close()
        raise ServiceUnavailable("the process that starts containers (zygote) ends as soon as it is started")


@contextlib.contextmanager
def _pidfd(processes: RealProcesses, process: ProcessHandle) -> Iterator[int | None]:
    """Open a pidfd, which stays with the process even if its pid is reused; None if the process has ended."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        # Checked after opening: from here on the pidfd cannot refer to another process.
        yield pidfd if processes.alive(process) else None
    finally:
        os.close(pidfd)


def _set_open_files(pid: int, soft: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerExec:
    processes: RealProcesses

    async def run(self, order: ExecRequest) -> "RealCommand":
        """Start a command; ExecError says why it cannot be run."""
        connection = self.processes.enter()
        connection.settimeout(0)
        fds: list[int] = []
        try:
            await asyncio.get_running_loop().sock_sendall(connection, _encode(order))
            await _readable(connection.fileno())
            data, fds, _, _ = socket.recv_fds(connection, LINE_BYTES, MAX_FDS, socket.MSG_CMSG_CLOEXEC)
            answer, _, unread = data.partition(b"\n")
            _check(json.loads(answer or b'{"error": "the process that runs commands ended"}'))
            return RealCommand(connection, fds, unread, has_terminal=order.has_terminal)
        except BaseException:
            connection.close()
            for fd in fds:
                os.close(fd)
            raise


class RealCommand:
    """A running command: the socket to its parent process in the container, and its pipes or terminal."""

    def __init__(self, connection: socket.socket, fds: list[int], unread: bytes, *, has_terminal: bool) -> None:
        self._connection = connection
        self._unread = unread
        self._has_terminal = has_terminal
        self._open = set(fds)
        for fd in fds:
            os.set_blocking(fd, False)
        if has_terminal:
            # A descriptor per direction: an event loop watches a descriptor for one of them at a time.
            self._outputs = {STDOUT: fds[0]}
            self._input = os.dup(fds[0])
            self._open.add(self._input)
        else:
            self._outputs = {STDOUT: fds[0], STDERR: fds[1]}
            self._input = fds[2] if len(fds) > 2 else -1

    async def output(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield the output until the command has ended and its output is read, without waiting for its children."""
        has_ended, outputs = False, dict(self._outputs)
        while True:
            is_idle = True
            for channel, fd in tuple(outputs.items()):
                data = _read_available(fd)
                if data:
                    is_idle = False
                    yield channel, data
                elif data is not None:
                    del outputs[channel]
            if not is_idle:
                continue
            if has_ended:
                return
            # Checked before the last read: all that the command wrote before its end can be read by then.
            has_ended = self._has_ended()
            if not has_ended:
                await _readable(self._connection.fileno(), *outputs.values())

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view and self._input in self._open:
            try:
                view = view[os.write(self._input, view) :]
            except BlockingIOError:
                await _writable(self._input)
            except OSError:
                return  # The command no longer reads.

    def end_input(self) -> None:
        """End the input: close the pipe, or send Ctrl-D to the terminal."""
        if self._input not in self._open:
            return
        if self._has_terminal:
            with contextlib.suppress(OSError):
                os.write(self._input, b"\x04")
        else:
            self._close(self._input)

    def resize(self, width: int, height: int) -> None:
        if self._has_terminal and self._input in self._open:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._input, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    async def code(self) -> int:
        """Wait for the end and return the exit code; 137 if the command's parent process was killed."""
        while not self._has_ended():
            await _readable(self._connection.fileno())
        return int(json.loads(self._unread.partition(b"\n")[0]).get("code", KILLED))

    def close(self) -> None:
        """Close the socket, whereupon the parent process kills what still runs of the command."""
        for fd in tuple(self._open):
            self._close(fd)
        self._connection.close()

    def _has_ended(self) -> bool:
        """Return whether the parent process has sent the exit code, or has ended."""
        with contextlib.suppress(BlockingIOError):
            while b"\n" not in self._unread:
                self._unread += self._connection.recv(LINE_BYTES) or b"{}\n"
        return b"\n" in self._unread

    def _close(self, fd: int) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(fd)
        loop.remove_writer(fd)
        self._open.discard(fd)
        os.close(fd)


def _check(answer: dict[str, str]) -> None:
    if "error" in answer:
        raise (ContainerGone if answer.get("sort") == GONE else ExecError)(answer["error"])


def _encode(order: ExecRequest) -> bytes:
    user = order.user
    data = json.dumps(
        {
            "shim": order.shim.pid,
            "ticks": order.shim.start_ticks,
            "argv": order.argv,
            "env": dict(order.env),
            "cwd": order.folder,
            "uid": user.uid if user else None,
            "gid": user.gid if user else None,
            "groups": user.groups if user else (),
            "tty": order.has_terminal,
            "stdin": order.has_input,
            "filter": order.filter,
            "oomScore": order.oom_score,
        }
    ).encode()
    return struct.pack("!I", len(data)) + data


def _read_available(fd: int) -> bytes | None:
    """Return the bytes that can be read: empty at the end, None if there are none yet."""
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""  # EIO: no process has the terminal open any more.


async def _readable(*fds: int) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    for fd in fds:
        loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        for fd in fds:
            loop.remove_reader(fd)


async def _writable(fd: int) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_writer(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(fd)
