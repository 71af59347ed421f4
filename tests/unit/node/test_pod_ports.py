"""A port of a pod: opened only where one of the pod's own processes listens."""

import json
import socket

import pytest

from paceline.node.runtime import shim
from paceline.testing.sim.effects import sim_world
from tests.unit.node.pods import UID, container, pod
from tests.unit.node.test_kubelet_api import FOLDERS, ask, kubelet_over


class Place:
    """An agent with one running container that listens where a test says."""

    def __init__(self, *, listens=True):
        self.sim = sim_world()
        self.asked = []
        self._listens = listens
        self.folder = FOLDERS.attempt(UID, "main", 0)
        self.app = kubelet_over(self.sim, {("team", "demo"): pod(container())}, listens=self.listens)

    async def listens(self, shims, address, port):
        self.asked.append((len(shims), address, port))
        return self._listens

    async def begin(self):
        self.sim.files.make_folder(self.folder)
        self.sim.files.write(self.folder / shim.INTENT, b"{}")
        await self.sim.processes.start(self.folder)


@pytest.fixture
def free_port():
    """A port where nobody listens, and nobody will meanwhile."""
    with socket.socket() as keeper:
        keeper.bind(("127.0.0.1", 0))
        yield keeper.getsockname()[1]


async def refused(place, path, method="GET"):
    code, body = await ask(place.app, path, method=method)
    return code, json.loads(body)["message"]


async def test_a_port_where_no_process_of_the_pod_listens_is_closed():
    """Whatever else of the machine may listen there."""
    place = Place(listens=False)
    await place.begin()

    code, message = await refused(place, "/proxy/http/team/demo/22/")

    assert (code, place.asked) == (503, [(1, "127.0.0.1", 22)])
    assert message == "error trying to reach service: dial tcp 127.0.0.1:22: connect: connection refused"


async def test_a_pod_that_runs_nothing_has_no_doors():
    place = Place()

    await refused(place, "/proxy/http/team/demo/1/")

    assert place.asked[0][0] == 0


async def test_one_who_stopped_listening_meanwhile_is_said_to_refuse(free_port):
    place = Place()
    await place.begin()

    code, message = await refused(place, f"/proxy/http/team/demo/{free_port}/x?y")

    assert code == 503
    assert message.startswith(f"error trying to reach service: dial tcp 127.0.0.1:{free_port}: connect: ")


WRONG = {
    "no such pod": ("/proxy/http/team/no/80/", 404),
    "no number": ("/proxy/http/team/demo/web/", 400),
    "no port": ("/proxy/http/team/demo/0/", 400),
    "beyond all ports": ("/proxy/http/team/demo/65536/", 400),
    "another scheme": ("/proxy/gopher/team/demo/80/", 400),
}


@pytest.mark.parametrize(("path", "code"), WRONG.values(), ids=WRONG)
async def test_what_is_no_door_is_refused(path, code):
    place = Place()

    assert (await refused(place, path, "POST"))[0] == code
    assert place.asked == []


async def test_a_caller_from_outside_goes_the_same_way():
    open_place, shut = Place(), Place(listens=False)
    for place in (open_place, shut):
        await place.begin()

    found = [await each.app.proxy.address_of(pod(container()), 6006) for each in (open_place, shut)]

    assert [str(each) for each in found] == ["127.0.0.1:6006", "None"]
    assert shut.asked == [(1, "127.0.0.1", 6006)]
