"""The shims of this machine: started through the nursery, known by lock, pid, start time and boot."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from paceline.effects import ProcessHandle
from paceline.errors import ServiceUnavailable
from paceline.host.lockfile import is_locked
from paceline.host.open_files import restore_open_files
from paceline.node.runtime import shim, zygote


class RealProcesses:
    """Starts shims and follows them; the nursery is started when the first shim is."""

    def __init__(self, mark: str = "", *, clock_offset: int | None = None, open_files: int | None = None) -> None:
        # Whose shims they are, for people who look at the machine's processes.
        self._mark = mark
        # By what the shims stamp records and logs: nanoseconds to add to the uptime; None is the machine's clock.
        self._clock_offset = clock_offset
        # The soft limit on open files of what is started, if not that of this process.
        self._open_files = open_files
        self._nursery: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._boot_id = ""

    def boot_id(self) -> str:
        """Tell which boot of the machine this is; it is the same one for as long as this process lives."""
        self._boot_id = self._boot_id or shim.boot_id()
        return self._boot_id

    async def start(self, folder: Path) -> None:
        """Start a shim and return once its program runs, or has failed to, or the shim has ended."""
        # Once more after a silent end: a dying nursery takes requests that it will not answer.
        if not await self._start(folder):
            await self._start(folder)

    def warm_up(self) -> None:
        """Start the nursery now, so that the first container does not wait for it."""
        if self._nursery is not None and self._nursery.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        offset = [] if self._clock_offset is None else [str(self._clock_offset)]
        with theirs:
            self._nursery = subprocess.Popen(
                [sys.executable, "-I", "-S", zygote.__file__, str(theirs.fileno()), self._mark, *offset],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        if self._open_files is not None:
            # Before it is asked for anything: its shims inherit the limit.
            restore_open_files(self._nursery.pid, self._open_files)
        self._requests = ours

    def close(self) -> None:
        """Let the nursery go; its shims stay."""
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._nursery is not None:
            self._nursery.wait()
            self._nursery = None

    def holds(self, folder: Path) -> bool:
        """Tell whether a live shim holds the folder's lock, by trying to take it."""
        return is_locked(folder / shim.LOCK)

    def alive(self, who: ProcessHandle) -> bool:
        """Tell whether this very process still runs."""
        return who.boot_id == self.boot_id() and shim.start_ticks(who.pid) == who.start_ticks

    async def ended(self, who: ProcessHandle) -> None:
        """Return when this very process is gone."""
        with _handle(self, who) as handle:
            if handle is not None:
                await _readable(handle)

    def signal(self, who: ProcessHandle, number: int) -> None:
        """Send a signal to this very process; gone already is fine."""
        with _handle(self, who) as handle, contextlib.suppress(ProcessLookupError):
            if handle is not None:
                signal.pidfd_send_signal(handle, number)

    async def _start(self, folder: Path) -> bool:
        """Ask for a shim; False when it, or the nursery, ended without a word."""
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            try:
                self._ask(os.fsencode(folder), writing)
            finally:
                os.close(writing)
            await _readable(reading)
            return bool(os.read(reading, 1))
        finally:
            os.close(reading)

    def enter(self) -> socket.socket:
        """Fork a process that runs a command in a container, and return the line to it (node/runtime/nsenter.py)."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._ask(zygote.EXEC.encode(), theirs.fileno())
        return ours

    def _ask(self, what: bytes, ready: int) -> None:
        for _ in range(2):
            self.warm_up()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                if self._requests is not None:
                    socket.send_fds(self._requests, [what], [ready])
                    return
            # It ended between the look and the call.
            self.close()
        raise ServiceUnavailable("the process that starts containers ends as soon as it is started")


@contextlib.contextmanager
def _handle(processes: RealProcesses, who: ProcessHandle) -> Iterator[int | None]:
    """Open a handle that no later process of the same pid can be behind; None when the process is gone."""
    try:
        handle = os.pidfd_open(who.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        # The handle is open: from here on the pid cannot be given to another process behind it.
        yield handle if processes.alive(who) else None
    finally:
        os.close(handle)


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        loop.remove_reader(fd)
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(fd, tell)
    try:
        await ready
    finally:
        loop.remove_reader(fd)
