"""Pods that outgrow what they were allowed are ended, and say why."""

import asyncio

import pytest

from paceline.apimachinery.meta import uid_of
from paceline.node.lifecycle.eviction import RECORD, limits_of
from tests.unit.node.conftest import FOLDERS
from tests.unit.node.pods import UID, container, pod

MOUNT = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
SMALL = [{"name": "v", "emptyDir": {"sizeLimit": "1Ki"}}]


def test_what_a_pod_may_not_outgrow():
    limited = container(resources={"limits": {"ephemeral-storage": "1Mi"}})
    volumes = [
        {"name": "a", "emptyDir": {"sizeLimit": "1Ki"}},
        {"name": "b", "emptyDir": {}},
        {"name": "c", "emptyDir": {"medium": "Memory", "sizeLimit": "2M"}},
        {"name": "d", "configMap": {"name": "x"}},
    ]
    found = tuple(limits_of(pod(limited, container("other"), volumes=volumes), FOLDERS))

    assert [(limit.bytes, limit.message.strip()) for limit in found] == [
        (1024, 'Usage of EmptyDir volume "a" exceeds the limit "1Ki".'),
        (2_000_000, 'Usage of EmptyDir volume "c" exceeds the limit "2M".'),
        (2**20, 'Container main exceeded its local ephemeral storage limit "1Mi".'),
        (2**20, "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi."),
    ]
    scratch = [FOLDERS.volume(UID, number) for number in (0, 1)]
    assert found[-1].folders == (*scratch, FOLDERS.container(UID, "main"), FOLDERS.container(UID, "other"))


def test_a_pod_without_limits_is_not_looked_at():
    assert not list(limits_of(pod(container(), volumes=[{"name": "v", "emptyDir": {}}]), FOLDERS))


async def fill(place, made, size):
    await place.phase("Running")
    place.sim.files.overwrite(FOLDERS.volume(uid_of(made), 0) / "big", bytes(size))


def test_a_pod_that_outgrows_its_scratch_is_evicted_and_does_not_come_again(play):
    async def story(place):
        async with place.agent():
            made = await place.create(container=MOUNT, volumes=SMALL, restartPolicy="Always")
            await fill(place, made, 1025)
            evicted = await place.phase("Failed")
            await asyncio.sleep(60)
            return evicted, place.sim.processes.running(), await place.events()

    evicted, running, events = play(story)

    assert evicted["status"]["reason"] == "Evicted"
    assert evicted["status"]["message"] == 'Usage of EmptyDir volume "v" exceeds the limit "1Ki". '
    assert not running
    assert events["Evicted"] == 1


def test_a_pod_within_its_scratch_runs_on(play):
    async def story(place):
        async with place.agent():
            made = await place.create(container=MOUNT, volumes=SMALL)
            await fill(place, made, 1024)
            await asyncio.sleep(120)
            return await place.pod()

    assert play(story)["status"]["phase"] == "Running"


def test_the_next_agent_goes_on_with_an_eviction(play):
    async def story(place):
        async with place.agent():
            made = await place.create(container=MOUNT, volumes=SMALL)
            await place.phase("Running")
        place.sim.files.write(FOLDERS.pod(uid_of(made)) / RECORD, b"too large")
        async with place.agent():
            return await place.phase("Failed")

    assert play(story)["status"]["message"] == "too large"


@pytest.mark.parametrize("own", [0, 30])
def test_an_evicted_pod_is_left_a_second_at_most(play, own):
    async def story(place):
        async with place.agent():
            made = await place.create(container=MOUNT, volumes=SMALL, terminationGracePeriodSeconds=own)
            await fill(place, made, 1025)
            began = asyncio.get_running_loop().time()
            await place.phase("Failed")
            return asyncio.get_running_loop().time() - began

    # It is looked at every ten seconds.
    assert play(story) < 15
