"""Gangs that wait for room, on a simulated cluster, in virtual time."""

import pytest

from paceline.apimachinery.meta import Object, key_of
from paceline.client.interface import CLAIMS, PODS
from paceline.testing.sim.cluster import SimCluster
from tests.e2e.support.manifests import claim
from tests.integration.life import phase_becomes
from tests.integration.test_kinds import where
from tests.integration.test_preemption import PYTORCH, crew, live, pods_of, submit, told_of, until, waits
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
        attempts = {each["replica"]: each.get("attempt", 0) for each in over["status"]["replicaRecords"]}
        assert (over["status"]["backoffCount"], attempts) == (0, {"worker-0": 0, "worker-1": 1})
        told = await told_of(cluster, {over["metadata"]["uid"]})
        assert [each["count"] for each in told if each["reason"] == "Remade"] == [1]

    live(act)


def test_members_that_restart_alone_come_back_from_a_pause_together_or_not_at_all() -> None:
    async def act(cluster: SimCluster) -> None:
        job = crew("train", make=pytorch, restartScope="Replica", runPolicy={"backoffLimit": 3})
        await submit(cluster, job)
        await phase_becomes(cluster, PYTORCH, "train", "Running")
        # One of them has had a try more than the other.
        await cluster.client().delete(PODS, key_of((await pods_of(cluster, "train"))[1]))
        await until(lambda: runs(cluster, "train", {"0", "1"}))
        await pause(cluster, "train", is_wanted=True)
        await phase_becomes(cluster, PYTORCH, "train", "Paused")
        # Half of the room is gone when the job comes back.
        await submit(cluster, crew("small", replicas=1))
        await phase_becomes(cluster, PYTORCH, "small", "Running")
        await pause(cluster, "train", is_wanted=False)
        await until(lambda: waits(cluster, "train"))
        assert not any(pod["spec"].get("nodeName") for pod in await pods_of(cluster, "train") if waiting(pod))
        await cluster.client().delete(where(job), ("default", "small"))
        await until(lambda: runs(cluster, "train", {"2"}))

    live(act)


async def pause(cluster: SimCluster, name: str, *, is_wanted: bool) -> None:
    patch = {"spec": {"runMode": {"pause": {"enabled": is_wanted}}}}
    await cluster.client().patch(PYTORCH, ("default", name), patch)


async def runs(cluster: SimCluster, name: str, attempts: set[str]) -> bool:
    """Tell whether all members run, at these tries."""
    running = [pod for pod in await pods_of(cluster, name) if pod["status"]["phase"] == "Running"]
    return len(running) == 2 and {pod["metadata"]["labels"]["paceline.dev/attempt"] for pod in running} == attempts


def waiting(pod: Object) -> bool:
    return bool(pod["status"]["phase"] == "Pending")


def test_a_job_waits_for_a_claim_that_is_created_later() -> None:
    async def act(cluster: SimCluster) -> None:
        job = crew("early", make=pytorch, input={"claim": "later"})
        await submit(cluster, job)

        async def is_named() -> bool:
            status = (await cluster.client().get(PYTORCH, "default", "early")).get("status") or {}
            return 'persistentvolumeclaim "later" not found' in status.get("waiting", "")

        await until(is_named)
        await cluster.client().create(CLAIMS, in_default(claim("later")))
        await phase_becomes(cluster, PYTORCH, "early", "Running")

    live(act)


def in_default(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "namespace": "default"}}
