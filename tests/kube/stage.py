"""Where a test acts: one server, one namespace of it, somebody who plays its nodes, and the product's controllers."""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from paceline.apimachinery.meta import Object, name_of
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.client.http.cluster import HttpTransport
from paceline.client.http.transport import Transport, Unreachable
from paceline.client.in_process import IN_PROCESS, LocalTransport
from paceline.client.interface import CLAIMS, EVENTS, NAMESPACES, PODS, Collection, Select
from paceline.client.requests import Request, Response
from paceline.client.responses import error_of
from paceline.client.rest import Verbs
from paceline.client.rest_config import Access
from paceline.cluster.external_controllers import ANY_CLUSTER
from paceline.cluster.wiring import own_controllers, start
from paceline.effects import Effects
from paceline.errors import Expired, NotFound, PacelineError
from paceline.kinds import registry
from paceline.kinds.kind_types import VERSION
from paceline.store.backend import StoreLimits
from paceline.testing.sim.effects import SimChance, SimClock, sim_world
from paceline.testing.sim.time_warp_loop import JumpLoop, running_loop
from tests.contract.subjects import our_app
from tests.e2e.support.manifests import claim
from tests.kube.player import Player, Script

# Far beyond what a healthy server needs, also on a busy machine.
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.02
NUMBERS = itertools.count()

OpenTransport = Callable[[], AbstractAsyncContextManager[Transport]]


class Tap:
    """A controller's way to its server: counts writes and what is refused, can be cut, can kill."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.writes: list[str] = []
        # What was asked for, as rights are spelled: (verb, `resource.group`).
        self.asked: set[tuple[str, str]] = set()
        self.refused: list[PacelineError] = []
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._cut = asyncio.Event()
        # Called with the number of each write before and after it; may raise Killed.
        self.around: Callable[[str, int], None] = lambda _moment, _number: None

    def cut(self) -> None:
        """Let nothing through any more, and end what is under way."""
        self._is_open.clear()
        self._cut.set()

    def mend(self) -> None:
        self._cut.clear()
        self._is_open.set()

    async def send(self, request: Request) -> Response:
        self._reach()
        self.asked.add(right_of(request))
        if request.is_safe:
            return self._heard(await self._transport.send(request))
        self.writes.append(f"{request.method} {request.path}")
        number = len(self.writes)
        self.around("before", number)
        answer = await self._transport.send(request)
        self.around("after", number)
        return self._heard(answer)

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        self._reach()
        self.asked.add(right_of(request))
        stream = self._transport.stream(request)
        cut = asyncio.get_running_loop().create_task(self._cut.wait())
        step: asyncio.Task[bytes] | None = None
        try:
            while True:
                step = asyncio.get_running_loop().create_task(anext(stream))
                await asyncio.wait([step, cut], return_when=asyncio.FIRST_COMPLETED)
                if cut.done():
                    raise Unreachable("the test has cut the line")
                try:
                    chunk = step.result()
                except StopAsyncIteration:
                    return
                except PacelineError as error:
                    self.refused.append(error)
                    raise
                if b'"type":"ERROR"' in chunk and b'"code":410' in chunk:
                    self.refused.append(Expired("in a watch"))
                yield chunk
        finally:
            cut.cancel()
            if step is not None:
                step.cancel()
                await asyncio.wait([step])
            await stream.aclose()

    def _reach(self) -> None:
        if not self._is_open.is_set():
            raise Unreachable("the test has cut the line")

    def _heard(self, answer: Response) -> Response:
        if answer.status >= 400:
            self.refused.append(error_of(answer))
        return answer

    def count(self, kind: type[PacelineError]) -> int:
        return sum(isinstance(each, kind) for each in self.refused)


@dataclass(kw_only=True)
class Stage:
    """One namespace of one server."""

    transport: Transport
    people: Verbs
    namespace: str
    world: Effects
    player: Player

    @asynccontextmanager
    async def controllers(self, transport: Transport | None = None) -> AsyncIterator[None]:
        """Run the product's controllers of this namespace for the length of a block."""
        async with beside(self.control(transport)) as synced:
            await asyncio.wait_for(synced.wait(), PATIENCE_SECONDS)
            yield

    def control(self, transport: Transport | None = None) -> Callable[[asyncio.Event], Coroutine[Any, Any, None]]:
        async def work(synced: asyncio.Event) -> None:
            cluster = Verbs(transport or self.transport, on_warning=_ignore)
            async with asyncio.TaskGroup() as group:
                await start(group, own_controllers(cluster, self.world, machine=ANY_CLUSTER, namespace=self.namespace))
                synced.set()

        return work

    async def submit(self, obj: dict[str, Any], name: str = "demo") -> Object:
        there = {**obj, "metadata": {"name": name, "namespace": self.namespace}}
        return await self.people.create(where_of(obj), there)

    async def claim(self, name: str) -> None:
        """Make a claim, which nobody need give a volume for."""
        made = claim(name)
        await self.people.create(CLAIMS, {**made, "metadata": {"name": name, "namespace": self.namespace}})

    async def read(self, obj: Object) -> Object:
        return await self.people.get(where_of(obj), self.namespace, name_of(obj))

    async def change(self, obj: Object, spec: dict[str, Any]) -> Object:
        return await self.people.patch(where_of(obj), (self.namespace, name_of(obj)), {"spec": spec})

    async def delete(self, obj: Object) -> None:
        options = {"propagationPolicy": "Background"}
        await self.people.delete(where_of(obj), (self.namespace, name_of(obj)), options)

    async def all(self, where: Collection) -> tuple[Object, ...]:
        return (await self.people.list(where, Select(namespace=self.namespace))).items

    async def pods(self) -> list[Object]:
        return sorted(await self.all(PODS), key=name_of)

    async def becomes(self, obj: Object, phase: str, *, hurry: float = 0.0) -> Object:
        """Wait until an object is in a phase, and give it; `hurry` as in `until`."""
        found: Object = {}

        async def look() -> bool:
            nonlocal found
            found = await self.read(obj)
            return (found.get("status") or {}).get("phase") == phase

        await self.until(look, lambda: f"{name_of(obj)} is {phase}: {found.get('status')}", hurry=hurry)
        return found

    async def until(
        self, holds: Callable[[], Awaitable[bool]], what: Callable[[], str] = str, *, hurry: float = 0.0
    ) -> None:
        """Wait until something holds; with `hurry` so many seconds are skipped after every look."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not await holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {PATIENCE_SECONDS:.0f} s until {what()}")
            skip(hurry)
            await asyncio.sleep(LOOK_SECONDS)

    async def gone(self, obj: Object, *, hurry: float = 0.0) -> None:
        async def look() -> bool:
            try:
                await self.read(obj)
            except NotFound:
                return True
            return False

        await self.until(look, lambda: f"{name_of(obj)} is gone", hurry=hurry)

    async def runs(self, count: int, *, hurry: float = 0.0) -> None:
        """Wait until so many pods run, and no others are there that may."""

        async def look() -> bool:
            return len(self.player.running()) == count == len(self.player.live())

        await self.until(
            look, lambda: f"{count} pods run: {[name_of(each) for each in self.player.live()]}", hurry=hurry
        )

    def play(self, script: Script) -> None:
        """Have the programs go on by another script."""
        self.player.script = script
        self.player.poke()

    async def reasons(self, obj: Object) -> list[str]:
        """Give the reasons of all events about an object; one that was told twice is there twice."""
        events = [each for each in await self.all(EVENTS) if each["involvedObject"]["name"] == name_of(obj)]
        return sorted(each["reason"] for each in events for _ in range(each["count"]))


@asynccontextmanager
async def beside(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> AsyncIterator[asyncio.Event]:
    """Do something beside a block; an error of either ends both."""
    told = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work(told))
            yield told
            task.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


@asynccontextmanager
async def staged(transport: Transport) -> AsyncIterator[Stage]:
    """Set a new namespace of a server up as a stage."""
    loop, name = running_loop(), f"flow-{next(NUMBERS)}"
    people = Verbs(transport, on_warning=_ignore)
    await people.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    # The same time as the server's own, but for what is skipped.
    clock = SimClock(datetime.now(UTC), follows_loop=True)
    clock.advance(-loop.time())
    world = replace(sim_world().world(), clock=clock, chance=SimChance(next(NUMBERS)))
    player = Player(cluster=people, namespace=name, clock=clock, chance=world.chance)

    async def play(_told: asyncio.Event) -> None:
        await player.run()

    async with beside(play):
        yield Stage(transport=transport, people=people, namespace=name, world=world, player=player)


@asynccontextmanager
async def embedded_transport() -> AsyncIterator[Transport]:
    gate = Authenticator(tokens={hash_token("secret"): "admin"}, hosts=frozenset({IN_PROCESS}))
    async with our_app(gate, limits=StoreLimits()) as app, asyncio.TaskGroup() as group:
        transport = LocalTransport(app, group, token="secret")
        try:
            yield transport
        finally:
            transport.close()


def real_transport(access: Access) -> OpenTransport:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Transport]:
        transport = HttpTransport(access, SimChance())
        try:
            yield transport
        finally:
            await transport.close()

    return opened


def live(opens: OpenTransport, act: Callable[[Stage], Awaitable[None]]) -> None:
    """Let a test act on a stage whose controllers run."""

    async def main() -> None:
        async with opens() as transport, staged(transport) as stage, stage.controllers():
            await act(stage)

    run(main())


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on a loop that can jump ahead."""
    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        return runner.run(main)


def skip(seconds: float) -> None:
    running_loop().skip(seconds)


def right_of(request: Request) -> tuple[str, str]:
    """Spell the right that a request needs, as a real server's rules do: (verb, `resource/subresource.group`)."""
    parts = request.path.strip("/").split("/")
    group, parts = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if parts and parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    plural, name, below = (*parts, "", "", "")[:3]
    reads = "watch" if ("watch", "true") in request.query else "get" if name else "list"
    verbs = {"GET": reads, "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    return verbs[request.method], spelled(f"{plural}/{below}" if below else plural, group)


def spelled(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def where_of(obj: Object) -> Collection:
    kind = registry.kind_of(obj) or registry.service_of(obj)
    assert kind is not None
    return Collection(group=str(obj["apiVersion"]).partition("/")[0], version=VERSION, plural=kind.plural)


def _ignore(_text: str) -> None:
    """Nobody reads warnings here."""
