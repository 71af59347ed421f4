"""How much of the server one caller may take: requests under way, and streams that stay open.

As Kubernetes' priority and fairness does it: what is too much waits for a moment, and is then refused with 429 and a
time after which to try again. A caller is a pod, for tokens that are bound to one, and else the holder of the token.
The controllers and the node agent are exempt: nobody can keep them waiting.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from paceline.apiserver.http_types import Caller
from paceline.apiserver.status_errors import too_many

MIB = 1024 * 1024
# Kubernetes' own number for a whole server. People share the administrator's token, programs that write beside them.
REQUESTS = 400
# One pod does a few things at a time; a thousand pods do them at once.
POD_REQUESTS = 32
# As many again may wait, for so long.
WAIT_SECONDS = 5.0
# Watches, followed logs, commands and whatever is passed on to pods. Each takes a connection, of which there are fewer.
STREAMS = 4096
POD_STREAMS = 64
# Bodies that are being received or worked on, beyond small ones: an object of 3 MiB takes many times as much to check.
BODY_BYTES, POD_BODY_BYTES, ALL_BODY_BYTES = 32 * MIB, 6 * MIB, 64 * MIB
SMALL_BODY_BYTES = 64 * 1024
# Until a caller that was refused should come again.
RETRY_SECONDS = 1

POD_UID = "authentication.kubernetes.io/pod-uid"
_SYSTEM = "system:"


@dataclass(slots=True)
class _Flow:
    """What one caller has under way."""

    name: str
    requests: int = 0
    streams: int = 0
    body_bytes: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


# What a caller gives back; None for those who need none.
Seat = _Flow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLimits:
    """How much one caller may have under way."""

    requests: int
    streams: int
    body_bytes: int = BODY_BYTES


USER_LIMITS = FlowLimits(requests=REQUESTS, streams=STREAMS)
POD_LIMITS = FlowLimits(requests=POD_REQUESTS, streams=POD_STREAMS, body_bytes=POD_BODY_BYTES)


class Fairness:
    """Counts what callers have under way."""

    def __init__(
        self, *, holder: FlowLimits = USER_LIMITS, pod: FlowLimits = POD_LIMITS, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._holder, self._pod = holder, pod
        self._wait_seconds = wait_seconds
        self._flows: dict[str, _Flow] = {}
        self._body_bytes = 0

    async def enter(self, caller: Caller) -> Seat:
        """Take a seat until `leave`; wait for one if there is none, and refuse if that takes too long."""
        if _is_exempt(caller):
            return None
        name, shares = self._of(caller)
        flow = self._flows.get(name)
        if flow is None:
            flow = self._flows[name] = _Flow(name)
        if flow.requests >= shares.requests:
            await self._wait(flow, shares, caller)
        else:
            flow.requests += 1
        return flow

    def leave(self, seat: Seat) -> None:
        """Give a seat back, to whoever waits for it."""
        if seat is not None:
            self._hand_over(seat)
            self._forget(seat)

    @contextmanager
    def stream(self, caller: Caller) -> Iterator[None]:
        """Count a stream for as long as it is open; refuse one too many."""
        if _is_exempt(caller):
            yield
            return
        name, shares = self._of(caller)
        flow = self._flows.setdefault(name, _Flow(name))
        if flow.streams >= shares.streams:
            raise too_many(f"{caller.name} has {shares.streams} streams open; close one first", RETRY_SECONDS)
        flow.streams += 1
        try:
            yield
        finally:
            flow.streams -= 1
            self._forget(flow)

    @contextmanager
    def body(self, caller: Caller, size: int) -> Iterator[None]:
        """Count a body while it is held; refuse one for which there is no room now."""
        if size <= SMALL_BODY_BYTES or _is_exempt(caller):
            yield
            return
        name, shares = self._of(caller)
        flow = self._flows.setdefault(name, _Flow(name))
        if flow.body_bytes + size > shares.body_bytes or self._body_bytes + size > ALL_BODY_BYTES:
            raise too_many("too many large requests are under way", RETRY_SECONDS)
        flow.body_bytes += size
        self._body_bytes += size
        try:
            yield
        finally:
            flow.body_bytes -= size
            self._body_bytes -= size

    def _of(self, caller: Caller) -> tuple[str, FlowLimits]:
        extra = caller.account.extra if caller.account else ()
        for key, value in extra:
            if key == POD_UID:
                return value, self._pod
        return caller.name, self._holder

    async def _wait(self, flow: _Flow, shares: FlowLimits, caller: Caller) -> None:
        """Wait until whoever leaves hands its seat over."""
        said = f"{caller.name} has {shares.requests} requests under way"
        if len(flow.waiting) >= shares.requests:
            raise too_many(f"{said} and as many waiting", RETRY_SECONDS)
        seat = asyncio.get_running_loop().create_future()
        flow.waiting.append(seat)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await seat
        except BaseException as error:
            if seat.done() and not seat.cancelled():
                # It was handed over in the very moment in which nobody wanted it any more.
                self._hand_over(flow)
            elif seat in flow.waiting:
                flow.waiting.remove(seat)
            if isinstance(error, TimeoutError):
                raise too_many(f"{said}, and none ended within {self._wait_seconds:g} s", RETRY_SECONDS) from error
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
    """Tell whether a caller is one of our own processes: nobody else has such a name and no account."""
    return caller.account is None and caller.name.startswith(_SYSTEM)
