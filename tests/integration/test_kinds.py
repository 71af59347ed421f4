"""Jobs of every kind travel the road on a simulated machine, in virtual time."""

import asyncio
import json
from typing import Any

import pytest

from paceline.apimachinery.meta import Object
from paceline.client.interface import PODS, Collection, Select
from paceline.kinds import registry
from paceline.kinds.kind_types import GROUP, VERSION
from paceline.testing.sim.cluster import SimCluster
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.processes import Course
from tests.integration.life import ended, phase_becomes, started
from tests.unit.kinds.manifests import colossalai, deepspeed, generic, mpi, pytorch, tensorflow, trainer, xgboost
from tests.unit.kinds.oldshapes import OLD


def named(job: dict[str, Any], name: str = "demo") -> Object:
    return {**job, "metadata": {"name": name, "namespace": "default"}}


def where(job: Object) -> Collection:
    kind = registry.kind_of(job)
    assert kind is not None
    return Collection(group=GROUP, version=VERSION, plural=kind.plural)


# What waits to be reached never ends by itself; everything else ends well after a while.
def course(intent: dict[str, Any]) -> Course:
    return Course(seconds=1_000_000 if "serve" in intent["argv"] else 20)


async def running(cluster: SimCluster, count: int) -> None:
    """Wait, in virtual time, until so many containers run."""
    async with asyncio.timeout(600):
        while len(cluster.sim.processes.running()) != count:  # noqa: ASYNC110 - the loop's time is virtual
            await asyncio.sleep(0.1)


JOBS = {
    **{
        each["kind"]: each for each in (pytorch(), generic(), tensorflow(), xgboost(), mpi(), deepspeed(), colossalai())
    },
    **{name: make() for name, make in OLD.items() if registry.kind_of(make()) and "G1" not in name},
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_job_runs_succeeds_and_leaves_nothing_running(job: dict[str, Any]) -> None:
    """T-19"""

    async def main() -> None:
        cluster = await started(1)
        cluster.sim.processes.script = course
        obj = named(job)
        await cluster.client().create(where(obj), obj)
        await phase_becomes(cluster, where(obj), "demo", "Running")
        assert len(cluster.sim.processes.running()) == len(await pods(cluster))
        await phase_becomes(cluster, where(obj), "demo", "Succeeded")
        await running(cluster, 0)
        await ended(cluster)

    run_simulated(1, main())


def test_fifty_workers_and_four_servers_are_all_tracked_and_all_told_of_all() -> None:
    """H-06"""

    async def main() -> None:
        cluster = await started(1)
        cluster.sim.processes.script = lambda _intent: Course(seconds=1_000)
        obj = named(tensorflow(trainer("tensorflow", "worker", 50), trainer("tensorflow", "ps", 4)))
        await cluster.client().create(where(obj), obj)
        job = await phase_becomes(cluster, where(obj), "demo", "Running")
        tracked = [row["phase"] for task in job["status"]["tasks"] for row in task["replicas"]]
        told = [
            json.loads(each["value"])["cluster"]
            for pod in await pods(cluster)
            for each in pod["spec"]["containers"][0]["env"]
            if each["name"] == "TF_CONFIG"
        ]
        assert tracked == ["Running"] * 54
        assert {role: len(set(hosts)) for role, hosts in told[0].items()} == {"worker": 50, "ps": 4}
        assert told == [told[0]] * 54, "everybody is told the same"
        await ended(cluster)

    run_simulated(1, main())


def test_an_elastic_job_that_grows_gets_ports_for_its_new_members() -> None:
    async def main() -> None:
        cluster = await started(1)
        cluster.sim.processes.script = lambda _intent: Course(seconds=1_000_000)
        job = named(deepspeed(elastic={"enabled": True, "maxReplicas": 4, "expectedReplicas": 2}))
        await cluster.client().create(where(job), job)
        before = await phase_becomes(cluster, where(job), "demo", "Running")
        wanted = {**before, "spec": {**before["spec"], "elastic": {**job["spec"]["elastic"], "expectedReplicas": 3}}}
        await cluster.client().replace(where(job), wanted)
        await running(cluster, 3)
        after = await cluster.client().get(where(job), "default", "demo")
        assert after["status"]["ports"].items() > before["status"]["ports"].items()
        assert len(set(after["status"]["ports"].values())) == 4
        await ended(cluster)

    run_simulated(1, main())


async def pods(cluster: SimCluster) -> tuple[Object, ...]:
    return (await cluster.client().list(PODS, Select(namespace="default"))).items
