"""TensorBoards and Notebooks on a simulated machine: made, suspended, resumed, and gone with what was made for them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from paceline.apimachinery.meta import Object, name_of, uid_of
from paceline.client.interface import CLAIMS, PODS, SECRETS, SERVICES, Collection, Select
from paceline.kinds.kind_types import GROUP, SERVICE_GROUP, VERSION
from paceline.testing.sim.cluster import SimCluster
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.processes import Course
from tests.e2e.support.manifests import claim, pytorch
from tests.integration.life import ended, phase_becomes, started

BOARDS = Collection(group=SERVICE_GROUP, version=VERSION, plural="tensorboards")
NOTEBOOKS = Collection(group=SERVICE_GROUP, version=VERSION, plural="notebooks")
JOBS = Collection(group=GROUP, version=VERSION, plural="pytorchtrainingjobs")
LOGS = {"image": "python:3", "logDir": {"pvc": [{"name": "data", "subPath": ["log"]}]}}
DESK = {"template": {"spec": {"containers": [{"name": "notebook", "image": "python:3"}]}}}
SECONDS = 120

T = TypeVar("T")


def service(kind: str, name: str, spec: Object) -> Object:
    return {
        "apiVersion": f"{SERVICE_GROUP}/{VERSION}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


async def begun(seed: int) -> SimCluster:
    cluster = await started(seed)
    wanted = claim("data")
    wanted["metadata"]["namespace"] = "default"
    await cluster.client().create(CLAIMS, wanted)
    await phase_becomes(cluster, CLAIMS, "data", "Bound")
    return cluster


async def names(cluster: SimCluster, where: Collection) -> list[str]:
    return [name_of(each) for each in (await cluster.client().list(where, Select(namespace="default"))).items]


async def until(look: Callable[[], Awaitable[T]]) -> T:
    """Look again and again until there is something to see, and give it."""
    async with asyncio.timeout(SECONDS):
        while True:
            if found := await look():
                return found
            await asyncio.sleep(0.1)


async def come_to(cluster: SimCluster, where: Collection, *wanted: str) -> None:
    """Wait until there are these objects and no others; what every namespace has is left out."""

    async def look() -> bool:
        return sorted(name for name in await names(cluster, where) if name != "kubernetes") == sorted(wanted)

    await until(look)


async def pod_of(cluster: SimCluster, where: Collection, name: str) -> Object:
    """Wait until it has a pod that runs, and give that."""

    async def look() -> Object | None:
        status: Any = (await cluster.client().get(where, "default", name)).get("status") or {}
        if (status.get("pod") or {}).get("phase") != "Running":
            return None
        return await cluster.client().get(PODS, "default", str(status["pod"]["reference"]["name"]))

    return await until(look)


def test_a_tensorboard_is_suspended_resumed_and_changed_and_never_has_two_pods() -> None:
    async def main() -> None:
        cluster = await begun(1)
        client = cluster.client()
        await client.create(BOARDS, service("TensorBoard", "curves", LOGS))
        pod = await pod_of(cluster, BOARDS, "curves")
        await come_to(cluster, PODS, name_of(pod))
        await come_to(cluster, SERVICES, "tb-curves")
        await client.patch(BOARDS, ("default", "curves"), {"spec": {"suspend": True}})
        await phase_becomes(cluster, BOARDS, "curves", "Paused")
        await come_to(cluster, PODS)
        await come_to(cluster, SERVICES, "tb-curves")
        await client.patch(BOARDS, ("default", "curves"), {"spec": {"suspend": False}})
        assert uid_of(await pod_of(cluster, BOARDS, "curves")) != uid_of(pod)
        await client.patch(BOARDS, ("default", "curves"), {"spec": {"image": "python:3.12"}})

        async def is_changed() -> bool:
            assert len(cluster.sim.processes.running()) <= 1
            return str(await pod_of(cluster, BOARDS, "curves")).find("python:3.12") > 0

        await until(is_changed)
        await client.delete(BOARDS, ("default", "curves"))
        await come_to(cluster, PODS)
        await come_to(cluster, SERVICES)
        await ended(cluster)

    run_simulated(1, main())


def test_a_notebook_that_ends_well_rests_until_somebody_asks_for_it() -> None:
    async def main() -> None:
        cluster = await begun(2)
        client = cluster.client()
        cluster.sim.processes.script = lambda _intent: Course(seconds=30)
        await client.create(NOTEBOOKS, service("Notebook", "desk", DESK))
        pod = name_of(await pod_of(cluster, NOTEBOOKS, "desk"))
        rest = await phase_becomes(cluster, NOTEBOOKS, "desk", "Paused")
        assert [each["reason"] for each in rest["status"]["conditions"] if each["status"] == "True"] == ["Ended"] * 2
        await come_to(cluster, PODS)
        secret = rest["status"]["tokenSecret"]
        token = (await client.get(SECRETS, "default", secret))["data"]
        later = {"metadata": {"annotations": {"paceline.dev/opened-at": cluster.sim.clock.now().isoformat()}}}
        await client.patch(NOTEBOOKS, ("default", "desk"), later)
        await come_to(cluster, PODS, pod)
        assert (await client.get(SECRETS, "default", secret))["data"] == token
        await client.delete(NOTEBOOKS, ("default", "desk"))
        for where in (PODS, SERVICES, SECRETS):
            await come_to(cluster, where)
        await ended(cluster)

    run_simulated(2, main())


def test_a_jobs_tensorboard_stays_when_the_job_ends_and_goes_when_it_is_deleted() -> None:
    async def main() -> None:
        cluster = await begun(3)
        client = cluster.client()
        cluster.sim.processes.script = lambda intent: Course(seconds=None if "tensorboard" in str(intent) else 5)
        job = pytorch("train", command=["true"], workers=2)
        job["metadata"]["namespace"] = "default"
        job["spec"]["tensorboardSpec"] = LOGS
        await client.create(JOBS, job)
        over = await phase_becomes(cluster, JOBS, "train", "Succeeded")
        (board,) = await names(cluster, BOARDS)
        assert over["status"]["tensorboard"]["dependent"]["name"] == board
        members = [str(each["name"]) for each in over["status"]["tasks"][0]["replicas"]]
        await come_to(cluster, PODS, name_of(await pod_of(cluster, BOARDS, board)), *members)
        await client.delete(JOBS, ("default", "train"), {"propagationPolicy": "Background"})
        for where in (BOARDS, PODS, SERVICES):
            await come_to(cluster, where)
        await ended(cluster)

    run_simulated(3, main())
