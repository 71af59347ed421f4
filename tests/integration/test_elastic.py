"""Elastic jobs that lose members, on a simulated cluster, in virtual time."""

import asyncio
from typing import Any

from paceline.apimachinery.meta import Object, uid_of
from paceline.client.interface import CRDS, POD_GROUPS
from paceline.testing.sim.cluster import SimCluster, run_well
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.processes import Course, Intent
from tests.integration.life import PATIENCE_SECONDS, ended, phase_becomes
from tests.integration.test_kinds import where
from tests.integration.test_rules import (
    TORCHRUN,
    change,
    definition,
    end,
    live,
    pods_of,
    read,
    reasons,
    serves_groups,
    submit,
    until,
)
from tests.unit.kinds.manifests import deepspeed, pytorch


def elastic(expected: int, **spec: Any) -> Object:
    bounds = {"enabled": True, "minReplicas": 1, "maxReplicas": 3, "expectedReplicas": expected}
    return pytorch(elastic=bounds, **TORCHRUN, **spec)


async def run(cluster: SimCluster, job: Object, *pods: str) -> Object:
    """Wait until these pods run, and no others, and the job says so; give its status."""

    async def holds() -> bool:
        found = await pods_of(cluster)
        running = {name for name, pod in found.items() if pod.get("status", {}).get("phase") == "Running"}
        told = (await read(cluster, job))["status"].get("elastic")
        return running == set(pods) and told == {"currentReplicas": len(pods), "expectedReplicas": len(pods)}

    await until(holds)
    return dict((await read(cluster, job))["status"])


def test_all_meet_anew_when_the_first_is_killed() -> None:
    job = elastic(3, runPolicy={"backoffLimit": 1})

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await run(cluster, job, "worker-0", "worker-1", "worker-2")
        await end(cluster, "worker-0", 137)
        # The others end because of it.
        await end(cluster, "worker-1", 1)
        await end(cluster, "worker-2", 1)
        now = await run(cluster, job, "worker-0-r1", "worker-1-r1", "worker-2-r1")
        assert (now["phase"], now["attempt"], now["backoffCount"]) == ("Running", 1, 1)

    live(act)


def test_a_worker_that_is_lost_for_good_is_told_and_the_others_go_on() -> None:
    job = elastic(3, runPolicy={"backoffLimit": 0})

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await run(cluster, job, "worker-0", "worker-1", "worker-2")
        await end(cluster, "worker-2", 1)

        async def is_told() -> bool:
            return "ReplicaLost" in await reasons(cluster)

        await until(is_told)
        now = (await read(cluster, job))["status"]
        assert (now["phase"], now["elastic"]) == ("Running", {"currentReplicas": 2, "expectedReplicas": 3})
        assert (await reasons(cluster)).count("ReplicaLost") == 1

    live(act)


def copying(intent: Intent) -> Course:
    """Members run until they are told to end; the sidecars beside them are killed in the midst of their last copy."""
    words = intent["argv"]
    if "restore" in words or "flush" in words:
        return Course(seconds=1, message="2 files")
    return Course(on_term=None) if "sync" in words else Course(seconds=1_000_000)


def test_what_a_member_wrote_that_shrinking_removed_is_copied_before_the_job_ends() -> None:
    job = elastic(2, output={"bucket": {"url": "s3://results/runs"}})

    async def act(cluster: SimCluster) -> None:
        cluster.sim.processes.script = copying
        cluster.command = run_well
        await cluster.kill_agent()
        cluster.start_agent()
        await submit(cluster, job)
        await run(cluster, job, "worker-0", "worker-1")
        await change(cluster, job, {"elastic": {"expectedReplicas": 1}})

        async def has_gone() -> bool:
            return set(await pods_of(cluster)) == {"worker-0"}

        await until(has_gone)
        assert _with_output(await read(cluster, job)) == ["worker-1"]
        uid = uid_of((await pods_of(cluster))["worker-0"])
        (main,) = [each for each in cluster.sim.processes.running() if uid in each.parts and "main" in each.parts]
        cluster.sim.processes.finish(main, 0)
        over = await phase_becomes(cluster, where(job), "demo", "Succeeded")
        assert _with_output(over) == []
        assert {"flush-worker-0", "flush-worker-1"} <= set(await pods_of(cluster))

    live(act)


async def run_of(cluster: SimCluster, count: int) -> None:
    """Wait until there are so many pods."""

    async def holds() -> bool:
        return len(await pods_of(cluster)) == count

    await until(holds)


def test_the_group_of_a_job_that_begins_in_another_size_is_of_that_size() -> None:
    """DeepSpeed's first worker is told of all others, so all are placed together, however many they are."""
    bounds = {"enabled": True, "minReplicas": 1, "maxReplicas": 3, "expectedReplicas": 3}
    job = deepspeed(elastic=bounds, scheduler={"t9kScheduler": {"queue": "gpus"}})

    async def main() -> None:
        cluster = SimCluster(seed=1, defines=True)
        await asyncio.wait_for(cluster.start_control().ready.wait(), PATIENCE_SECONDS)
        await cluster.client().create(CRDS, definition())
        await until(lambda: serves_groups(cluster))
        await submit(cluster, job)
        await run_of(cluster, 3)
        await change(cluster, job, {"elastic": {"expectedReplicas": 2}})
        await run_of(cluster, 2)
        group = await cluster.client().get(POD_GROUPS, "default", "demo")
        assert group["spec"] == {"minMember": 2, "queue": "gpus", "priority": 0}
        await ended(cluster)

    run_simulated(1, main())


def _with_output(job: Object) -> list[str]:
    """The replicas that were scaled down and have output that is not uploaded."""
    return [each["replica"] for each in job["status"]["replicaRecords"] if each.get("hasOutput")]
