"""Lead by a lease: of several controllers of one cluster only the one that holds the lease acts.

That is for peace, not for safety: two that both believe to lead cannot undo each other's work either, because every
write names the revision or the uid it means, and names of new pods are computed.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from paceline.apimachinery.meta import Key, Object, revision_of
from paceline.apimachinery.timestamps import to_wire_micro
from paceline.client.http.transport import Transport
from paceline.client.interface import LEASES, Cluster
from paceline.client.requests import Request, Response
from paceline.effects import Clock
from paceline.errors import AlreadyExists, Conflict, NotFound, PacelineError, ServiceUnavailable
from paceline.plan.leader_election import AGAIN_SECONDS, LEASE_SECONDS, LeaseAction, LeaseView, acts_until, decide

log = logging.getLogger(__name__)

# A renewal that hangs is given up in time for another one.
TRY_SECONDS = 4.0
LET_GO_SECONDS = 2.0
# A pause of nothing would ask the server again and again at one moment.
LEAST_SECONDS = 0.05


@dataclass(slots=True, kw_only=True)
class Leader:
    """Holds the lease, or waits for it."""

    # Not the fenced one: whoever does not lead must still be able to ask for the lease.
    cluster: Cluster
    clock: Clock
    # Namespace and name of the lease.
    key: Key
    # A name that nobody else has, nor had before.
    me: str
    # Told who leads whenever that changes.
    on_leader: Callable[[str], None] = lambda _name: None
    _lease: Object | None = None
    # Whether the lease may be another by now.
    _is_in_doubt: bool = True
    _unchanged_since: float = 0.0
    _until: float = 0.0
    _last_leader: str | None = None
    # When the lease was last read or written with success; None before the first time.
    _answered_at: float | None = None
    _has_changed: asyncio.Event = field(default_factory=asyncio.Event)

    def may_act(self) -> bool:
        """Return whether this one leads; asked before every write."""
        return self.clock.monotonic() < self._until

    def silent_seconds(self) -> float | None:
        """Return how long ago the lease was last looked after; None if it never was."""
        return None if self._answered_at is None else self.clock.monotonic() - self._answered_at

    async def lead(self, act: Callable[[], Awaitable[None]]) -> None:
        """Run `act` whenever this one leads, cancel it when it leads no more; until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep())
                while True:
                    await self._become(is_leading=True)
                    async with asyncio.TaskGroup() as term:
                        acting = term.create_task(_run(act))
                        await self._become(is_leading=False)
                        acting.cancel()
        finally:
            await self._let_go()

    async def _keep(self) -> None:
        """Look at the lease and do what is to be done with it, again and again."""
        troubles = 0
        while True:
            try:
                async with asyncio.timeout(TRY_SECONDS):
                    pause = await self._turn()
                troubles, self._answered_at = 0, self.clock.monotonic()
            except (Conflict, AlreadyExists):
                # Somebody was faster.
                self._is_in_doubt, pause = True, AGAIN_SECONDS / 4
            except (PacelineError, TimeoutError) as error:
                self._is_in_doubt, pause, troubles = True, AGAIN_SECONDS, troubles + 1
                level = logging.WARNING if troubles == 1 else logging.DEBUG
                log.log(level, "cannot look after the lease", extra={"error": str(error) or "no answer in time"})
            await asyncio.sleep(pause)

    async def _turn(self) -> float:
        """Move on by one plan; give the pause after it."""
        if self._is_in_doubt or not self._is_mine():
            await self._look()
        now = self.clock.monotonic()
        plan = decide(self._seen(), now)
        if plan.step is LeaseAction.WAIT:
            self._set_until(0.0)
        else:
            self._observe(await self._write(plan.step))
            self._set_until(acts_until(now))
        self._tell()
        return max(plan.look_again - self.clock.monotonic(), LEAST_SECONDS)

    async def _look(self) -> None:
        try:
            self._observe(await self.cluster.get(LEASES, *self.key))
        except NotFound:
            self._lease = None
        self._is_in_doubt = False

    def _observe(self, lease: Object) -> None:
        if self._lease is None or revision_of(lease) != revision_of(self._lease):
            self._unchanged_since = self.clock.monotonic()
        self._lease = lease

    def _seen(self) -> LeaseView:
        if self._lease is None:
            return LeaseView(me=self.me, holder=None)
        spec = self._lease.get("spec") or {}
        return LeaseView(
            me=self.me,
            holder=str(spec.get("holderIdentity") or ""),
            promised_seconds=float(spec.get("leaseDurationSeconds") or LEASE_SECONDS),
            unchanged_since=self._unchanged_since,
        )

    async def _write(self, step: LeaseAction) -> Object:
        now = to_wire_micro(self.clock.now())
        mine = {"holderIdentity": self.me, "leaseDurationSeconds": int(LEASE_SECONDS), "renewTime": now}
        if self._lease is None:
            metadata = {"namespace": self.key[0], "name": self.key[1]}
            spec = {**mine, "acquireTime": now, "leaseTransitions": 0}
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
            return await self.cluster.create(LEASES, lease)
        previous = self._lease.get("spec") or {}
        if step is LeaseAction.TAKE:
            mine |= {"acquireTime": now, "leaseTransitions": int(previous.get("leaseTransitions") or 0) + 1}
        # Guarded by the revision it was seen at: of two that take it, one is told Conflict.
        return await self.cluster.replace(LEASES, {**self._lease, "spec": {**previous, **mine}})

    async def _let_go(self) -> None:
        """Leave the lease to whoever waits for it; without that they would wait until it counts as abandoned."""
        if self._lease is None or not self.may_act():
            return
        self._set_until(0.0)
        spec = {name: value for name, value in self._lease["spec"].items() if name != "holderIdentity"}
        try:
            async with asyncio.timeout(LET_GO_SECONDS):
                await self.cluster.replace(LEASES, {**self._lease, "spec": spec})
        except (PacelineError, TimeoutError):
            return

    def _is_mine(self) -> bool:
        return self._lease is not None and self._lease["spec"].get("holderIdentity") == self.me

    def _set_until(self, until: float) -> None:
        self._until = until
        self._has_changed.set()

    def _tell(self) -> None:
        leader = self._seen().holder or ""
        if leader != self._last_leader:
            self._last_leader = leader
            self.on_leader(leader)

    async def _become(self, *, is_leading: bool) -> None:
        """Wait until this one leads, or leads no more, be it only because time has passed."""
        while self.may_act() is not is_leading:
            self._has_changed.clear()
            remaining = self._until - self.clock.monotonic()
            try:
                # Not `wait_for`: in Python 3.11 it swallows a cancellation that comes together with the change.
                async with asyncio.timeout(remaining if remaining > 0 else None):
                    await self._has_changed.wait()
            except TimeoutError:
                continue


async def _run(act: Callable[[], Awaitable[None]]) -> None:
    await act()


class LeaderGuard:
    """A transport that asks before every write; the last thing a request passes before it goes out."""

    def __init__(self, transport: Transport, may_write: Callable[[], bool]) -> None:
        self._transport = transport
        self._may_write = may_write

    async def send(self, request: Request) -> Response:
        """Carry a request, unless it writes and may not."""
        if not request.is_safe and not self._may_write():
            raise ServiceUnavailable("another controller leads now; this one writes nothing more")
        return await self._transport.send(request)

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Carry a stream; those only read."""
        async with aclosing(self._transport.stream(request)) as chunks:
            async for chunk in chunks:
                yield chunk
