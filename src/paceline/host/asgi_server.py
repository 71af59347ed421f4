"""Serve an ASGI app with uvicorn's protocol inside our own loop, under our own signals.

uvicorn's own server wakes ten times a second and takes over signals; its protocol class alone does neither.
"""

import asyncio
import functools
import socket
import ssl
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import uvicorn
from uvicorn.server import ServerState

from paceline.client.http.reverse_proxy import MAX_MESSAGE_BYTES
from paceline.errors import HostError
from paceline.host.connection_limits import HEAD_SECONDS, ConnectionLimiter, ConnectionSlot, peer_of
from paceline.host.http_connection import ServerConnection
from paceline.settings import LOOPBACK

# How long requests in progress, such as watches, may take to end when the server stops.
SHUTDOWN_SECONDS = 1.0
PING_SECONDS = 30.0
# Between two attempts to accept a connection after one failed.
RETRY_SECONDS = 0.05


def loopback_socket(port: int, others: Iterable[int] = ()) -> socket.socket:
    """Listen on a loopback port; if it is 0 or taken, on the first free one of `others`, or on any."""
    for candidate in (*((port,) if port else ()), *others, 0):
        # With the protocol, because asyncio disables Nagle's algorithm (40 ms per response) only if it is named.
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((LOOPBACK, candidate))
        except OSError:
            sock.close()
            continue
        sock.listen(1024)
        sock.settimeout(0)
        return sock
    raise HostError(f"no free port on {LOOPBACK}")


def tcp_socket(host: str, port: int) -> socket.socket:
    """Listen on an address of this machine, for everybody who reaches it; `0.0.0.0` and `::` are all addresses."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise HostError(f"cannot listen at {host}:{port}: {error.strerror or error}") from error
    sock.listen(1024)
    sock.settimeout(0)
    return sock


def pod_sockets(address: str, port: int, bridge: str) -> tuple[socket.socket, ...]:
    """Listen on the machine's address in the pods' subnet, for pods and this machine only, by interface."""
    sockets = []
    for device in (bridge, "lo"):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sockets.append(sock)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            sock.bind((address, port))
        except OSError as error:
            for opened in sockets:
                opened.close()
            message = f"the API server cannot listen for pods at {address}:{port}: {error.strerror}"
            raise HostError(f"{message}; start with --network host, or free the port") from error
        sock.listen(1024)
        sock.settimeout(0)
    return tuple(sockets)


def unix_socket(path: Path) -> socket.socket:
    """Listen on a Unix socket that only its owner may open."""
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
    limiter: ConnectionLimiter | None = None,
) -> None:
    """Serve until cancelled; `started` is set once connections are accepted. Listeners may share a limiter."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        http="httptools",
        # Pings detect clients that vanished. No compression: messages are mostly small, or compressed already.
        ws=cast("type[asyncio.Protocol]", _open_websocket),
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        ws_per_message_deflate=False,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        # There is no trusted proxy in front of this server: X-Forwarded headers are ignored.
        proxy_headers=False,
        timeout_keep_alive=75,
        ssl_certfile=tls[0] if tls else None,
        ssl_keyfile=tls[1] if tls else None,
    )
    config.load()
    state = ServerState()
    limiter = limiter or ConnectionLimiter()
    started.set()
    try:
        async with asyncio.TaskGroup() as handshakes:
            await _accept(sock, limiter, config, state, handshakes)
    finally:
        sock.close()
        limiter.stop()
        await _shut_down(state)


def _open_websocket(**options: Any) -> asyncio.Protocol:
    """Return the protocol of a WebSocket; imported with the first of them, because every start would wait for it."""
    protocol: asyncio.Protocol = import_module("paceline.host.websocket").WebSocket(**options)
    return protocol


async def _accept(
    sock: socket.socket,
    limiter: ConnectionLimiter,
    config: uvicorn.Config,
    state: ServerState,
    handshakes: asyncio.TaskGroup,
) -> None:
    """Accept connections one by one, so that each has a slot before its handshake starts."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            accepted, address = await loop.sock_accept(sock)
        except OSError:
            # The client disconnected, or there are too many open files until other connections end.
            await asyncio.sleep(RETRY_SECONDS)
            continue
        slot = limiter.acquire(peer_of(address))
        if slot is None:
            accepted.close()
            continue
        factory = functools.partial(ServerConnection, config=config, server_state=state, app_state={}, slot=slot)
        slot.close = handshakes.create_task(_connect(accepted, factory, slot, config.ssl)).cancel


async def _connect(
    accepted: socket.socket, factory: Callable[[], ServerConnection], slot: ConnectionSlot, tls: ssl.SSLContext | None
) -> None:
    """Attach the protocol to an accepted socket, after the TLS handshake if there is one."""
    timeouts = {"ssl_handshake_timeout": HEAD_SECONDS, "ssl_shutdown_timeout": SHUTDOWN_SECONDS} if tls else {}
    try:
        await asyncio.get_running_loop().connect_accepted_socket(factory, accepted, ssl=tls, **timeouts)
    except (OSError, asyncio.CancelledError) as error:
        slot.release()
        accepted.close()
        if isinstance(error, asyncio.CancelledError):
            raise


async def _shut_down(state: ServerState) -> None:
    """Let requests in progress finish for a moment, then cancel them."""
    for connection in tuple(state.connections):
        connection.shutdown()
    if state.tasks:
        await asyncio.wait(tuple(state.tasks), timeout=SHUTDOWN_SECONDS)
    for task in tuple(state.tasks):
        task.cancel()
