"""Limits per caller: concurrent requests, open streams and request bodies.

Like API priority and fairness: excess requests wait for a moment and are then rejected with 429 and a Retry-After.
A caller is a pod, for tokens bound to one, and otherwise a user. Controllers and the node agent are exempt.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from paceline.apiserver.http_types import Caller
from paceline.apiserver.status_errors import too_many

MIB = 1024 * 1024
# Kubernetes' limit for a server. Users share the administrator's token with programs.
REQUESTS = 400
POD_REQUESTS = 32
# As many may wait, for this long.
WAIT_SECONDS = 5.0
# Watches, followed logs, exec sessions and proxied streams. Each takes one of the limited connections.
STREAMS = 4096
POD_STREAMS = 64
# Large bodies in progress: checking an object of 3 MiB takes many times its size.
BODY_BYTES, POD_BODY_BYTES, ALL_BODY_BYTES = 32 * MIB, 6 * MIB, 64 * MIB
SMALL_BODY_BYTES = 64 * 1024
# Retry-After of a rejected caller.
RETRY_SECONDS = 1

POD_UID = "authentication.kubernetes.io/pod-uid"
_SYSTEM = "system:"


@dataclass(slots=True)
class _Flow:
    name: str
    requests: int = 0
    streams: int = 0
    body_bytes: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


# The seat to return; None for exempt callers.
Seat = _Flow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLimits:
    requests: int
    streams: int
    body_bytes: int = BODY_BYTES


USER_LIMITS = FlowLimits(requests=REQUESTS, streams=STREAMS)
POD_LIMITS = FlowLimits(requests=POD_REQUESTS, streams=POD_STREAMS, body_bytes=POD_BODY_BYTES)


class Fairness:
    def __init__(
        self, *, holder: FlowLimits = USER_LIMITS, pod: FlowLimits = POD_LIMITS, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._holder, self._pod = holder, pod
        self._wait_seconds = wait_seconds
        self._flows: dict[str, _Flow] = {}
        self._body_bytes = 0

    async def enter(self, caller: Caller) -> Seat:
        """Take a seat until `leave`; wait if there is none, and raise TooManyRequests after a while."""
        if _is_exempt(caller):
            return None
        flow, limits = self._flow_of(caller)
        if flow.requests >= limits.requests:
            await self._wait(flow, limits, caller)
        else:
            flow.requests += 1
        return flow

    def leave(self, seat: Seat) -> None:
        """Return a seat, to the next waiting request if there is one."""
        if seat is not None:
            self._hand_over(seat)
            self._forget(seat)

    @contextmanager
    def stream(self, caller: Caller) -> Iterator[None]:
        """Count a stream while it is open; raise TooManyRequests if there are too many."""
        if _is_exempt(caller):
            yield
            return
        flow, limits = self._flow_of(caller)
        if flow.streams >= limits.streams:
            raise too_many(f"{caller.name} has {limits.streams} streams open; close one first", RETRY_SECONDS)
        flow.streams += 1
        try:
            yield
        finally:
            flow.streams -= 1
            self._forget(flow)

    @contextmanager
    def body(self, caller: Caller, size: int) -> Iterator[None]:
        """Count a body while it is in memory; raise TooManyRequests if there is no room."""
        if size <= SMALL_BODY_BYTES or _is_exempt(caller):
            yield
            return
        flow, limits = self._flow_of(caller)
        if flow.body_bytes + size > limits.body_bytes or self._body_bytes + size > ALL_BODY_BYTES:
            raise too_many("too many large requests are under way", RETRY_SECONDS)
        flow.body_bytes += size
        self._body_bytes += size
        try:
            yield
        finally:
            flow.body_bytes -= size
            self._body_bytes -= size

    def _flow_of(self, caller: Caller) -> tuple[_Flow, FlowLimits]:
        extra = dict(caller.account.extra) if caller.account else {}
        name, limits = (extra[POD_UID], self._pod) if POD_UID in extra else (caller.name, self._holder)
        # Most callers have a flow already.
        return self._flows.get(name) or self._flows.setdefault(name, _Flow(name)), limits

    async def _wait(self, flow: _Flow, limits: FlowLimits, caller: Caller) -> None:
        message = f"{caller.name} has {limits.requests} requests under way"
        if len(flow.waiting) >= limits.requests:
            raise too_many(f"{message} and as many waiting", RETRY_SECONDS)
        seat = asyncio.get_running_loop().create_future()
        flow.waiting.append(seat)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await seat
        except BaseException as error:
            if seat.done() and not seat.cancelled():
                # The seat was handed over at the same moment.
                self._hand_over(flow)
            elif seat in flow.waiting:
                flow.waiting.remove(seat)
            if isinstance(error, TimeoutError):
                raise too_many(f"{message}, and none ended within {self._wait_seconds:g} s", RETRY_SECONDS) from error
            raise

    def _hand_over(self, flow: _Flow) -> None:
        while flow.waiting:
            seat = flow.waiting.popleft()
            if not seat.done():
                seat.set_result(None)
                return
        flow.requests -= 1

    def _forget(self, flow: _Flow) -> None:
        if not flow.requests and not flow.streams and self._flows.get(flow.name) is flow:
            del self._flows[flow.name]


def _is_exempt(caller: Caller) -> bool:
    """Return whether a caller is one of our own processes: only these have a system name and no account."""
    return caller.account is None and caller.name.startswith(_SYSTEM)
