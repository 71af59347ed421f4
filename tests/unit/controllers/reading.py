"""A pod whose node answers for its log as a test says, behind our real API server in the same process."""

import asyncio
from contextlib import asynccontextmanager

from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.config import Server
from paceline.client.in_process import IN_PROCESS, LocalCluster
from paceline.client.interface import NAMESPACES, PODS
from paceline.plan.job.plan import LogRef
from paceline.store.store import Store
from paceline.testing.fixed_kinds import fixed_kinds
from paceline.testing.memory_backend import MemoryLog
from paceline.testing.sim.effects import SimBlocking, sim_world
from paceline.testing.sim.loop import SimLoop

WISH = LogRef(pod="demo-0", container="main")
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
async def reader(node, make):
    sim = sim_world(follows_loop=True)
    store = Store(MemoryLog(), SimBlocking())
    await store.open()
    gate = Authenticator(tokens={hash_token("secret"): "admin"}, hosts=frozenset({IN_PROCESS}))
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
            found = make(cluster, sim, told.put_nowait)
            working = group.create_task(found.run())
            yield found, told
            working.cancel()
        writing.cancel()
        await store.close()


def beside(node, make, story):
    """Play a story with somebody who reads the node's logs; `make` is given the cluster, the world and whom to tell."""

    async def main():
        async with asyncio.timeout(1000), reader(node, make) as (found, told):
            return await story(found, told)

    with asyncio.Runner(loop_factory=lambda: SimLoop(0)) as runner:
        return runner.run(main())
