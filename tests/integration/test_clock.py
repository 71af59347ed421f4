"""The machine's clock is set while jobs live, on a simulated cluster: only time that passes ends anything."""

import asyncio

import pytest

from paceline.apimachinery.meta import name_of
from paceline.apimachinery.timestamps import from_wire
from paceline.client.interface import PODS
from paceline.errors import NotFound
from paceline.testing.sim.cluster import SimCluster
from paceline.testing.sim.processes import Course
from tests.integration.life import PATIENCE_SECONDS, phase_becomes
from tests.integration.test_kinds import where
from tests.integration.test_rules import live, pods_of, read, submit
from tests.unit.kinds.manifests import generic, template

JUMPS = {"2 hours": 7200, "-2 days": -172_800, "10 years": 315_619_200}


async def restart_all(cluster: SimCluster) -> None:
    """Kill both processes and start them again, by the clock as it is."""
    await cluster.kill_agent()
    await cluster.kill_control()
    await asyncio.wait_for(cluster.start_control().ready.wait(), PATIENCE_SECONDS)
    await asyncio.wait_for(cluster.start_agent().ready.wait(), PATIENCE_SECONDS)


jumps = pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)


@jumps
def test_a_job_has_all_of_its_time(jump: float) -> None:
    job = generic(runPolicy={"activeDeadlineSeconds": 3600})

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await phase_becomes(cluster, where(job), "demo", "Running")
        cluster.sim.clock.jump(jump)
        await asyncio.sleep(1800)
        assert (await read(cluster, job))["status"]["phase"] == "Running"
        await restart_all(cluster)
        await asyncio.sleep(1000)
        assert (await read(cluster, job))["status"]["phase"] == "Running"
        cluster.sim.clock.jump(-jump)
        await restart_all(cluster)
        await asyncio.sleep(700)
        assert (await read(cluster, job))["status"]["phase"] == "Running"
        failed = await phase_becomes(cluster, where(job), "demo", "Failed")
        (why,) = [each["reason"] for each in failed["status"]["conditions"] if each["type"] == "Failed"]
        assert why == "DeadlineExceeded"
        took = from_wire(failed["status"]["completionTime"]) - from_wire(failed["status"]["startTime"])
        assert 3600 <= took.total_seconds() <= 3610

    live(act)


@jumps
def test_a_finished_job_stays_for_all_of_its_time(jump: float) -> None:
    job = generic(runPolicy={"ttlSecondsAfterFinished": 3600})

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await phase_becomes(cluster, where(job), "demo", "Succeeded")
        cluster.sim.clock.jump(jump)
        await restart_all(cluster)
        await asyncio.sleep(3400)
        await read(cluster, job)
        cluster.sim.clock.jump(-jump)
        await restart_all(cluster)
        await asyncio.sleep(300)
        with pytest.raises(NotFound):
            await read(cluster, job)

    live(act, Course(seconds=1))


@jumps
def test_a_job_that_waits_has_all_of_its_time_to_begin(jump: float) -> None:
    resources = {"limits": {"nvidia.com/gpu": 99}}
    job = generic(
        {"type": "worker", "replicas": 1, "template": template(resources=resources)},
        runPolicy={"startingDeadlineSeconds": 3600},
    )

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await phase_becomes(cluster, where(job), "demo", "Pending")
        cluster.sim.clock.jump(jump)
        await restart_all(cluster)
        await asyncio.sleep(3400)
        assert (await read(cluster, job))["status"]["phase"] == "Pending"
        cluster.sim.clock.jump(-jump)
        await phase_becomes(cluster, where(job), "demo", "Failed")

    live(act)


@jumps
def test_a_pod_has_all_of_its_grace(jump: float) -> None:
    job = generic()

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await phase_becomes(cluster, where(job), "demo", "Running")
        name = min(name_of(pod) for pod in (await pods_of(cluster)).values())
        await cluster.client().delete(PODS, ("default", name), {"gracePeriodSeconds": 600})
        await asyncio.sleep(5)
        cluster.sim.clock.jump(jump)
        await restart_all(cluster)
        await asyncio.sleep(500)
        assert (await cluster.client().get(PODS, "default", name))["status"]["phase"] == "Running"
        cluster.sim.clock.jump(-jump)
        await asyncio.sleep(120)
        with pytest.raises(NotFound):
            await cluster.client().get(PODS, "default", name)

    live(act, Course(seconds=1_000_000, on_term=None))
