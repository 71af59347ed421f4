"""Bounds on connections: how many are open, from which address, and which one gives way when there are too many.

A connection without a request under way costs its owner nothing, so the one that has been silent longest gives way to a
new one: connections that never send a whole request first, then idle ones. Where every connection is busy the new one
is refused. A peer is an address: every pod has its own, everything else on this machine is loopback.
"""

import asyncio
import gc
import resource
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

# A request head as most servers bound it; Kubernetes' own clients send a few hundred bytes.
HEAD_BYTES = 64 * 1024
HEAD_FIELDS = 100
# From the first byte of a head to its last, from a new connection to its first head, and for a TLS handshake.
HEAD_SECONDS = 10.0
# For a client that takes nothing of its answer. Long, because somebody may read a log in a pager.
WRITE_SECONDS = 300.0
# What waits in memory for a client that does not read, beside what TLS and the socket hold of it.
WRITE_BYTES = 32 * 1024
# After a refusal the rest of the request is read and dropped, else the client may never see the answer.
LINGER_SECONDS = 2.0
LINGER_BYTES = 4 * 1024 * 1024
# Requests that wait behind the one under way on the same connection.
PIPELINED = 64
# One pod: a training process with its data loaders and some tools that follow the API.
PEER_CONNECTIONS = 256
# Everything that is not a pod shares loopback: kubectl, SDKs, consoles, pods on the machine's network.
LOCAL_CONNECTIONS = 4096
ALL_CONNECTIONS = 16_384
# Files of the process that are no connections of clients: store, logs, lines to the agent, threads.
OTHER_FILES = 256
# So many closed connections are worth giving memory back for, a little later.
CLOSED_ENOUGH, TRIM_SECONDS = 32, 3.0

LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How many connections there may be."""

    all: int = ALL_CONNECTIONS
    local: int = LOCAL_CONNECTIONS
    peer: int = PEER_CONNECTIONS

    @classmethod
    def of_process(cls) -> "Bounds":
        """Return the bounds that the process's limit on open files leaves room for.

        A stream to a pod takes a second file, so connections get half of what the rest leaves.
        """
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        most = ALL_CONNECTIONS if files == resource.RLIM_INFINITY else min(ALL_CONNECTIONS, (files - OTHER_FILES) // 2)
        most = max(most, 16)
        # One peer never takes everything.
        return cls(all=most, local=min(LOCAL_CONNECTIONS, most * 3 // 4), peer=min(PEER_CONNECTIONS, most // 4))


@dataclass(slots=True)
class _Peer:
    """The connections of one address, the longest silent one first. Of a plain dict the first is not found at once."""

    count: int = 0
    unproven: OrderedDict["ConnectionSlot", None] = field(default_factory=OrderedDict)
    idle: OrderedDict["ConnectionSlot", None] = field(default_factory=OrderedDict)

    def first(self) -> "ConnectionSlot | None":
        """Return the connection that gives way first."""
        return next(iter(self.unproven), None) or next(iter(self.idle), None)


class ConnectionSlot:
    """The place of one connection among all."""

    __slots__ = ("_front", "_is_open", "_peer", "close")

    def __init__(self, front: "ConnectionLimiter", peer: str) -> None:
        self._front = front
        self._peer = peer
        self._is_open = True
        # Ends the connection at once; set by whoever holds it.
        self.close: Callable[[], object] = _nothing

    def busy(self) -> None:
        """Mark that a request is under way: the connection does not give way."""
        peer = self._front.peers[self._peer] if self._is_open else None
        if peer is not None:
            peer.unproven.pop(self, None)
            peer.idle.pop(self, None)

    def idle(self) -> None:
        """Mark that the request was answered: the connection may give way."""
        if self._is_open:
            self._front.peers[self._peer].idle[self] = None

    def leave(self) -> None:
        """Give the place back; a second time is fine."""
        if self._is_open:
            self.busy()
            self._is_open = False
            self._front.left(self._peer)


class ConnectionLimiter:
    """Counts the connections of a process's listeners. `trim` gives freed memory back to the machine."""

    def __init__(self, bounds: Bounds | None = None, trim: Callable[[], object] | None = None) -> None:
        self.bounds = bounds or Bounds.of_process()
        self.peers: dict[str, _Peer] = {}
        self.count = 0
        self._trim = trim
        self._closed = 0
        self._timer: asyncio.TimerHandle | None = None
        self._trimming: asyncio.Future[object] | None = None

    def enter(self, peer: str) -> ConnectionSlot | None:
        """Return a place for a new connection, or None where it must be refused."""
        held = self.peers.get(peer)
        most = self.bounds.local if peer == LOCAL else self.bounds.peer
        if held is not None and held.count >= most and not self._give_way(held):
            return None
        if self.count >= self.bounds.all and not self._give_way(max(self.peers.values(), key=lambda each: each.count)):
            return None
        place = ConnectionSlot(self, peer)
        held = self.peers.setdefault(peer, _Peer())
        held.count += 1
        held.unproven[place] = None
        self.count += 1
        return place

    def left(self, peer: str) -> None:
        """Forget one connection; for places only."""
        held = self.peers[peer]
        held.count -= 1
        self.count -= 1
        if not held.count:
            del self.peers[peer]
        self._closed += 1
        if self._trim is not None and self._timer is None and self._closed >= CLOSED_ENOUGH:
            self._timer = asyncio.get_running_loop().call_later(TRIM_SECONDS, self._give_back)

    def stop(self) -> None:
        """Leave no timer behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_way(self, peer: _Peer) -> bool:
        place = peer.first()
        if place is None:
            return False
        place.leave()
        place.close()
        return True

    def _give_back(self) -> None:
        self._timer, self._closed = None, 0
        if self._trim is not None:
            # What a connection was made of may lead in circles. What was there at the start is not looked at again.
            gc.collect()
            # Beside the loop: it takes some milliseconds, and the call itself needs no interpreter.
            self._trimming = asyncio.get_running_loop().run_in_executor(None, self._trim)


def peer_of(address: object) -> str:
    """Return the peer of a socket's address."""
    host = address[0] if isinstance(address, tuple) and address else ""
    return LOCAL if not isinstance(host, str) or not host or host.startswith("127.") or host == "::1" else host


def _nothing() -> None:
    """Do nothing: the connection is not made yet."""
