"""The agent's own API, asked as the API server asks it."""

import asyncio
import json
from pathlib import Path

import pytest

from paceline.model.retention import RetentionPolicy
from paceline.node.host_info import Folders
from paceline.node.logs.archive import ArchivedLogs, LogArchive
from paceline.node.network.pod_ports import PodPortProxy
from paceline.node.runtime import shim
from paceline.node.server.api import Kubelet
from paceline.node.server.stats import Stats
from paceline.node.server.streaming import StreamingServer
from paceline.node.usage.series import SeriesServer
from paceline.testing.sim.effects import SimBlocking, sim_world
from tests.unit.node.pods import HOST, UID, container, pod

FOLDERS = Folders(root=Path("/agent"))
LINE = b"2030-01-01T00:00:00.000000000Z stdout F "


def kubelet(**logs):
    """An API over one pod whose containers have these tries: name → texts, the last one the latest."""
    sim = sim_world()
    for name, texts in logs.items():
        for number, text in enumerate(texts):
            folder = FOLDERS.attempt(UID, name, number)
            sim.files.make_folder(folder)
            sim.files.write(folder / shim.STARTED, b"{}")
            sim.files.write(folder / shim.LOG, b"".join(LINE + line.encode() + b"\n" for line in text.split()))
            if number < len(texts) - 1:
                sim.files.write(folder / shim.EXIT, b"{}")
    subject = pod(container(), container("side"))
    return kubelet_over(sim, {("team", "demo"): subject})


def kubelet_over(sim, pods, **machine):
    """An API over these pods, with the hands and eyes that a test gives it."""
    world = sim.world()
    shared = {"world": world, "folders": FOLDERS, "pods": pods}
    archive = LogArchive(world=world, folders=FOLDERS, policy=RetentionPolicy())
    return Kubelet(
        host=HOST,
        **shared,
        streaming=StreamingServer(**shared, host=HOST, launch=machine.get("launch"), run=machine.get("run")),
        proxy=PodPortProxy(**shared, address=lambda _pod: "127.0.0.1", listens=machine.get("listens")),
        stats=Stats(
            **shared,
            host=HOST,
            measure=machine.get("measure"),
            blocking=SimBlocking(),
            record=machine.get("record"),
        ),
        archived=ArchivedLogs(archive=archive),
        series=SeriesServer(clock=world.clock, host=HOST, archive=archive, pods=pods, blocking=SimBlocking()),
    )


def scope_of(path, query="", *, method="GET", headers=()):
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": list(headers),
    }


async def ask(app, path, query="", *, method="GET", hang_up_after=None):
    """Send one request; give the status and the body."""
    return await answer_to(app, scope_of(path, query, method=method), hang_up_after=hang_up_after)


async def answer_to(app, scope, *, hang_up_after=None):
    """Give the status and the body of the answer; hang up after so many pieces of it."""
    sent, gone = [], asyncio.Event()

    async def receive():
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)
        bodies = [each for each in sent if each.get("body")]
        if hang_up_after is not None and len(bodies) >= hang_up_after:
            gone.set()

    async with asyncio.timeout(10):
        await app(scope, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent)


async def test_a_containers_log_is_given():
    app = kubelet(main=["a b"])

    assert await ask(app, "/containerLogs/team/demo/main") == (200, b"a\nb\n")
    assert await ask(app, "/containerLogs/team/demo/main", "tailLines=1") == (200, b"b\n")


async def test_the_log_of_the_try_before_is_given_when_asked_for():
    app = kubelet(main=["old", "new"])

    assert await ask(app, "/containerLogs/team/demo/main", "previous=true") == (200, b"old\n")
    assert await ask(app, "/containerLogs/team/demo/main") == (200, b"new\n")


async def refused(app, path, query=""):
    status, body = await ask(app, path, query)
    said = json.loads(body)
    assert (said["kind"], said["code"]) == ("Status", status)
    return status, said["message"]


async def test_what_is_not_there_is_said_in_kubernetes_words():
    app = kubelet(main=["a"])

    assert await refused(app, "/containerLogs/team/nobody/main") == (404, 'pods "nobody" not found')
    assert await refused(app, "/containerLogs/team/demo/no") == (
        400,
        "container no is not valid for pod demo; it has: main, side",
    )
    assert await refused(app, "/containerLogs/team/demo/side") == (
        400,
        'container "side" in pod "demo" is waiting to start: ContainerCreating',
    )
    assert await refused(app, "/containerLogs/team/demo/main", "previous=true") == (
        400,
        'previous terminated container "main" in pod "demo" not found',
    )
    assert (await refused(app, "/containerLogs/team/demo/main", "tailLines=x"))[0] == 400
    assert (await refused(app, "/elsewhere/team/demo/main"))[0] == 404


ODD_LOGS = {
    "sinceSeconds=9999999999999": 400,
    "sinceSeconds=0": 400,
    f"sinceSeconds={'9' * 5000}": 400,
    "sinceSeconds=%D9%A3": 400,
    "sinceTime=0001-01-01T00:00:00%2B23:59": 400,
    "sinceTime=9999-12-31T23:59:59-23:59": 400,
    "sinceTime=": 400,
    f"tailLines={'9' * 19}": 400,
    f"limitBytes={'9' * 5000}": 400,
    "tailLines=-1": 400,
    "follow=maybe": 400,
    # Odd, and clear: from the beginning.
    "sinceTime=0001-01-01T00:00:00Z": 200,
    "sinceTime=0999-01-01T00:00:00Z": 200,
    f"sinceSeconds={40 * 365 * 86400}": 200,
    f"tailLines={'9' * 18}": 200,
    f"limitBytes={'9' * 18}": 200,
}


@pytest.mark.parametrize(("query", "code"), ODD_LOGS.items())
async def test_odd_wishes_for_a_log_are_refused_or_granted_and_nothing_else(query, code):
    status, body = await ask(kubelet(main=["a b"]), "/containerLogs/team/demo/main", query)

    assert status == code
    assert body == b"a\nb\n" if code == 200 else json.loads(body)["code"] == 400


async def test_a_bug_is_an_answer_of_its_own_and_not_an_agent_that_is_not_there(caplog):
    app = kubelet_over(sim_world(), {("team", "demo"): {"spec": {"containers": [{}]}}})

    status, body = await ask(app, "/containerLogs/team/demo/main")

    assert (status, json.loads(body)["reason"]) == (500, "InternalError")
    assert "its log says why" in json.loads(body)["message"]
    assert "request failed" in caplog.text


async def test_a_quoted_slash_does_not_lead_anywhere():
    assert (await refused(kubelet(main=["a"]), "/containerLogs/team/demo/main%2F..%2F..%2Fx"))[0] == 400


async def test_only_reading_is_offered():
    assert (await ask(kubelet(), "/pods", method="DELETE"))[0] == 405


async def test_a_follower_that_hangs_up_is_let_go():
    """The container never ends; the request does."""
    app = kubelet(main=["a"])

    assert await ask(app, "/containerLogs/team/demo/main", "follow=true", hang_up_after=1) == (200, b"a\n")


async def test_it_says_that_it_lives_and_which_pods_are_here():
    app = kubelet()

    assert await ask(app, "/healthz") == (200, b"ok")
    _, body = await ask(app, "/pods")
    assert [each["metadata"]["name"] for each in json.loads(body)["items"]] == ["demo"]
