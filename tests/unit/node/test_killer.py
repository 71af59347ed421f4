"""Pods that have to go: asked first, killed when their grace is over, and nothing of them is left."""

import asyncio

from paceline.client.interface import CONFIG_MAPS
from paceline.node.agent import WORKERS
from paceline.testing.sim.processes import Course
from tests.unit.node.conftest import FOLDERS, always


def test_a_pod_that_is_deleted_is_asked_first_and_leaves_nothing(play):
    async def story(place):
        place.sim.processes.script = always(Course(on_term=0))
        async with place.agent():
            await place.create()
            await place.phase("Running")
            began = asyncio.get_running_loop().time()
            await place.delete()
            await place.gone()
            assert asyncio.get_running_loop().time() - began < 1
            await asyncio.sleep(1)
        assert place.sim.processes.running() == {}
        assert place.sim.files.names(FOLDERS.pods) == ()
        assert (await place.events())["Killing"] == 1

    play(story)


def test_a_program_that_does_not_listen_is_killed_after_its_grace_period(play):
    async def story(place):
        place.sim.processes.script = always(Course(on_term=None))
        async with place.agent():
            await place.create()
            await place.phase("Running")
            began = asyncio.get_running_loop().time()
            await place.delete(grace=20)
            await asyncio.sleep(19)
            assert place.sim.processes.running()
            await place.gone()
            assert 20 <= asyncio.get_running_loop().time() - began < 21

    play(story)


class Silent:
    """A cluster that says everything but what is in config maps: whoever asks for one waits."""

    def __init__(self, cluster):
        self._cluster = cluster

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def get(self, collection, *key):
        if collection is CONFIG_MAPS:
            await asyncio.Event().wait()
        return await self._cluster.get(collection, *key)


def test_a_kill_does_not_wait_for_pods_that_the_agent_is_busy_with(play):
    async def story(place):
        place.sim.processes.script = always(Course(on_term=None))
        place.cluster = Silent(place.cluster)
        async with place.agent():
            await place.create()
            await place.phase("Running")
            await place.delete(grace=20)
            await asyncio.sleep(1)
            for number in range(WORKERS):
                await place.create(f"busy-{number}", container={"envFrom": [{"configMapRef": {"name": "absent"}}]})
            await asyncio.sleep(18)
            assert place.sim.processes.running()
            await asyncio.sleep(2)
            assert place.sim.processes.running() == {}

    play(story)


def test_a_grace_period_goes_on_while_the_agent_is_dead(play):
    async def story(place):
        place.sim.processes.script = always(Course(on_term=None))
        async with place.agent():
            await place.create()
            await place.phase("Running")
            await place.delete(grace=20)
            await asyncio.sleep(5)
        await asyncio.sleep(60)
        assert place.sim.processes.running()
        began = asyncio.get_running_loop().time()
        async with place.agent():
            await place.gone()
        assert asyncio.get_running_loop().time() - began < 1
        assert (await place.events())["Killing"] == 1

    play(story)
