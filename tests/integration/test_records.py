"""Every job leaves a record of its end and its deletion, also when no controller ran while it was deleted."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from paceline.apimachinery.meta import Object, uid_of
from paceline.client.interface import Collection
from paceline.plan.job_records import record_manifest
from paceline.testing.sim.cluster import SimCluster
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.processes import Course
from tests.integration.life import ended, phase_becomes, started
from tests.unit.kinds.manifests import pytorch

JOBS = Collection(group="batch.tensorstack.dev", version="v1beta1", plural="pytorchtrainingjobs")
RECORDS = Collection(group="paceline.dev", version="v1beta1", plural="jobrecords")


def run(scene: Callable[[SimCluster], Awaitable[None]], seconds: float = 30) -> None:
    async def main() -> None:
        cluster = await started(1)
        cluster.sim.processes.script = lambda _intent: Course(seconds=seconds)
        await scene(cluster)
        await ended(cluster)

    run_simulated(1, main())


async def submit(cluster: SimCluster, name: str = "demo") -> Object:
    job = pytorch()
    job["metadata"] = {"name": name, "namespace": "default"}
    return await cluster.client().create(JOBS, job)


async def records(cluster: SimCluster) -> list[Object]:
    return list((await cluster.client().list(RECORDS)).items)


async def completed(cluster: SimCluster, count: int = 1) -> list[Object]:
    """Wait until so many records have an outcome."""
    async with asyncio.timeout(120):
        while True:
            completed_records = [record for record in await records(cluster) if record.get("status")]
            if len(completed_records) >= count:
                return completed_records
            await asyncio.sleep(1)


def test_t12_a_job_that_has_ended_is_recorded_and_stays_so_when_it_is_deleted() -> None:
    async def scene(cluster: SimCluster) -> None:
        job = await submit(cluster)
        await phase_becomes(cluster, JOBS, "demo", "Succeeded")
        (record,) = await completed(cluster)
        await cluster.client().delete(JOBS, ("default", "demo"))
        await asyncio.sleep(30)
        (retained,) = await records(cluster)

        assert retained["status"] == record["status"]
        assert retained["status"]["phase"] == "Succeeded"
        assert retained["spec"]["uid"] == uid_of(job)
        assert retained["spec"]["job"]["spec"]["replicaSpecs"] == job["spec"]["replicaSpecs"]
        reasons = [event["reason"] for event in retained["status"]["events"]]
        assert {"Created", "Running", "Succeeded"} <= set(reasons)
        assert retained["status"]["replicas"]

    run(scene)


def test_t12_a_job_that_is_deleted_while_it_runs_is_recorded_as_deleted() -> None:
    async def scene(cluster: SimCluster) -> None:
        await submit(cluster)
        await phase_becomes(cluster, JOBS, "demo", "Running")
        await cluster.client().delete(JOBS, ("default", "demo"))
        (record,) = await completed(cluster)

        assert (record["status"]["phase"], record["status"]["lastPhase"]) == ("Deleted", "Running")
        assert record["status"]["deletionTime"]
        assert record["status"]["events"]

    run(scene, seconds=3600)


def test_t12_a_job_that_went_while_no_controller_ran_is_found_at_the_next_start() -> None:
    async def scene(cluster: SimCluster) -> None:
        gone = pytorch()
        gone["metadata"] = {
            "name": "gone",
            "namespace": "default",
            "uid": "00000000-0000-4000-8000-000000000000",
            "creationTimestamp": "2030-01-01T00:00:00Z",
        }
        await cluster.client().create(RECORDS, record_manifest("paceline.dev/v1beta1", gone))
        await asyncio.sleep(60)
        assert "status" not in (await records(cluster))[0]
        await cluster.kill_control()
        await asyncio.wait_for(cluster.start_control().ready.wait(), 600)
        (record,) = await completed(cluster)

        assert record["status"]["phase"] == "Deleted"
        assert record["spec"]["job"]["name"] == "gone"

    run(scene)


def test_a_job_of_the_same_name_has_a_record_of_its_own() -> None:
    async def scene(cluster: SimCluster) -> None:
        for _ in range(2):
            await submit(cluster)
            await phase_becomes(cluster, JOBS, "demo", "Running")
            await cluster.client().delete(JOBS, ("default", "demo"))
            await asyncio.sleep(60)

        assert len(await completed(cluster, 2)) == 2

    run(scene, seconds=3600)


@pytest.mark.parametrize("seed", range(3))
def test_a_record_costs_two_writes(seed: int) -> None:
    async def main() -> None:
        cluster = await started(seed)
        cluster.sim.processes.script = lambda _intent: Course(seconds=30)
        await submit(cluster)
        await phase_becomes(cluster, JOBS, "demo", "Succeeded")
        await completed(cluster)
        await cluster.client().delete(JOBS, ("default", "demo"))
        await asyncio.sleep(60)

        writes = [record for record in cluster.log.since(0) if "/jobrecords/" in record.key]
        assert len(writes) == 2
        await ended(cluster)

    run_simulated(seed, main())
