"""What failed pods wrote last is read beside the loop, against our real API server in the same process."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from paceline.api.app import make_app
from paceline.api.gate import Gate, hashed
from paceline.api.server import Server
from paceline.assembly.kinds import fixed_kinds
from paceline.client.cluster import NAMESPACES, PODS
from paceline.client.local import IN_PROCESS, LocalCluster
from paceline.control.last_lines import LINE_CHARACTERS, LastLines, last_lines
from paceline.errors import Busy
from paceline.plan.plan import LogWish
from paceline.store.memory import MemoryLog
from paceline.store.store import Store
from paceline.testing.simloop import SimLoop
from paceline.testing.world import SimBlocking, sim_world

WISH = LogWish(pod="demo-0", container="main")
JOB = ("genericjobs", "default", "demo")


class Node:
    """A node that answers as its test says: bytes, an error, or nothing for ever."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def logs(self, _namespace, _pod, query):
        self.asked.append(dict(query))
        answer = self.answers.pop(0) if self.answers else b""
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        yield answer


@asynccontextmanager
async def reader(node):
    sim = sim_world(follows_loop=True)
    store = Store(MemoryLog(), SimBlocking())
    await store.open()
    gate = Gate(tokens={hashed("secret"): "admin"}, hosts=frozenset({IN_PROCESS}))
    server = Server(store=store, kinds=fixed_kinds(store), clock=sim.clock, ids=sim.ids, gate=gate, nodes=node)
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(store.run())
        async with LocalCluster(make_app(server), token="secret") as cluster:
            await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "demo-0", "namespace": "default"}}
            spec = {"containers": [{"name": "main", "image": "python"}, {"name": "other", "image": "python"}]}
            made = await cluster.create(PODS, {**pod, "spec": {**spec, "nodeName": "here"}})
            status = {"phase": "Failed"}
            await cluster.replace(PODS, {**made, "status": status}, subresource="status")
            told = asyncio.Queue()
            found = LastLines(cluster=cluster, chance=sim.chance, on_found=told.put_nowait)
            working = group.create_task(found.run())
            yield found, told
            working.cancel()
        writing.cancel()
        await store.close()


def play(node, story):
    async def main():
        async with asyncio.timeout(1000), reader(node) as (found, told):
            return await story(found, told)

    with asyncio.Runner(loop_factory=lambda: SimLoop(0)) as runner:
        return runner.run(main())


async def asked_once(found, told):
    found.ask(JOB, WISH)
    assert await told.get() == JOB
    return found.of(JOB)


def test_the_last_lines_of_the_container_that_failed_are_found():
    node = Node(b"one\ntwo\n")

    assert play(node, asked_once) == {"demo-0": ("one", "two")}
    assert node.asked[0]["container"] == "main"
    assert node.asked[0]["tailLines"] == "20"


# How a node answers → what is found.
ANSWERS = {
    "an empty log is no failure": ((b"",), ()),
    "a node that never answers is not waited for": ((None,), ()),
    "a node that is away for good leaves nothing": ((Busy("away"),) * 99, ()),
    "a node that comes back is asked again": ((Busy("away"), b"back\n"), ("back",)),
}


@pytest.mark.parametrize(("answers", "lines"), ANSWERS.values(), ids=ANSWERS)
def test_of_answers(answers, lines):
    assert play(Node(*answers), asked_once) == {"demo-0": lines}


def test_a_pod_that_is_gone_leaves_nothing():
    async def story(found, told):
        found.ask(JOB, LogWish(pod="nobody", container="main"))
        await told.get()
        return found.of(JOB)

    assert play(Node(), story) == {"nobody": ()}


def test_slow_nodes_hold_up_only_those_who_read_them():
    """Two readers: a third job gets its answer once the patience with the first two is over."""

    async def story(found, told):
        for number in range(3):
            found.ask(("genericjobs", "default", str(number)), WISH)
        return [await told.get() for _ in range(3)], found.of(("genericjobs", "default", "2"))

    order, lines = play(Node(None, None, b"quick\n"), story)

    assert len(set(order)) == 3
    assert lines == {"demo-0": ("quick",)}


def test_asking_twice_is_asking_once():
    node = Node(None, b"second\n")

    async def story(found, told):
        for _ in range(3):
            found.ask(JOB, WISH)
            await asyncio.sleep(1)
        await told.get()
        await asyncio.sleep(60)
        return told.empty()

    assert play(node, story)
    assert len(node.asked) == 1


def test_what_is_written_down_is_forgotten():
    async def story(found, told):
        await asked_once(found, told)
        found.forget(JOB)
        return found.of(JOB)

    assert play(Node(b"one\n"), story) == {}


SHOWN = {
    "nothing is no line": (b"", ()),
    "a last line may lack its end": (b"one\ntwo", ("one", "two")),
    "only the last twenty are kept": (b"".join(b"%d\n" % n for n in range(50)), tuple(map(str, range(30, 50)))),
    "of a progress bar the last state is kept": (b"epoch 1\r 10%\r100%\r\ndone\n", ("100%", "done")),
    "what is no text is shown as such": (b"\xff\n", ("�",)),
    "a long line is cut": (b"x" * 1000 + b"\n", ("x" * (LINE_CHARACTERS - 1) + "…",)),
}


@pytest.mark.parametrize(("tail", "lines"), SHOWN.values(), ids=SHOWN)
def test_of_a_log(tail, lines):
    assert last_lines(tail) == lines
