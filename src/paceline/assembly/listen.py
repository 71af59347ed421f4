"""Serve an ASGI app with uvicorn inside our own loop, under our own signals."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn

from paceline.assembly.settings import LOOPBACK
from paceline.errors import Unavailable


class Listener(uvicorn.Server):
    """uvicorn's server without its own idea of signals: whoever assembles it decides when it ends."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def loopback_socket(port: int) -> socket.socket:
    """Bind a loopback port; a taken or absent one is replaced by any free one."""
    for wanted in (port, 0):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((LOOPBACK, wanted))
        except OSError:
            sock.close()
            continue
        sock.listen(1024)
        sock.setblocking(False)
        return sock
    raise Unavailable(f"no free port on {LOOPBACK}")


def unix_socket(path: Path) -> socket.socket:
    """Bind a Unix socket that only its owner may open."""
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(str(path))
    except OSError as error:
        sock.close()
        raise Unavailable(
            f"cannot listen at {path}: {error}; choose a shorter PACELINE_HOME (a socket's path holds 107 bytes)"
        ) from error
    path.chmod(0o600)
    sock.listen(1024)
    sock.setblocking(False)
    return sock


async def serve(app: Any, sock: socket.socket, *, tls: tuple[Path, Path] | None, started: asyncio.Event) -> None:
    """Serve until cancelled; `started` is set once connections are taken."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        loop="none",
        http="httptools",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # Watches never end by themselves.
        timeout_graceful_shutdown=1,
        timeout_keep_alive=75,
        ssl_certfile=str(tls[0]) if tls else None,
        ssl_keyfile=str(tls[1]) if tls else None,
    )
    listener = Listener(config)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(listener.serve([sock]))
        try:
            while not listener.started and not serving.done():
                await asyncio.sleep(0.005)
            started.set()
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            listener.should_exit = True
            await asyncio.wait([serving], timeout=3)
            raise
