"""An API server in memory and the owner cleanup beside it, in a world where waiting takes no time."""

import asyncio
from dataclasses import dataclass

from paceline.apimachinery.meta import key_of
from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.config import Server
from paceline.apiserver.crd.registry import LiveKinds
from paceline.client.event_recorder import Recorder
from paceline.client.in_process import IN_PROCESS, LocalCluster
from paceline.client.interface import CONFIG_MAPS, CRDS, EVENTS, NAMESPACES, PODS, Cluster, Collection
from paceline.cluster.crd_install import builtin_scheme
from paceline.controllers.gc.garbage_collector import GarbageCollector
from paceline.errors import NotFound
from paceline.store.store import Store
from paceline.testing.memory_backend import MemoryLog
from paceline.testing.sim.cluster import NoLogs
from paceline.testing.sim.effects import SimBlocking, sim_world
from paceline.testing.sim.loop import SimLoop

TOKEN = "simulated"
LAMPS = Collection(group="home.example.com", version="v1", plural="lamps")
ROOMS = Collection(group="home.example.com", version="v1", plural="rooms", namespaced=False)
# Longer than any retry, shorter than anybody's patience: time is not real here.
SETTLING_SECONDS = 300.0


def definition(where: Collection, kind: str, *, versions=("v1",)):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{where.plural}.{where.group}"},
        "spec": {
            "group": where.group,
            "scope": "Namespaced" if where.namespaced else "Cluster",
            "names": {"kind": kind, "plural": where.plural},
            "versions": [
                {"name": name, "served": True, "storage": name == versions[0], "schema": schema} for name in versions
            ],
        },
    }


def refers_to(owner, *, blocks=True, **other):
    parts = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **other}
    meta = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return {**meta, **parts, "blockOwnerDeletion": blocks}


@dataclass
class Place:
    """A cluster, and the words of a test about what is in it."""

    cluster: Cluster
    owners: GarbageCollector

    async def define(self, where: Collection, kind: str, *, versions=("v1",)):
        await self.cluster.create(CRDS, definition(where, kind, versions=versions))

    async def make(self, name, *owners, where=CONFIG_MAPS, kind="ConfigMap", namespace="default", **meta):
        api_version = f"{where.group}/{where.version}".lstrip("/")
        metadata = {"name": name, "ownerReferences": list(owners), **meta}
        if where.namespaced:
            metadata["namespace"] = namespace
        body = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
        if where == PODS:
            body["spec"] = {"containers": [{"name": "main", "image": "python:3"}]}
        return await self.cluster.create(where, body)

    async def delete(self, obj, policy="Background", where=CONFIG_MAPS):
        await self.cluster.delete(where, key_of(obj), {"propagationPolicy": policy})

    async def settle(self):
        await asyncio.sleep(SETTLING_SECONDS)

    async def find(self, name, where=CONFIG_MAPS, namespace="default"):
        try:
            return await self.cluster.get(where, namespace if where.namespaced else "", name)
        except NotFound:
            return None

    async def there(self, *names, where=CONFIG_MAPS):
        """Of these names those that are there, once nothing happens any more."""
        await self.settle()
        return [name for name in names if await self.find(name, where) is not None]

    async def warnings(self):
        return [(each["reason"], each["message"]) for each in (await self.cluster.list(EVENTS)).items]


def run_beside(use):
    """Run `use(place)` beside a server and an owner cleanup."""
    with asyncio.Runner(loop_factory=lambda: SimLoop(seed=0)) as runner:
        runner.run(_main(use))


async def _main(use):
    world, store = sim_world(seed=1, follows_loop=True), Store(MemoryLog(), SimBlocking())
    await store.open()
    gate = Authenticator(tokens={hash_token(TOKEN): "admin"}, hosts=frozenset({IN_PROCESS}))
    kinds = LiveKinds(builtin_scheme(), store)
    app = make_app(Server(store=store, kinds=kinds, clock=world.clock, ids=world.ids, gate=gate, nodes=NoLogs()))
    async with asyncio.TaskGroup() as group, LocalCluster(app, token=TOKEN) as cluster:
        running = group.create_task(store.run())
        for name in ("default", "other"):
            await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        recorder = Recorder(cluster, world.clock, component="garbage-collector-controller")
        owners, synced = GarbageCollector(cluster=cluster, chance=world.chance, recorder=recorder), asyncio.Event()
        working = group.create_task(owners.run(synced))
        await synced.wait()
        try:
            await use(Place(cluster=cluster, owners=owners))
        finally:
            working.cancel()
            running.cancel()
    await store.close()
