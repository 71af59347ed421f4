"""Serve an ASGI app with uvicorn's protocol inside our own loop, under our own signals.

uvicorn's own server wakes ten times a second and takes over signals; its protocol class alone does neither.
"""

import asyncio
import contextlib
import functools
import socket
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from paceline.client.http.reverse_proxy import MAX_MESSAGE_BYTES
from paceline.errors import HostError
from paceline.host.connection_limits import HEAD_SECONDS, ConnectionLimiter, ConnectionSlot, peer_of
from paceline.host.http_connection import ServerConnection, WebSocket
from paceline.settings import LOOPBACK

# Watches never end by themselves; when the server stops they are given this long to be told.
GOODBYE_SECONDS = 1.0
PING_SECONDS = 30.0
# Between two attempts to take a connection after one failed.
AGAIN_SECONDS = 0.05
# As the kernel writes it in its tables.
LISTENING = "0A"


def loopback_socket(port: int, others: Iterable[int] = ()) -> socket.socket:
    """Bind a loopback port; a taken or absent one is replaced by the first of others that is free, or by any."""
    for wanted in (*((port,) if port else ()), *others, 0):
        # The protocol is named because asyncio turns off Nagle's delay (40 ms an answer) only where it is.
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((LOOPBACK, wanted))
        except OSError:
            sock.close()
            continue
        sock.listen(1024)
        sock.settimeout(0)
        return sock
    raise HostError(f"no free port on {LOOPBACK}")


def pod_sockets(address: str, port: int, bridge: str) -> tuple[socket.socket, ...]:
    """Bind the machine's address among its pods, for them and for itself: whoever comes another way is not heard."""
    made = []
    for device in (bridge, "lo"):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.append(sock)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            sock.bind((address, port))
        except OSError as error:
            for each in made:
                each.close()
            said = f"the API server cannot listen for pods at {address}:{port}: {error.strerror}"
            raise HostError(f"{said}; start with --network host, or free the port") from error
        sock.listen(1024)
        sock.settimeout(0)
    return tuple(made)


def listening_ports() -> frozenset[int]:
    """Find the ports on which programs of this machine listen."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            rows = (row.split() for row in Path(table).read_text().splitlines()[1:])
            found |= {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == LISTENING}
    return frozenset(found)


def unix_socket(path: Path) -> socket.socket:
    """Bind a Unix socket that only its owner may open."""
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(str(path))
    except OSError as error:
        sock.close()
        raise HostError(
            f"cannot listen at {path}: {error}; choose a shorter PACELINE_HOME (a socket's path holds 107 bytes)"
        ) from error
    path.chmod(0o600)
    sock.listen(1024)
    sock.settimeout(0)
    return sock


async def serve(
    app: Any,
    sock: socket.socket,
    *,
    tls: tuple[Path, Path] | None,
    started: asyncio.Event,
    front: ConnectionLimiter | None = None,
) -> None:
    """Serve until cancelled; `started` is set once connections are taken. Listeners that share a front share bounds."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        http="httptools",
        # Pings find clients that are gone without a word. What travels is mostly small, or compressed already.
        ws=WebSocket,
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        ws_per_message_deflate=False,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        # No proxy stands before this server: what a client says about itself is not believed.
        proxy_headers=False,
        timeout_keep_alive=75,
        ssl_certfile=tls[0] if tls else None,
        ssl_keyfile=tls[1] if tls else None,
    )
    config.load()
    state = ServerState()
    front = front or ConnectionLimiter()
    started.set()
    try:
        async with asyncio.TaskGroup() as greetings:
            await _accept(sock, front, config, state, greetings)
    finally:
        sock.close()
        front.stop()
        await _say_goodbye(state)


async def _accept(
    sock: socket.socket,
    front: ConnectionLimiter,
    config: uvicorn.Config,
    state: ServerState,
    greetings: asyncio.TaskGroup,
) -> None:
    """Take connections one by one, so that each has a place before it costs a handshake."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            accepted, address = await loop.sock_accept(sock)
        except OSError:
            # The client is gone, or there are too many open files: some are closed soon.
            await asyncio.sleep(AGAIN_SECONDS)
            continue
        place = front.enter(peer_of(address))
        if place is None:
            accepted.close()
            continue
        made = functools.partial(ServerConnection, config=config, server_state=state, app_state={}, place=place)
        place.close = greetings.create_task(_greet(accepted, made, place, config.ssl)).cancel


async def _greet(
    accepted: socket.socket, made: Callable[[], ServerConnection], place: ConnectionSlot, tls: ssl.SSLContext | None
) -> None:
    """Make a connection of an accepted socket, which may take a handshake."""
    times = {"ssl_handshake_timeout": HEAD_SECONDS, "ssl_shutdown_timeout": GOODBYE_SECONDS} if tls else {}
    try:
        await asyncio.get_running_loop().connect_accepted_socket(made, accepted, ssl=tls, **times)
    except (OSError, asyncio.CancelledError) as error:
        place.leave()
        accepted.close()
        if isinstance(error, asyncio.CancelledError):
            raise


async def _say_goodbye(state: ServerState) -> None:
    """Let requests under way finish for a moment, then end them."""
    for connection in tuple(state.connections):
        connection.shutdown()
    if state.tasks:
        await asyncio.wait(tuple(state.tasks), timeout=GOODBYE_SECONDS)
    for task in tuple(state.tasks):
        task.cancel()
