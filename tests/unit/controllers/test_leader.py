"""Several controllers and one lease, against our real API server in the same process, in virtual time."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from paceline.client.interface import CONFIG_MAPS, LEASES
from paceline.client.requests import Request
from paceline.client.rest import Verbs
from paceline.controllers.leader_election import Leader, LeaderGuard
from paceline.errors import ServiceUnavailable
from paceline.plan.leader_election import ACT_SECONDS, LEASE_SECONDS
from paceline.testing.sim.cluster import TOKEN, SimCluster
from paceline.testing.sim.effects import SimClock
from paceline.testing.sim.killable import Grip, Killed
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.network import Network, Wire

KEY = ("default", "controller")
PATIENCE_SECONDS = 600


class Cuttable:
    """A wire that can be cut: questions wait for ever, as behind a firewall that drops packets."""

    def __init__(self, network: Network) -> None:
        self._wire = Wire(network, token=TOKEN)
        self.is_cut = False
        self.writes = 0
        # Called before and after every write with its number.
        self.around: Any = lambda _moment, _number: None

    async def send(self, request: Request):
        if self.is_cut:
            await asyncio.Event().wait()
        if request.is_safe:
            return await self._wire.send(request)
        self.writes += 1
        number = self.writes
        self.around("before", number)
        answer = await self._wire.send(request)
        self.around("after", number)
        return answer

    def stream(self, request: Request):
        return self._wire.stream(request)


@dataclass(kw_only=True)
class Candidate:
    """One controller that does nothing but to say when it acts."""

    name: str
    wire: Cuttable
    clock: SimClock
    acting: set[str]
    terms: list[str]
    task: asyncio.Task = field(init=False)
    grip: Grip = field(init=False)

    def __post_init__(self) -> None:
        self.grip = Grip(self.wire)
        cluster: Any = Verbs(self.grip)
        self.leader = Leader(cluster=cluster, clock=self.clock, key=KEY, me=self.name)
        self.task = asyncio.get_running_loop().create_task(self.leader.lead(self.act))

    async def act(self) -> None:
        assert self.acting == set(), f"{self.name} acts beside {self.acting}"
        self.acting.add(self.name)
        self.terms.append(self.name)
        try:
            await asyncio.Event().wait()
        finally:
            self.acting.discard(self.name)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])

    async def kill(self) -> None:
        """End it as kill -9 does: it cannot even let go of the lease."""
        self.grip.let_go()
        self.acting.discard(self.name)
        await self.stop()


@dataclass(kw_only=True)
class World:
    cluster: SimCluster
    acting: set[str] = field(default_factory=set)
    terms: list[str] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)

    def start(self, name: str, start: float = 0.0) -> Candidate:
        clock = SimClock(follows_loop=True)
        clock.advance(start)
        wire = Cuttable(self.cluster.network)
        found = Candidate(name=name, wire=wire, clock=clock, acting=self.acting, terms=self.terms)
        self.candidates.append(found)
        return found

    async def leads(self, name: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.acting != {name}:  # noqa: ASYNC110 - the loop's time is virtual
                await asyncio.sleep(0.1)

    async def leader_and_next(self) -> Candidate:
        """Let `a` lead while `b` waits; give `a`."""
        first = self.start("a")
        await self.leads("a")
        self.start("b")
        await asyncio.sleep(5)
        return first

    async def lease(self) -> dict:
        return (await self.cluster.client().get(LEASES, *KEY))["spec"]


@asynccontextmanager
async def world():
    cluster = SimCluster(seed=1)
    await asyncio.wait_for(cluster.start_control().ready.wait(), PATIENCE_SECONDS)
    made = World(cluster=cluster)
    yield made
    for each in made.candidates:
        await each.stop()
    error = cluster.broken()
    await cluster.kill_control()
    assert error is None


def live(act, seed: int = 1) -> None:
    async def main() -> None:
        async with world() as made:
            await act(made)

    run_simulated(seed, main())


def test_one_of_three_leads_and_the_others_wait():
    async def act(made: World) -> None:
        for name in "abc":
            made.start(name)
        await asyncio.sleep(300)
        assert len(made.terms) == 1
        assert made.acting == set(made.terms)
        assert (await made.lease())["leaseTransitions"] == 0

    live(act)


def test_who_stops_lets_go_of_the_lease_and_the_next_begins_at_once():
    async def act(made: World) -> None:
        first = await made.leader_and_next()
        began = asyncio.get_running_loop().time()
        await first.stop()
        assert "holderIdentity" not in await made.lease()
        await made.leads("b")
        assert asyncio.get_running_loop().time() - began < 5
        assert (await made.lease())["leaseTransitions"] == 1

    live(act)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("turns", range(8))
def test_who_is_stopped_while_a_renewal_is_noticed_ends(seed, turns):
    async def act(world: World) -> None:
        first, renewed = world.start("a"), asyncio.Event()
        await world.leads("a")
        first.wire.around = lambda moment, _number: renewed.set() if moment == "after" else None
        await renewed.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        first.task.cancel()
        ended, _ = await asyncio.wait([first.task], timeout=10 * LEASE_SECONDS)
        # Again, so that a test that fails comes to an end.
        await first.stop()
        assert ended

    live(act, seed)


def test_who_is_killed_is_followed_when_its_lease_counts_as_abandoned():
    async def act(made: World) -> None:
        first = await made.leader_and_next()
        began = asyncio.get_running_loop().time()
        await first.kill()
        await made.leads("b")
        passed = asyncio.get_running_loop().time() - began
        assert LEASE_SECONDS - 2 < passed < LEASE_SECONDS + 5

    live(act)


def test_who_is_cut_off_stops_before_another_begins():
    async def act(made: World) -> None:
        first = await made.leader_and_next()
        first.wire.is_cut = True
        await asyncio.sleep(ACT_SECONDS + 0.5)
        assert made.acting == set()
        assert not first.leader.may_act()
        # `Candidate.act` itself says when two act at a time.
        await made.leads("b")
        first.wire.is_cut = False
        await asyncio.sleep(60)
        assert made.acting == {"b"}

    live(act)


def test_a_server_that_is_away_for_a_moment_ends_no_term():
    async def act(made: World) -> None:
        made.start("a")
        made.start("b")
        await asyncio.sleep(10)
        await made.cluster.kill_control()
        await asyncio.sleep(4)
        await asyncio.wait_for(made.cluster.start_control().ready.wait(), PATIENCE_SECONDS)
        await asyncio.sleep(60)
        assert len(made.terms) == 1

    live(act)


@pytest.mark.parametrize("jump", [-86_400, 86_400, 3])
def test_wall_clocks_that_jump_or_differ_change_nothing(jump: int):
    async def act(made: World) -> None:
        first = made.start("a")
        await made.leads("a")
        second = made.start("b", start=12_345.0)
        for _ in range(20):
            first.clock.jump(jump)
            second.clock.jump(-jump)
            await asyncio.sleep(7)
        assert made.terms == ["a"]

    live(act)


def test_a_lease_that_somebody_takes_away_ends_the_term():
    async def act(made: World) -> None:
        made.start("a")
        await made.leads("a")
        await made.cluster.client().patch(LEASES, KEY, {"spec": {"holderIdentity": "somebody"}})
        await asyncio.sleep(4)
        assert made.acting == set()
        await made.leads("a")
        assert (await made.lease())["leaseTransitions"] == 1

    live(act)


def test_a_lease_that_somebody_deletes_is_made_again():
    async def act(made: World) -> None:
        made.start("a")
        await made.leads("a")
        await made.cluster.client().delete(LEASES, KEY)
        await asyncio.sleep(10)
        assert (await made.lease())["holderIdentity"] == "a"
        assert made.acting == {"a"}

    live(act)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_who_is_killed_at_a_write_of_the_lease_is_followed(moment: str, number: int):
    async def act(made: World) -> None:
        first = made.start("a")

        def around(when: str, count: int) -> None:
            if (when, count) == (moment, number):
                first.grip.let_go()
                made.acting.discard("a")
                raise Killed(when)

        first.wire.around = around
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not first.task.done():  # noqa: ASYNC110 - the loop's time is virtual
                await asyncio.sleep(0.1)
        assert isinstance(first.task.exception(), BaseException)
        made.start("b")
        await made.leads("b")
        assert (await made.lease())["holderIdentity"] == "b"

    live(act)


def test_nothing_is_written_behind_the_fence_once_the_lease_is_lost():
    note = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "note", "namespace": "default"}}

    async def act(made: World) -> None:
        first = made.start("a")
        await made.leads("a")
        fenced = Verbs(LeaderGuard(Wire(made.cluster.network, token=TOKEN), first.leader.may_act))
        there = await fenced.create(CONFIG_MAPS, note)
        first.wire.is_cut = True
        await asyncio.sleep(ACT_SECONDS + 0.5)
        for write in (
            fenced.replace(CONFIG_MAPS, {**there, "data": {"a": "b"}}),
            fenced.patch(CONFIG_MAPS, ("default", "note"), {"data": {"a": "b"}}),
            fenced.delete(CONFIG_MAPS, ("default", "note")),
        ):
            with pytest.raises(ServiceUnavailable, match="another controller leads"):
                await write
        assert await fenced.get(CONFIG_MAPS, "default", "note") == there

    live(act)
