"""High priority overtakes: a running job gives way to a more important one, and runs again after it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from paceline.apimachinery.meta import Object, name_of, uid_of
from paceline.client.interface import EVENTS, PODS, PRIORITY_CLASSES, Select
from paceline.testing.sim.cluster import SimCluster
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.processes import Course, Intent
from tests.integration.life import PATIENCE_SECONDS, ended, phase_becomes, started
from tests.integration.test_kinds import where
from tests.unit.kinds.manifests import generic, pytorch, replica, template

GPU = {"limits": {"nvidia.com/gpu": 1}}
PYTORCH = where(pytorch())


def priority(name: str, value: int, **more: Any) -> Object:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**head, "metadata": {"name": name}, "value": value, **more}


def crew(name: str, *, replicas: int = 2, of: str = "", make: Callable[..., Object] = pytorch, **spec: Any) -> Object:
    """A gang that wants one of the machine's two GPUs for each of its members."""
    pod = template(resources=GPU, args=[name])
    pod["spec"] |= {"priorityClassName": of} if of else {}
    made = make(replica("worker", replicas, template=pod), **spec)
    return {**made, "metadata": {"name": name, "namespace": "default"}}


def course(intent: Intent) -> Course:
    """Who is urgent is done soon, the others train until they are told to stop."""
    return Course(seconds=20 if "urgent" in intent["argv"] else 1_000_000)


def live(act: Callable[[SimCluster], Awaitable[None]]) -> None:
    async def main() -> None:
        cluster = await started(1)
        cluster.sim.processes.script = course
        await cluster.client().create(PRIORITY_CLASSES, priority("high", 1000))
        await cluster.client().create(PRIORITY_CLASSES, priority("patient", 1000, preemptionPolicy="Never"))
        await act(cluster)
        await ended(cluster)

    run_simulated(1, main())


async def submit(cluster: SimCluster, job: Object) -> None:
    await cluster.client().create(where(job), job)


async def pods_of(cluster: SimCluster, job: str) -> list[Object]:
    found = (await cluster.client().list(PODS, Select(namespace="default"))).items
    mine = [pod for pod in found if (pod["metadata"].get("labels") or {}).get("tensorstack.dev/owner-name") == job]
    return sorted(mine, key=name_of)


async def told_of(cluster: SimCluster, uids: set[str]) -> list[Object]:
    found = (await cluster.client().list(EVENTS, Select(namespace="default"))).items
    return [each for each in found if each["involvedObject"].get("uid") in uids]


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await holds():  # noqa: ASYNC110 - the loop's time is virtual
            await asyncio.sleep(0.1)


async def waits(cluster: SimCluster, name: str) -> bool:
    """Tell whether all pods of a job's current try wait for room."""
    job = await cluster.client().get(PYTORCH, "default", name)
    return "nodes are available" in job["status"].get("waiting", "") or "waits behind" in job["status"].get(
        "waiting", ""
    )


def test_x14_high_priority_overtakes_and_the_victim_is_requeued_and_runs_again() -> None:
    async def act(cluster: SimCluster) -> None:
        await submit(cluster, crew("train", runPolicy={"backoffLimit": 0}))
        await phase_becomes(cluster, PYTORCH, "train", "Running")
        first = await pods_of(cluster, "train")
        await submit(cluster, crew("urgent", of="high"))
        await phase_becomes(cluster, PYTORCH, "urgent", "Running")
        victim = await phase_becomes(cluster, PYTORCH, "train", "Pending")
        await until(lambda: waits(cluster, "train"))
        victim = await cluster.client().get(PYTORCH, "default", "train")
        assert (victim["status"]["attempt"], victim["status"]["backoffCount"]) == (1, 0)
        assert "failure" not in victim["status"]
        assert victim["status"]["waiting"].startswith(
            "default-scheduler: preempting to accommodate a higher priority pod (default/urgent-"
        )
        winners = {uid_of(pod) for pod in await pods_of(cluster, "urgent")}
        told = await told_of(cluster, {uid_of(pod) for pod in first})
        said = [each["message"] for each in told if each["reason"] == "Preempted"]
        assert len(said) == 2
        assert all(text in {f"Preempted by pod {uid} on node sim" for uid in winners} for text in said)
        await phase_becomes(cluster, PYTORCH, "urgent", "Succeeded")
        again = await phase_becomes(cluster, PYTORCH, "train", "Running")
        assert (again["status"]["backoffCount"], again["status"].get("disruption")) == (0, None)
        told = await told_of(cluster, {uid_of(again)})
        assert [each["count"] for each in told if each["reason"] == "Preempted"] == [1]

    live(act)


def test_x14_the_room_is_promised_while_the_victim_ends() -> None:
    """What comes between, and wants what the victim leaves, waits behind the one that it is left for."""

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, crew("train"))
        await phase_becomes(cluster, PYTORCH, "train", "Running")
        cluster.sim.processes.script = lambda _intent: Course(seconds=1_000_000)
        await submit(cluster, crew("urgent", of="high"))
        await until(lambda: promised(cluster, "urgent"))
        going = await pods_of(cluster, "train")
        assert all("deletionTimestamp" in pod["metadata"] or _mark(pod) for pod in going)
        await submit(cluster, crew("small", replicas=1))
        await phase_becomes(cluster, PYTORCH, "urgent", "Running")
        await until(lambda: waits(cluster, "small"))
        for pod in await pods_of(cluster, "urgent"):
            assert (pod["spec"]["nodeName"], pod["status"].get("nominatedNodeName")) == ("sim", None)
        assert not any(pod["spec"].get("nodeName") for pod in await pods_of(cluster, "small"))

    live(act)


async def promised(cluster: SimCluster, job: str) -> bool:
    pods = await pods_of(cluster, job)
    return len(pods) == 2 and all((pod.get("status") or {}).get("nominatedNodeName") == "sim" for pod in pods)


def _mark(pod: Object) -> Object | None:
    conditions = pod["status"].get("conditions") or ()
    return next((each for each in conditions if each.get("reason") == "PreemptionByScheduler"), None)


def test_x14_one_that_never_preempts_waits_at_the_head_of_the_queue() -> None:
    async def act(cluster: SimCluster) -> None:
        await submit(cluster, crew("train"))
        await phase_becomes(cluster, PYTORCH, "train", "Running")
        await submit(cluster, crew("urgent", of="patient"))
        await until(lambda: waits(cluster, "urgent"))
        await asyncio.sleep(60)
        job = await cluster.client().get(PYTORCH, "default", "urgent")
        assert "preemptionPolicy=Never" in job["status"]["waiting"]
        train = await cluster.client().get(PYTORCH, "default", "train")
        assert (train["status"]["phase"], train["status"]["attempt"]) == ("Running", 0)

    live(act)


def test_x14_a_pod_of_its_own_and_members_of_a_job_that_cannot_be_read_give_way_too() -> None:
    """A pod that no job takes back is simply ended, as on Kubernetes."""
    alone = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "namespace": "default"}}
    alone |= {"spec": template(resources=GPU, args=["alone"])["spec"]}

    async def act(cluster: SimCluster) -> None:
        await cluster.client().create(PODS, alone)
        lost = crew("train", replicas=1, make=generic)
        await submit(cluster, lost)
        job = await phase_becomes(cluster, where(lost), "train", "Running")
        spoilt = {**job, "status": {**job["status"], "tasks": [{"replicas": [{}]}]}}
        await cluster.client().replace(where(lost), spoilt, subresource="status")
        await submit(cluster, crew("urgent", of="high"))
        await phase_becomes(cluster, PYTORCH, "urgent", "Running")
        assert not [pod for pod in await _all(cluster) if name_of(pod) == "alone"]

    live(act)


async def _all(cluster: SimCluster) -> list[Object]:
    return list((await cluster.client().list(PODS, Select(namespace="default"))).items)


@pytest.mark.parametrize("turns", range(0, 120, 6))
def test_x14_whenever_the_control_dies_the_more_important_one_runs_and_the_victim_waits_unharmed(turns: int) -> None:
    """Between nomination and marks, between two marks, between status and deletions: the next control goes on."""

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, crew("train", runPolicy={"backoffLimit": 0}))
        await phase_becomes(cluster, PYTORCH, "train", "Running")
        await submit(cluster, crew("urgent", of="high"))
        for _ in range(turns):
            await asyncio.sleep(0.002)
        await cluster.kill_control()
        await asyncio.sleep(5)
        await asyncio.wait_for(cluster.start_control().ready.wait(), PATIENCE_SECONDS)
        await phase_becomes(cluster, PYTORCH, "urgent", "Running")
        await phase_becomes(cluster, PYTORCH, "urgent", "Succeeded")
        again = await phase_becomes(cluster, PYTORCH, "train", "Running")
        assert (again["status"]["attempt"], again["status"]["backoffCount"]) == (1, 0)

    live(act)
