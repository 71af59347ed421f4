"""Many pods: other people's are not read, and those of one job are created many at a time, each once."""

import asyncio
from collections import Counter

from paceline.apimachinery.meta import name_of
from paceline.client.interface import PODS
from paceline.client.requests import Request, Response
from paceline.client.rest import Verbs
from paceline.cluster.external_controllers import ANY_CLUSTER
from paceline.cluster.wiring import SharedInformer, own_controllers, start
from paceline.controllers.job.apply_plan import AT_ONCE
from tests.kube.stage import OpenTransport, Stage, Tap, beside, run, staged
from tests.unit.kinds.manifests import generic, pytorch, replica, template

MEMBERS = 120


class Meter(Tap):
    """Counts how many pods are being created at the same time."""

    now = most = 0

    async def send(self, request: Request) -> Response:
        if request.method != "POST" or not request.path.endswith("/pods"):
            return await super().send(request)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            # As over a network: others have time to send theirs.
            await asyncio.sleep(0.005)
            return await super().send(request)
        finally:
            self.now -= 1


def test_pods_of_one_job_are_created_many_at_a_time_and_each_is_written_once(opens: OpenTransport) -> None:
    async def main() -> None:
        async with opens() as transport, staged(transport) as stage:
            meter = Meter(transport)
            async with stage.controllers(meter):
                await stage.submit(generic(replica(replicas=MEMBERS)))

                async def are_there() -> bool:
                    return len(await stage.pods()) == MEMBERS

                await stage.until(are_there)
            created = Counter(write for write in meter.writes if write.endswith("/pods"))
            assert sum(created.values()) == MEMBERS, "a pod was created twice"
            assert 8 < meter.most <= AT_ONCE

    run(main())


class Slow(Tap):
    """Creates one pod only when all others of its job are there, as a webhook might that hangs."""

    async def send(self, request: Request) -> Response:
        if request.method == "POST" and b'-worker-2"' in request.body and request.path.endswith("/pods"):
            while sum(write.endswith("/pods") for write in self.writes) < MEMBERS - 1:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.005)
        return await super().send(request)


def test_one_slow_creation_holds_up_no_other_pod_of_its_job(opens: OpenTransport) -> None:
    async def main() -> None:
        async with opens() as transport, staged(transport) as stage:
            slow = Slow(transport)
            async with stage.controllers(slow):
                await stage.submit(generic(replica(replicas=MEMBERS)))

                async def are_there() -> bool:
                    return len(await stage.pods()) == MEMBERS

                await stage.until(are_there)

    run(main())


def test_pods_of_others_are_not_in_the_cache(opens: OpenTransport) -> None:
    async def main() -> None:
        async with opens() as transport, staged(transport) as stage:
            for number in range(3):
                metadata = {"name": f"foreign-{number}", "namespace": stage.namespace, "labels": {"app": "web"}}
                await stage.people.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **template()})
            controllers = own_controllers(Verbs(transport), stage.world, machine=ANY_CLUSTER, namespace=stage.namespace)
            (pods,) = [part.informer for part in controllers if isinstance(part, SharedInformer)]
            async with beside(lambda synced: run_all(synced, controllers)) as synced:
                await asyncio.wait_for(synced.wait(), 60)
                await stage.submit(pytorch())
                await has_pods(stage, 5)

                async def are_cached() -> bool:
                    return len(owners()) >= 2

                def owners() -> list[str]:
                    return sorted(name_of(pod).split("-")[0] for pod in pods.cache.values())

                # The server has them a moment before the cache.
                await stage.until(are_cached, lambda: f"the cache has two pods, not {owners()}")
                assert owners() == ["demo", "demo"]

    async def run_all(synced: asyncio.Event, controllers) -> None:
        async with asyncio.TaskGroup() as group:
            await start(group, controllers)
            synced.set()

    async def has_pods(stage: Stage, count: int) -> None:
        async def look() -> bool:
            return len(await stage.pods()) == count

        await stage.until(look)

    run(main())
