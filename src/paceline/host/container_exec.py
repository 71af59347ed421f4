"""Exec on this machine: a process forked from the zygote enters the container, and its pipes come back."""

import asyncio
import contextlib
import fcntl
import json
import os
import socket
import struct
import termios
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from paceline.host.shim_processes import RealProcesses
from paceline.node.runtime.exec_types import STDERR, STDOUT, Gone, NotRun, Order
from paceline.node.runtime.nsenter import GONE

CHUNK = 64 * 1024
MAX_FDS = 3
LINE_BYTES = 16 * 1024
KILLED = 137


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Runs commands in containers."""

    processes: RealProcesses

    async def run(self, order: Order) -> "RealCommand":
        """Start a command; NotRun says why it cannot be run."""
        line = self.processes.enter()
        line.settimeout(0)
        ends: list[int] = []
        try:
            await asyncio.get_running_loop().sock_sendall(line, _written(order))
            await _readable(line.fileno())
            data, ends, _, _ = socket.recv_fds(line, LINE_BYTES, MAX_FDS, socket.MSG_CMSG_CLOEXEC)
            first, _, rest = data.partition(b"\n")
            _check(json.loads(first or b'{"error": "the process that runs commands ended"}'))
            return RealCommand(line, ends, rest, has_terminal=order.has_terminal)
        except BaseException:
            line.close()
            for fd in ends:
                os.close(fd)
            raise


class RealCommand:
    """A command under way: the line to its keeper, and its pipes or its terminal."""

    def __init__(self, line: socket.socket, ends: list[int], rest: bytes, *, has_terminal: bool) -> None:
        self._line = line
        self._rest = rest
        self._has_terminal = has_terminal
        self._open = set(ends)
        for fd in ends:
            os.set_blocking(fd, False)
        if has_terminal:
            # Handles of its own for each direction: a loop watches a handle for one thing at a time.
            self._outputs = {STDOUT: ends[0]}
            self._input = os.dup(ends[0])
            self._open.add(self._input)
        else:
            self._outputs = {STDOUT: ends[0], STDERR: ends[1]}
            self._input = ends[2] if len(ends) > 2 else -1

    async def output(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Give what it writes until it has ended and all of that is read, but not what it left running behind."""
        is_over, left = False, dict(self._outputs)
        while True:
            is_idle = True
            for channel, fd in tuple(left.items()):
                data = _take(fd)
                if data:
                    is_idle = False
                    yield channel, data
                elif data is not None:
                    del left[channel]
            if not is_idle:
                continue
            if is_over:
                return
            # Asked before the last look: what it wrote before its end can be read by then.
            is_over = self._is_over()
            if not is_over:
                await _readable(self._line.fileno(), *left.values())

    async def write(self, data: bytes) -> None:
        """Give it something to read."""
        view = memoryview(data)
        while view and self._input in self._open:
            try:
                view = view[os.write(self._input, view) :]
            except BlockingIOError:
                await _writable(self._input)
            except OSError:
                return  # It reads no more.

    def end_input(self) -> None:
        """Let it read the end: by closing a pipe, or by the key that says so on a terminal."""
        if self._input not in self._open:
            return
        if self._has_terminal:
            with contextlib.suppress(OSError):
                os.write(self._input, b"\x04")
        else:
            self._shut(self._input)

    def resize(self, width: int, height: int) -> None:
        """Tell it how large its terminal is now."""
        if self._has_terminal and self._input in self._open:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._input, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    async def code(self) -> int:
        """Wait for its end and give its exit code; that of a kill when its keeper was killed."""
        while not self._is_over():
            await _readable(self._line.fileno())
        return int(json.loads(self._rest.partition(b"\n")[0]).get("code", KILLED))

    def close(self) -> None:
        """Hang up, whereupon its keeper ends whatever of it still runs."""
        for fd in tuple(self._open):
            self._shut(fd)
        self._line.close()

    def _is_over(self) -> bool:
        """Tell whether its keeper has said how it ended, or is gone."""
        with contextlib.suppress(BlockingIOError):
            while b"\n" not in self._rest:
                self._rest += self._line.recv(LINE_BYTES) or b"{}\n"
        return b"\n" in self._rest

    def _shut(self, fd: int) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(fd)
        loop.remove_writer(fd)
        self._open.discard(fd)
        os.close(fd)


def _check(said: dict[str, str]) -> None:
    if "error" in said:
        raise (Gone if said.get("sort") == GONE else NotRun)(said["error"])


def _written(order: Order) -> bytes:
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


def _take(fd: int) -> bytes | None:
    """Read what is there: nothing at the end, None when there is none yet."""
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""  # So says a terminal that nobody has open any more.


async def _readable(*fds: int) -> None:
    """Wait until one of these can be read."""
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
