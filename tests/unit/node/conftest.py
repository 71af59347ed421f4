"""A node agent in a simulated world, against our real API server in the same process."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.config import Server
from paceline.client.event_recorder import Recorder
from paceline.client.in_process import IN_PROCESS, LocalCluster
from paceline.client.interface import EVENTS, NAMESPACES, PODS, Cluster, Select
from paceline.errors import NotFound
from paceline.node.agent import Agent
from paceline.node.host_info import Folders, Host
from paceline.node.images import Images
from paceline.store.store import Store
from paceline.testing.fixed_kinds import fixed_kinds
from paceline.testing.memory_backend import MemoryLog
from paceline.testing.sim.effects import SimBlocking, SimWorld, sim_world
from paceline.testing.sim.loop import SimLoop
from paceline.testing.sim.processes import StaticEnvironments
from tests.unit.node.pods import HOST

FOLDERS = Folders(root=Path("/agent"))
SECONDS = 10_000.0


@dataclass
class Place:
    """A cluster with one node, and the hands of a test on both."""

    cluster: Cluster
    sim: SimWorld
    images: tuple = ()
    sandbox: str | None = "/usr/bin/bwrap"
    agents: list = field(default_factory=list)
    host: Host = HOST
    # More arguments for the agent.
    options: dict = field(default_factory=dict)

    def make_agent(self):
        world = self.sim.world()
        return Agent(
            cluster=self.cluster,
            world=world,
            blocking=SimBlocking(),
            recorder=Recorder(self.cluster, world.clock, component="agent"),
            host=self.host,
            folders=FOLDERS,
            images=Images(rows=self.images, environments=StaticEnvironments(), host=self.host, files=world.files),
            find_sandbox=lambda: self.sandbox,
            **self.options,
        )

    @asynccontextmanager
    async def agent(self):
        """Run the node agent; leaving ends it and nothing else."""
        agent, ready = self.make_agent(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(agent.run(ready))
            await ready.wait()
            yield agent
            task.cancel()

    async def short_lived_agent(self, turns):
        """Run an agent for so many turns of the loop, wherever that leaves it."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.make_agent().run(asyncio.Event()))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()

    async def create(self, name="demo", **spec):
        container = {"name": "main", "image": "python", "command": ["train"], **spec.pop("container", {})}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": HOST.name, "restartPolicy": "Never", "containers": [container], **spec},
        }
        return await self.cluster.create(PODS, pod)

    async def pod(self, name="demo"):
        return await self.cluster.get(PODS, "default", name)

    async def until(self, condition, name="demo"):
        """Wait until a pod is as the condition says; give it, or None when it went."""
        while True:
            try:
                pod = await self.pod(name)
            except NotFound:
                pod = None
            if condition(pod):
                return pod
            await asyncio.sleep(0.05)

    async def phase(self, *phases, name="demo"):
        return await self.until(lambda pod: pod and (pod.get("status") or {}).get("phase") in phases, name)

    async def gone(self, name="demo"):
        await self.until(lambda pod: pod is None, name)

    async def waits(self, reason, name="demo"):
        """Wait until the pod's container waits for this; give the message."""
        pod = await self.until(lambda pod: waiting(pod).get("reason") == reason, name)
        return waiting(pod).get("message")

    async def lacks(self, reason, name="demo"):
        """Wait until something keeps all containers of the pod from starting; give the message."""

        def found(pod):
            conditions = (pod.get("status") or {}).get("conditions") or ()
            return [each for each in conditions if each.get("reason") == reason]

        return found(await self.until(found, name))[0]["message"]

    async def delete(self, name="demo", grace=None):
        options = {} if grace is None else {"gracePeriodSeconds": grace}
        await self.cluster.delete(PODS, ("default", name), options)

    async def events(self, name="demo"):
        found = await self.cluster.list(EVENTS, Select(namespace="default"))
        mine = [each for each in found.items if each["involvedObject"]["name"] == name]
        return {each["reason"]: each["count"] for each in mine}

    def folder(self):
        """Give the folder of the only container that runs."""
        (folder,) = self.sim.processes.running()
        return folder


def always(course):
    """The same course for every program."""
    return lambda _intent: course


def waiting(pod):
    statuses = ((pod or {}).get("status") or {}).get("containerStatuses") or [{}]
    return (statuses[0].get("state") or {}).get("waiting") or {}


@asynccontextmanager
async def make_place():
    sim = sim_world(follows_loop=True)
    store = Store(MemoryLog(), SimBlocking())
    await store.open()
    gate = Authenticator(tokens={hash_token("secret"): "admin"}, hosts=frozenset({IN_PROCESS}))
    server = Server(store=store, kinds=fixed_kinds(store), clock=sim.clock, ids=sim.ids, gate=gate, nodes=None)
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(store.run())
        async with LocalCluster(make_app(server), token="secret") as cluster:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
            await cluster.create(NAMESPACES, namespace)
            yield Place(cluster=cluster, sim=sim)
        writing.cancel()
        await store.close()


@pytest.fixture
def play():
    """Runs a test's story in virtual time."""

    def run(story, seed=0):
        async def main():
            async with asyncio.timeout(SECONDS), make_place() as place:
                return await story(place)

        with asyncio.Runner(loop_factory=lambda: SimLoop(seed)) as runner:
            return runner.run(main())

    return run
