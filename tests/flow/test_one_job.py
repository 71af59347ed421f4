"""A job travels the whole road on a simulated machine, in virtual time."""

import asyncio
from typing import Any

from paceline.client.cluster import PODS, Collection, Select
from paceline.testing.processes import Course
from paceline.testing.simcluster import SimCluster
from paceline.testing.simloop import run_simulated
from tests.e2e.manifests import generic

JOBS = Collection(group="batch.tensorstack.dev", version="v1beta1", plural="genericjobs")


async def phase_becomes(cluster: SimCluster, name: str, phase: str) -> dict[str, Any]:
    client = cluster.client()
    async with asyncio.timeout(600):
        while True:
            job = await client.get(JOBS, "default", name)
            if (job.get("status") or {}).get("phase") == phase:
                return job
            await asyncio.sleep(0.1)


async def started(seed: int) -> SimCluster:
    cluster = SimCluster(seed=seed)
    await asyncio.wait_for(cluster.start_control().ready.wait(), 60)
    await asyncio.wait_for(cluster.start_agent().ready.wait(), 60)
    return cluster


def test_a_job_of_two_members_runs_and_succeeds() -> None:
    async def main() -> None:
        cluster = await started(1)
        cluster.sim.processes.script = lambda _intent: Course(seconds=30)
        job = generic("hello", command=["true"], replicas=2)
        job["metadata"]["namespace"] = "default"
        await cluster.client().create(JOBS, job)
        await phase_becomes(cluster, "hello", "Running")
        assert len(cluster.sim.processes.running()) == 2
        await phase_becomes(cluster, "hello", "Succeeded")
        assert cluster.sim.processes.running() == {}
        pods = await cluster.client().list(PODS, Select(namespace="default"))
        assert [pod["status"]["phase"] for pod in pods.items] == ["Succeeded", "Succeeded"]
        assert cluster.broken() is None
        await cluster.kill_agent()
        await cluster.kill_control()

    run_simulated(1, main())
