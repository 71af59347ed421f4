"""Limits on open connections, in all and per peer, and the choice of a connection to close when there are too many.

Closing a connection without a request in progress costs its client nothing. A new connection therefore replaces the one
that has been silent longest: first connections that never sent a complete request, then idle ones. If all are busy, the
new one is refused. A peer is an address: every pod has its own, everything else on this machine is loopback.
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
# For a client that does not read its response. Long, because a user may read a log in a pager.
WRITE_SECONDS = 300.0
# How much is buffered for a client that does not read, beside the buffers of TLS and the socket.
WRITE_BYTES = 32 * 1024
# After a refusal the remaining request is read and dropped, otherwise the client may never see the response.
LINGER_SECONDS = 2.0
LINGER_BYTES = 4 * 1024 * 1024
# Requests that wait behind the one in progress on the same connection.
PIPELINED = 64
# One pod: a training process with its data loaders and some tools that follow the API.
PEER_CONNECTIONS = 256
# Everything that is not a pod shares loopback: kubectl, SDKs, consoles, pods on the machine's network.
LOCAL_CONNECTIONS = 4096
ALL_CONNECTIONS = 16_384
# Open files of the process other than clients' connections: store, logs, sockets to the agent, threads.
OTHER_FILES = 256
# After so many closed connections memory is returned to the machine, a little later.
CLOSED_ENOUGH, TRIM_SECONDS = 32, 3.0

LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The maximum number of connections."""

    all: int = ALL_CONNECTIONS
    local: int = LOCAL_CONNECTIONS
    peer: int = PEER_CONNECTIONS

    @classmethod
    def of_process(cls) -> "Bounds":
        """Return the bounds that the process's limit on open files allows.

        A stream to a pod takes a second file, so connections get half of the files that are not otherwise needed.
        """
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        most = ALL_CONNECTIONS if files == resource.RLIM_INFINITY else min(ALL_CONNECTIONS, (files - OTHER_FILES) // 2)
        most = max(most, 16)
        # A single peer never gets all connections.
        return cls(all=most, local=min(LOCAL_CONNECTIONS, most * 3 // 4), peer=min(PEER_CONNECTIONS, most // 4))


@dataclass(slots=True)
class _Peer:
    """The connections of one address, the longest silent first. Finding the first is slow in a plain dict."""

    count: int = 0
    unproven: OrderedDict["ConnectionSlot", None] = field(default_factory=OrderedDict)
    idle: OrderedDict["ConnectionSlot", None] = field(default_factory=OrderedDict)

    def first(self) -> "ConnectionSlot | None":
        return next(iter(self.unproven), None) or next(iter(self.idle), None)


class ConnectionSlot:
    """One connection's share of the limits."""

    __slots__ = ("_is_open", "_limiter", "_peer", "close")

    def __init__(self, limiter: "ConnectionLimiter", peer: str) -> None:
        self._limiter = limiter
        self._peer = peer
        self._is_open = True
        # Ends the connection at once; set by the connection.
        self.close: Callable[[], object] = _nothing

    def busy(self) -> None:
        """Mark that a request is in progress: the connection must not be closed for another."""
        peer = self._limiter.peers[self._peer] if self._is_open else None
        if peer is not None:
            peer.unproven.pop(self, None)
            peer.idle.pop(self, None)

    def idle(self) -> None:
        """Mark that the request was answered: the connection may be closed for another."""
        if self._is_open:
            self._limiter.peers[self._peer].idle[self] = None

    def release(self) -> None:
        """Release the slot; calling it again has no effect."""
        if self._is_open:
            self.busy()
            self._is_open = False
            self._limiter.release(self._peer)


class ConnectionLimiter:
    """Counts the connections of a process's listeners. `trim` returns freed memory to the machine."""

    def __init__(self, bounds: Bounds | None = None, trim: Callable[[], object] | None = None) -> None:
        self.bounds = bounds or Bounds.of_process()
        self.peers: dict[str, _Peer] = {}
        self.count = 0
        self._trim = trim
        self._closed = 0
        self._timer: asyncio.TimerHandle | None = None
        self._trimming: asyncio.Future[object] | None = None

    def acquire(self, peer: str) -> ConnectionSlot | None:
        """Return a slot for a new connection, or None if it must be refused."""
        connections = self.peers.get(peer)
        limit = self.bounds.local if peer == LOCAL else self.bounds.peer
        if connections is not None and connections.count >= limit and not self._close_one(connections):
            return None
        if self.count >= self.bounds.all:
            largest = max(self.peers.values(), key=lambda peer: peer.count)
            if not self._close_one(largest):
                return None
        slot = ConnectionSlot(self, peer)
        connections = self.peers.setdefault(peer, _Peer())
        connections.count += 1
        connections.unproven[slot] = None
        self.count += 1
        return slot

    def release(self, peer: str) -> None:
        """Forget one connection; called by its slot only."""
        connections = self.peers[peer]
        connections.count -= 1
        self.count -= 1
        if not connections.count:
            del self.peers[peer]
        self._closed += 1
        if self._trim is not None and self._timer is None and self._closed >= CLOSED_ENOUGH:
            self._timer = asyncio.get_running_loop().call_later(TRIM_SECONDS, self._trim_memory)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_one(self, peer: _Peer) -> bool:
        slot = peer.first()
        if slot is None:
            return False
        slot.release()
        slot.close()
        return True

    def _trim_memory(self) -> None:
        self._timer, self._closed = None, 0
        if self._trim is not None:
            # A connection's objects may form cycles. Objects from the start of the process are frozen and not searched.
            gc.collect()
            # Not on the event loop: it takes some milliseconds, and the call itself releases the interpreter.
            self._trimming = asyncio.get_running_loop().run_in_executor(None, self._trim)


def peer_of(address: object) -> str:
    host = address[0] if isinstance(address, tuple) and address else ""
    return LOCAL if not isinstance(host, str) or not host or host.startswith("127.") or host == "::1" else host


def _nothing() -> None:
    """Do nothing: the connection is not established yet."""
