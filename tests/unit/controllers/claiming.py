"""A cluster whose claims are seen to, in a simulated world, against our real API server in the same process."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from paceline.apimachinery.builtin.storage_annotations import FOLDERS
from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.config import Server
from paceline.client.event_recorder import Recorder
from paceline.client.in_process import IN_PROCESS, LocalCluster
from paceline.client.informer import Informer
from paceline.client.interface import CLAIMS, EVENTS, NAMESPACES, PODS, STORAGE_CLASSES, VOLUMES, Cluster, Select
from paceline.controllers.volumes import VolumeBinder
from paceline.errors import NotFound
from paceline.store.store import Store
from paceline.testing.fixed_kinds import fixed_kinds
from paceline.testing.memory_backend import MemoryLog
from paceline.testing.sim.effects import SimBlocking, sim_world
from paceline.testing.sim.loop import SimLoop

SECONDS = 1_000.0


@dataclass
class Place:
    """The hands of a test on a cluster."""

    cluster: Cluster

    async def claim(self, name="data", *, size="1Gi", modes=("ReadWriteOnce",), **spec):
        body = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, **spec}
        metadata = {"name": name, "namespace": "default"}
        made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": body}
        return await self.cluster.create(CLAIMS, made)

    async def volume(self, name, *, size="1Gi", labels=None, **spec):
        body = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
            "storageClassName": "",
            **spec,
        }
        metadata = {"name": name, "labels": labels or {}}
        made = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": body}
        return await self.cluster.create(VOLUMES, made)

    async def storage_class(self, name, **fields):
        made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
        return await self.cluster.create(STORAGE_CLASSES, {**made, "provisioner": FOLDERS, **fields})

    async def pod(self, name="demo", claim="data", **spec):
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
        body = {"containers": [{"name": "c", "image": "python"}], "volumes": volumes, **spec}
        metadata = {"name": name, "namespace": "default"}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}
        return await self.cluster.create(PODS, made)

    async def until(self, where, name, condition):
        """Wait until an object is as the condition says; give it, or None when it went."""
        namespace = "default" if where.namespaced else ""
        while True:
            try:
                found = await self.cluster.get(where, namespace, name)
            except NotFound:
                found = None
            if condition(found):
                return found
            await asyncio.sleep(0.05)

    async def phase(self, where, name, phase):
        return await self.until(where, name, lambda obj: obj and (obj.get("status") or {}).get("phase") == phase)

    async def gone(self, where, name):
        await self.until(where, name, lambda obj: obj is None)

    async def delete(self, where, name):
        await self.cluster.delete(where, ("default" if where.namespaced else "", name), {})

    async def told(self, name, reason):
        """Wait for an event about an object; give what it says."""
        while True:
            page = await self.cluster.list(EVENTS, Select(namespace="default"))
            for each in page.items:
                if (each["involvedObject"]["name"], each["reason"]) == (name, reason):
                    return each["message"]
            await asyncio.sleep(0.05)


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
            pods = Informer(cluster, PODS, chance=sim.chance)
            claims = VolumeBinder(
                cluster=cluster,
                pods=pods,
                chance=sim.chance,
                recorder=Recorder(cluster, sim.clock, component="test"),
                root=PurePosixPath("/volumes"),
            )
            synced = asyncio.Event()
            working = group.create_task(pods.run()), group.create_task(claims.run(synced))
            await synced.wait()
            yield Place(cluster=cluster)
            for each in working:
                each.cancel()
        writing.cancel()
        await store.close()


def play(story):
    """Run a test's story in virtual time."""

    async def main():
        async with asyncio.timeout(SECONDS), make_place() as place:
            return await story(place)

    with asyncio.Runner(loop_factory=lambda: SimLoop(0)) as runner:
        return runner.run(main())
