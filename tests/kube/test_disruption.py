"""Pods that a cluster takes away, as its eviction API, taint manager, pod collector and kubelets do it."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from paceline.apimachinery.meta import Object, key_of, name_of, uid_of
from paceline.apimachinery.timestamps import to_wire
from paceline.client.interface import NODES, PODS
from paceline.model import well_known_labels
from tests.kube.player import attempt_of, ends_well, place_of
from tests.kube.stage import OpenTransport, Stage, live, where_of
from tests.unit.kinds.manifests import pytorch

Disrupt = Callable[[Stage, Object], Coroutine[Any, Any, None]]
# A restart that was counted would end the job.
NO_RESTARTS = {"runPolicy": {"backoffLimit": 0}}


async def drain(stage: Stage, pod: Object) -> None:
    metadata = {"name": name_of(pod), "namespace": stage.namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    await stage.people.post(PODS.path(*key_of(pod), "eviction"), eviction)


async def mark(stage: Stage, pod: Object, disruption: str, **status: str) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": disruption, "message": "as the cluster says"}
    conditions = [*pod["status"].get("conditions", ()), condition]
    patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": conditions, **status}}
    await stage.people.patch(PODS, key_of(pod), patch, subresource="status")


async def taint(stage: Stage, pod: Object) -> None:
    await mark(stage, pod, "DeletionByTaintManager")
    await stage.people.delete(PODS, key_of(pod), {"preconditions": {"uid": uid_of(pod)}})


async def collect(stage: Stage, pod: Object) -> None:
    await mark(stage, pod, "DeletionByPodGC", phase="Failed")
    await stage.people.delete(PODS, key_of(pod), {"gracePeriodSeconds": 0})


async def shut_down(stage: Stage, pod: Object) -> None:
    await mark(stage, pod, "TerminationByKubelet", phase="Failed", reason="Terminated", message="node shutdown")


async def is_at(stage: Stage, attempt: int) -> None:
    """Wait until both members run at an attempt, and nothing else does."""

    async def look() -> bool:
        return [attempt_of(pod) for pod in stage.player.running()] == [attempt, attempt]

    await stage.until(
        look, lambda: f"attempt {attempt} runs: {[name_of(pod) for pod in stage.player.live()]}", hurry=0.1
    )


@pytest.mark.parametrize("disrupt", [drain, taint, collect, shut_down])
def test_pods_that_the_cluster_takes_away_come_back_without_a_counted_restart(
    opens: OpenTransport, disrupt: Disrupt
) -> None:
    async def act(stage: Stage) -> None:
        job = await stage.submit(pytorch(**NO_RESTARTS))
        for attempt in range(3):
            await is_at(stage, attempt)
            await stage.becomes(job, "Running")
            (pod,) = [pod for pod in stage.player.running() if place_of(pod) == "worker-1"]
            await disrupt(stage, pod)
        await is_at(stage, 3)
        stage.play(ends_well(1))
        over = await stage.becomes(job, "Succeeded", hurry=0.1)
        assert (over["status"]["backoffCount"], over["status"]["disruptions"]) == (0, 3)
        assert (await stage.reasons(job)).count("Disrupted") == 3
        assert set(stage.player.most.values()) == {1}, "two attempts of a replica ran at once"

    live(opens, act)


async def node_is(stage: Stage, status: str) -> None:
    """Write the state of the played node, as the controller of node life cycles does."""
    ready = {"type": "Ready", "status": status, "reason": "NodeStatusUnknown"}
    moment = to_wire(stage.world.clock.now())
    condition = {**ready, "lastHeartbeatTime": moment, "lastTransitionTime": moment}
    patch = {"status": {"conditions": [condition]}}
    await stage.people.patch(NODES, ("", stage.player.node), patch, subresource="status")


async def dead_node(stage: Stage, job: Object) -> None:
    """Let the node of a running job die: its pods are deleted, and none of them ends."""
    stage.player.node = f"dead-{stage.namespace}"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": stage.player.node}}
    await stage.people.create(NODES, node)
    await node_is(stage, "True")
    await is_at(stage, 0)
    await stage.becomes(job, "Running")
    stage.player.is_there = False
    await node_is(stage, "Unknown")
    for pod in stage.player.running():
        await taint(stage, pod)


def test_the_members_of_a_dead_node_come_back_within_a_minute_and_no_replica_runs_twice(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        job = await stage.submit(pytorch(**NO_RESTARTS))
        await dead_node(stage, job)
        deleted, uids = stage.world.clock.now(), {uid_of(pod) for pod in stage.player.running()}
        stage.player.node = f"alive-{stage.namespace}"

        async def is_back() -> bool:
            live = {uid_of(pod) for pod in stage.player.live()}
            return len(live) == 2 and not live & uids

        await stage.until(is_back, hurry=0.25)
        assert (stage.world.clock.now() - deleted).total_seconds() < 60
        await is_at(stage, 1)
        now = await stage.becomes(job, "Running")
        assert (now["status"]["backoffCount"], now["status"]["failure"]["reason"]) == (0, "NodeLost")
        assert "NodeLost" in await stage.reasons(job)
        assert set(stage.player.most.values()) == {1}, "two attempts of a replica were there at once"

    live(opens, act)


def test_a_job_that_waits_for_its_nodes_is_started_again_when_the_node_is_deleted(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        job = pytorch(**NO_RESTARTS)
        job = await stage.submit(job)
        note = {"metadata": {"annotations": {well_known_labels.NODE_LOST: "Wait"}}}
        await stage.people.patch(where_of(job), key_of(job), note)
        await dead_node(stage, job)

        async def waits() -> bool:
            return "may still run on node" in (await stage.read(job))["status"].get("waiting", "")

        await stage.until(waits, hurry=0.25)
        assert len(stage.player.running()) == 2, "a pod was given up"
        await stage.people.delete(NODES, ("", stage.player.node))
        stage.player.node = f"alive-{stage.namespace}"
        await is_at(stage, 1)

    live(opens, act)
