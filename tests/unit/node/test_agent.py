"""The node agent from the pod's first sight to its end, and over its own deaths."""

import json

import pytest

from paceline.client.cluster import CLAIMS, LEASES, NODES, VOLUMES
from paceline.node import shim
from paceline.node.seen import Start
from paceline.testing.processes import Course
from tests.unit.node.conftest import FOLDERS


def terminated(pod):
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_a_pod_runs_and_its_end_is_reported(play, code, phase):
    async def story(place):
        async with place.agent():
            await place.create()
            pod = await place.phase("Running")
            assert pod["status"]["podIP"].startswith("127.")
            place.sim.processes.finish(place.folder(), code)
            pod = await place.phase(phase)
            assert terminated(pod)["exitCode"] == code
        assert await place.events() == {"Pulled": 1, "Created": 1, "Started": 1}

    play(story)
