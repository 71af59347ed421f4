"""Gangs that wait for room, on a simulated cluster, in virtual time."""

import pytest

from paceline.client.cluster import PODS
from paceline.objects.meta import key_of
from paceline.testing.simcluster import SimCluster
from tests.flow.life import phase_becomes
from tests.flow.test_kinds import where
from tests.flow.test_preemption import PYTORCH, crew, live, pods_of, submit, told_of, until, waits
from tests.unit.kinds.manifests import pytorch


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_pod_that_is_deleted_while_its_gang_waits_is_made_again_and_the_gang_runs(policy: str) -> None:
    async def act(cluster: SimCluster) -> None:
        await submit(cluster, crew("first"))
        await phase_becomes(cluster, PYTORCH, "first", "Running")
        job = crew("later", make=pytorch, restartScope="Replica", runPolicy={"backoffLimit": 0})
        job["spec"]["replicaSpecs"][0]["restartPolicy"] = policy
        await submit(cluster, job)
        await until(lambda: waits(cluster, "later"))
        going = (await pods_of(cluster, "later"))[1]
        await cluster.client().delete(PODS, key_of(going))

        async def is_remade() -> bool:
            return {pod["metadata"]["labels"]["paceline.dev/attempt"] for pod in await pods_of(cluster, "later")} == {
                "0",
                "1",
            }

        await until(is_remade)
        await cluster.client().delete(where(job), ("default", "first"))
        over = await phase_becomes(cluster, PYTORCH, "later", "Running")
        assert (over["status"]["backoffCount"], over["status"]["releases"]) == (0, {"worker-1": 1})
        told = await told_of(cluster, {over["metadata"]["uid"]})
        assert [each["count"] for each in told if each["reason"] == "Remade"] == [1]

    live(act)
