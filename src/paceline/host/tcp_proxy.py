"""Ports of the external address: bytes of whoever calls there are passed on to a pod, both ways, as they come.

Nothing is read ahead: what one side does not take, the other is not asked for. When as many callers are in as may be,
the next ones wait in the kernel's queue.
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
from paceline.node.network.service_proxy import Lead

# Callers of one port at a time.
MOST_CALLERS = 512
QUEUE = 1024
PIECE_BYTES = 65536
DIAL_SECONDS = 10.0
# When the machine has no more files or memory for a caller.
BREATH_SECONDS = 0.1
_AT_ONCE = struct.pack("ii", 1, 0)


@dataclass(slots=True, kw_only=True)
class OpenPorts:
    """The ports that listen, each with a task of its own."""

    address: str
    group: asyncio.TaskGroup
    _tasks: dict[int, asyncio.Task[None]] = field(init=False, default_factory=dict)

    def open(self, port: int, lead: Lead) -> None:
        """Listen, and lead whoever calls; HostError says why the port cannot be had."""
        sock = listen(self.address, port)
        self._tasks[port] = self.group.create_task(_serve(sock, lead), name=f"port-{port}")
        # Also when it ends before it has begun.
        self._tasks[port].add_done_callback(lambda _task: sock.close())

    async def close(self, port: int) -> None:
        """Listen no more, and end what is under way."""
        task = self._tasks.pop(port)
        task.cancel()
        await asyncio.wait([task])


def listen(address: str, port: int) -> socket.socket:
    """Give a socket that listens; HostError says what to do when it cannot."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        # What a process that was killed left in its last state does not stand in the way.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(QUEUE)
    except OSError as error:
        sock.close()
        raise HostError(_why(error, address, port)) from error
    sock.settimeout(0)
    return sock


def _why(error: OSError, address: str, port: int) -> str:
    start = f"port {port} of {address} cannot be had"
    match error.errno:
        case errno.EADDRINUSE:
            return f"{start}: another program listens there; it is tried again until that has ended"
        case errno.EACCES | errno.EPERM:
            open_to_all = f"`sysctl net.ipv4.ip_unprivileged_port_start={port}`"
            return f"{start}: it takes root; start as root, or let everybody have it: {open_to_all}"
        case errno.EADDRNOTAVAIL:
            return f"{start}: this machine has no such address; `paceline up --external-address` chooses another"
    return f"{start}: {error.strerror}"


async def _serve(sock: socket.socket, lead: Lead) -> None:
    loop, room = asyncio.get_running_loop(), asyncio.Semaphore(MOST_CALLERS)
    async with asyncio.TaskGroup() as callers:
        while True:
            await room.acquire()
            try:
                caller, peer = await loop.sock_accept(sock)
            except OSError:
                # It has hung up already, or there are no more files: those who are in will leave some.
                room.release()
                await asyncio.sleep(BREATH_SECONDS)
                continue
            task = callers.create_task(_receive(caller, str(peer[0]), lead))
            task.add_done_callback(partial(_see_off, caller, room))


def _see_off(caller: socket.socket, room: asyncio.Semaphore, _task: asyncio.Task[None]) -> None:
    # Also when the port is closed before its task has begun.
    caller.close()
    room.release()


async def _receive(caller: socket.socket, peer: str, lead: Lead) -> None:
    """Pass one caller on until both sides have had enough, or one is gone."""
    place = await lead(peer)
    far = await _dial(place) if place else None
    if far is None:
        _slam(caller)
        return
    with far:
        for each in (caller, far):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Who is gone without a word is noticed in the end.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(caller, far))
                both.create_task(_copy(far, caller))
        except* OSError:
            _slam(caller)
            _slam(far)


async def _dial(place: Address) -> socket.socket | None:
    """Call a pod; None when it does not answer."""
    far = socket.socket(socket.AF_INET6 if ":" in place.address else socket.AF_INET, socket.SOCK_STREAM)
    far.settimeout(0)
    try:
        async with asyncio.timeout(DIAL_SECONDS):
            await asyncio.get_running_loop().sock_connect(far, (place.address, place.port))
    except (OSError, TimeoutError):
        far.close()
        return None
    except BaseException:
        far.close()
        raise
    return far


async def _copy(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes, and that nothing more comes."""
    loop = asyncio.get_running_loop()
    while piece := await loop.sock_recv(source, PIECE_BYTES):
        await loop.sock_sendall(target, piece)
    target.shutdown(socket.SHUT_WR)


def _slam(sock: socket.socket) -> None:
    """Let the other side notice at once that there is no more, rather than take it for the end."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
