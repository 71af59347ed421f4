"""What is told of use, from the looks that were taken."""

import pytest

from paceline.node.runtime import shim
from paceline.node.server.stats import IOCounters, Measurement, Usage
from paceline.testing.sim.effects import sim_world
from tests.unit.node.pods import UID, container, pod
from tests.unit.node.test_kubelet_api import FOLDERS, ask, kubelet_over

MIB = 2**20


class Place:
    """An agent with one running container, whose use a test says."""

    def __init__(self):
        self.sim = sim_world()
        self.asked = []
        self.cpu, self.node_cpu, self.age = 0.0, 0.0, 0.0
        self.folder = FOLDERS.attempt(UID, "main", 0)
        self.app = kubelet_over(self.sim, {("team", "demo"): pod(container())}, measure=self.measure)

    def measure(self, shims):
        self.asked.append(shims)
        own = Usage(cpu_seconds=self.cpu, memory_bytes=3 * MIB, age_seconds=self.age)
        node = Usage(cpu_seconds=self.node_cpu, memory_bytes=9 * MIB, age_seconds=1000.0)
        return Measurement(containers=dict.fromkeys(shims, own), node=node)

    async def begin(self):
        self.sim.files.make_folder(self.folder)
        self.sim.files.write(self.folder / shim.INTENT, b"{}")
        await self.sim.processes.start(self.folder)

    async def look(self, cpu, age):
        self.cpu, self.age = cpu, age
        await self.app.stats.sample()

    def use(self):
        (told,) = self.app.stats.summary()["pods"]
        (main,) = told["containers"]
        return main["cpu"]["usageNanoCores"], main["windowSeconds"]


@pytest.fixture
async def place():
    place = Place()
    await place.begin()
    return place


async def test_a_new_container_is_told_of_after_one_look(place):
    """All that it has used, it has used since it began."""
    await place.look(cpu=1.0, age=4.0)

    assert place.use() == (250_000_000, 4.0)


async def test_use_is_what_came_between_two_looks(place):
    await place.look(cpu=100.0, age=1000.0)
    place.sim.clock.advance(5.0)
    await place.look(cpu=110.0, age=1005.0)

    assert place.use() == (2_000_000_000, 5.0)


async def test_looks_that_are_long_past_do_not_count(place):
    await place.look(cpu=0.0, age=1.0)
    for _ in range(5):
        place.sim.clock.advance(5.0)
        await place.look(cpu=place.cpu + 5.0, age=1000.0)

    assert place.use() == (1_000_000_000, 15.0)


async def test_a_clock_of_use_that_runs_backwards_is_no_use(place):
    await place.look(cpu=10.0, age=100.0)
    place.sim.clock.advance(5.0)
    await place.look(cpu=9.0, age=105.0)

    assert place.use() == (0, 5.0)


async def test_a_container_that_has_ended_is_not_told_of(place):
    await place.look(cpu=1.0, age=4.0)
    place.sim.processes.finish(place.folder, 0)
    await place.look(cpu=1.0, age=4.0)

    assert place.app.stats.summary()["pods"] == []
    assert place.asked[-1] == frozenset()


async def test_before_the_first_look_only_the_nodes_name_is_told(place):
    assert place.app.stats.summary() == {"node": {"nodeName": "box"}, "pods": []}


async def test_the_summary_is_asked_for_as_of_a_kubelet(place):
    await place.look(cpu=1.0, age=4.0)

    code, body = await ask(place.app, "/stats/summary")

    assert code == 200
    assert f'"workingSetBytes": {9 * MIB}'.encode() in body
    assert f'"workingSetBytes": {3 * MIB}'.encode() in body


async def test_x17_disk_and_network_are_told_where_they_are_known(place):
    await place.look(cpu=1.0, age=4.0)
    (unknown,) = place.app.stats.summary()["pods"]
    own = Usage(
        cpu_seconds=2.0,
        memory_bytes=MIB,
        age_seconds=8.0,
        disk=IOCounters(received=1, sent=2),
        network=IOCounters(name="eth0", received=3, sent=4),
    )
    place.app.stats.measure = lambda shims: Measurement(containers=dict.fromkeys(shims, own), node=own)
    await place.look(cpu=2.0, age=8.0)
    (known,) = place.app.stats.summary()["pods"]

    assert "network" not in unknown
    assert "disk" not in unknown["containers"][0]
    told = known["containers"][0]
    assert (told["disk"]["readBytes"], told["disk"]["writeBytes"]) == (1, 2)
    assert told["cpu"]["usageCoreNanoSeconds"] == 2_000_000_000
    assert known["network"]["interfaces"] == [{"name": "eth0", "rxBytes": 3, "txBytes": 4}]
