"""Listen on ports of the external address, and forward TCP connections to pods.

Nothing is read ahead: data is read from one side only as fast as the other side takes it. When a port has its maximum
of connections, further ones wait in the kernel's queue.
"""

import asyncio
import contextlib
import errno
import socket
import struct
from dataclasses import dataclass, field
from functools import partial

from paceline.client.http.http1 import Address
from paceline.errors import HostError
from paceline.node.network.service_proxy import Route

# Connections of one port at a time.
MAX_CONNECTIONS = 512
BACKLOG = 1024
CHUNK = 65536
CONNECT_SECONDS = 10.0
# After an accept failed because the machine has no more files or memory.
RETRY_SECONDS = 0.1
_RESET = struct.pack("ii", 1, 0)


@dataclass(slots=True, kw_only=True)
class OpenPorts:
    address: str
    group: asyncio.TaskGroup
    _tasks: dict[int, asyncio.Task[None]] = field(init=False, default_factory=dict)

    def open(self, port: int, route: Route) -> None:
        sock = listen(self.address, port)
        self._tasks[port] = self.group.create_task(_serve(sock, route), name=f"port-{port}")
        # In a callback, because a task that is cancelled before its first step runs no `finally`.
        self._tasks[port].add_done_callback(lambda _task: sock.close())

    async def close(self, port: int) -> None:
        task = self._tasks.pop(port)
        task.cancel()
        await asyncio.wait([task])


def listen(address: str, port: int) -> socket.socket:
    """Return a listening socket; HostError says what to do if there can be none."""
    sock = socket.socket(_family(address), socket.SOCK_STREAM)
    try:
        # So that connections of a killed process in TIME_WAIT do not block the port.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise HostError(_message(error, address, port)) from error
    sock.settimeout(0)
    return sock


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _message(error: OSError, address: str, port: int) -> str:
    start = f"port {port} of {address} cannot be opened"
    match error.errno:
        case errno.EADDRINUSE:
            return f"{start}: another program listens on it; we try again until that program has ended"
        case errno.EACCES | errno.EPERM:
            setting = f"`sysctl net.ipv4.ip_unprivileged_port_start={port}`"
            return f"{start}: this takes root; start as root, or allow all users to open it with {setting}"
        case errno.EADDRNOTAVAIL:
            return f"{start}: this machine has no such address; choose one with `paceline up --external-address`"
    return f"{start}: {error.strerror}"


async def _serve(sock: socket.socket, route: Route) -> None:
    loop, slots = asyncio.get_running_loop(), asyncio.Semaphore(MAX_CONNECTIONS)
    async with asyncio.TaskGroup() as connections:
        while True:
            await slots.acquire()
            try:
                client, peer = await loop.sock_accept(sock)
            except OSError:
                # The client has disconnected, or there are no more files until other connections end.
                slots.release()
                await asyncio.sleep(RETRY_SECONDS)
                continue
            task = connections.create_task(_forward(client, str(peer[0]), route))
            task.add_done_callback(partial(_release, client, slots))


def _release(client: socket.socket, slots: asyncio.Semaphore, _task: asyncio.Task[None]) -> None:
    # Also called if the port is closed before the task's first step.
    client.close()
    slots.release()


async def _forward(client: socket.socket, peer: str, route: Route) -> None:
    """Forward one connection until both sides have ended it, or one fails."""
    address = await route(peer)
    backend = await _connect(address) if address else None
    if backend is None:
        _reset_on_close(client)
        return
    with backend:
        for sock in (client, backend):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # So that a peer that vanished is noticed in the end.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(client, backend))
                both.create_task(_copy(backend, client))
        except* OSError:
            _reset_on_close(client)
            _reset_on_close(backend)


async def _connect(address: Address) -> socket.socket | None:
    """Connect to a pod; None if it does not answer."""
    sock = socket.socket(_family(address.address), socket.SOCK_STREAM)
    sock.settimeout(0)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(sock, (address.address, address.port))
    except (OSError, TimeoutError):
        sock.close()
        return None
    except BaseException:
        sock.close()
        raise
    return sock


async def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy data to its end, and end the target's stream too."""
    loop = asyncio.get_running_loop()
    while chunk := await loop.sock_recv(source, CHUNK):
        await loop.sock_sendall(target, chunk)
    target.shutdown(socket.SHUT_WR)


def _reset_on_close(sock: socket.socket) -> None:
    """Have the socket reset when it is closed, so that the peer does not take the failure for a regular end."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
