"""Holds the console's port in the control process, and starts the console's process with the first connection.

The connection waits in the socket's backlog until that process accepts it, so none is lost while no process runs: at
the first visit, after a crash, and after the process has ended for lack of connections.
"""

import asyncio
import json
import logging
import socket
import sys
from collections.abc import Iterable

from paceline.cluster.agent_supervisor import end_process, wait_for_exit
from paceline.cluster.daemon import last_console_port
from paceline.cluster.supervisor import STEADY_SECONDS, pause_after
from paceline.host.asgi_server import loopback_socket
from paceline.host.effects import RealFiles
from paceline.settings import Settings

log = logging.getLogger(__name__)


async def keep_console(settings: Settings, ports: Iterable[int], is_open: asyncio.Event) -> None:
    """Listen on the console's port, and run its process whenever a client connects; set `is_open` once it listens."""
    # It holds the port, and sees at once that the control process which started it has ended.
    await wait_for_exit(settings.console_lock)
    loop, failures = asyncio.get_running_loop(), 0
    with open_socket(settings, ports) as sock:
        is_open.set()
        while True:
            await _connection(sock)
            began = loop.time()
            code = await _run(settings, sock)
            if code == 0:
                failures = 0
                continue
            failures = 0 if loop.time() - began >= STEADY_SECONDS else failures + 1
            log.warning("the console ended with exit code %d; the next connection starts it again", code)
            await asyncio.sleep(pause_after(failures))


def open_socket(settings: Settings, ports: Iterable[int]) -> socket.socket:
    """Return a socket on the port of the last start if it is free, else on one of `ports`, which is remembered."""
    preferred = last_console_port(settings)
    sock = loopback_socket(preferred, ports)
    port = sock.getsockname()[1]
    if port != preferred:
        RealFiles().write(settings.console, json.dumps({"port": port}).encode() + b"\n")
    return sock


async def _connection(sock: socket.socket) -> None:
    """Return when a connection waits to be accepted."""
    loop = asyncio.get_running_loop()
    is_waiting = asyncio.Event()
    loop.add_reader(sock, is_waiting.set)
    try:
        await is_waiting.wait()
    finally:
        loop.remove_reader(sock)


async def _run(settings: Settings, sock: socket.socket) -> int:
    """Run the console's process until it ends, and return its exit code."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "paceline.cluster.console.server", str(settings.home), str(sock.fileno())),
            # The process ends when this pipe is closed, also when the control process is killed.
            stdin=asyncio.subprocess.PIPE,
            pass_fds=(sock.fileno(),),
            cwd="/",
        )
    except OSError as error:
        log.warning("the console cannot be started: %s", error.strerror)
        return 1
    try:
        return await process.wait()
    except asyncio.CancelledError:
        await end_process(process)
        raise
