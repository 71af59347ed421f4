"""Promises about the ends of objects and what hangs on them: finalizers, pods on nodes, owners, events."""

import asyncio
from contextlib import aclosing

import pytest

from paceline.apimachinery.meta import is_deleting, key_of, name_of, owned_by, revision_of, uid_of
from paceline.client.event_recorder import Recorder
from paceline.client.interface import CONFIG_MAPS, EVENTS, PODS, Change
from paceline.controllers.gc.garbage_collector import GarbageCollector
from paceline.errors import Conflict
from paceline.testing.contract.target import DEADLINE_SECONDS, JOBS, Promise, Subject, assert_absent
from paceline.testing.sim.effects import SimChance, SimClock


async def only_the_object_that_was_meant_is_deleted(s: Subject) -> None:
    created = await s.make("a")

    with pytest.raises(Conflict):
        await s.cluster.delete(CONFIG_MAPS, key_of(created), {"preconditions": {"uid": "somebody-else"}})
    assert created == await s.cluster.get(CONFIG_MAPS, *key_of(created))
    await s.cluster.delete(CONFIG_MAPS, key_of(created), {"preconditions": {"uid": uid_of(created)}})
    await assert_absent(s, CONFIG_MAPS, "a")


async def a_finalizer_holds_a_deletion_up(s: Subject) -> None:
    created = await s.make("a", finalizers=["paceline.dev/contract"])
    await s.cluster.delete(CONFIG_MAPS, key_of(created))
    going = await s.cluster.get(CONFIG_MAPS, *key_of(created))
    since = revision_of(going)
    await s.cluster.patch(CONFIG_MAPS, key_of(created), {"metadata": {"finalizers": None}})

    assert is_deleting(going)
    assert uid_of(going) == uid_of(created)
    await assert_absent(s, CONFIG_MAPS, "a")
    assert await s.told_since(since, s.select()) == [("DELETED", "a")]


async def a_pod_is_bound_to_a_node_once(s: Subject) -> None:
    pod = await s.cluster.create(PODS, s.pod("demo"))
    await _bind(s, "demo", "node-1")

    bound = await s.cluster.get(PODS, *key_of(pod))
    assert bound["spec"]["nodeName"] == "node-1"
    scheduled = [entry["status"] for entry in bound["status"]["conditions"] if entry["type"] == "PodScheduled"]
    assert scheduled == ["True"]
    with pytest.raises(Conflict, match="already assigned to node"):
        await _bind(s, "demo", "node-2")


async def a_pod_on_a_node_stays_until_the_node_lets_it_go(s: Subject) -> None:
    pod = await s.cluster.create(PODS, s.pod("demo"))
    await _bind(s, "demo", "node-1")
    await s.cluster.delete(PODS, key_of(pod), {"gracePeriodSeconds": 7})
    going = await s.cluster.get(PODS, *key_of(pod))

    assert is_deleting(going)
    assert going["metadata"]["deletionGracePeriodSeconds"] == 7
    await s.cluster.delete(PODS, key_of(pod), {"gracePeriodSeconds": 0, "preconditions": {"uid": uid_of(pod)}})
    await assert_absent(s, PODS, "demo")


async def a_pod_without_a_node_goes_at_once(s: Subject) -> None:
    pod = await s.cluster.create(PODS, s.pod("demo"))
    await s.cluster.delete(PODS, key_of(pod))

    await assert_absent(s, PODS, "demo")


async def what_a_gone_owner_owned_goes_too(s: Subject) -> None:
    """A server alone only keeps the reference; our owner controller acts on it, on either cluster."""
    owner = await s.cluster.create(JOBS, s.job("demo"))
    reference = owned_by(owner)
    other_owner = await s.make("kept")
    owned = await s.make("owned", ownerReferences=[reference])
    recorder = Recorder(s.cluster, SimClock(), component="contract")
    owners = GarbageCollector(cluster=s.cluster, chance=SimChance(), recorder=recorder)

    assert owned["metadata"]["ownerReferences"] == [reference]
    async with asyncio.timeout(DEADLINE_SECONDS), asyncio.TaskGroup() as group:
        synced = asyncio.Event()
        working = group.create_task(owners.run(synced))
        await synced.wait()
        since = await s.now()
        await s.cluster.delete(JOBS, key_of(owner), {"propagationPolicy": "Background"})
        async with aclosing(s.cluster.watch(CONFIG_MAPS, s.select(), since=since)) as events:
            event = await anext(events)
        working.cancel()
    assert (event.change, name_of(event.object)) == (Change.DELETED, "owned")
    assert other_owner == await s.cluster.get(CONFIG_MAPS, *key_of(other_owner))


async def the_same_event_again_is_counted(s: Subject) -> None:
    about = await s.cluster.create(JOBS, s.job("demo"))
    clock = SimClock()
    for _ in range(2):
        # A recorder each time: the count survives a restart.
        recorder = Recorder(s.cluster, clock, component="contract")
        await recorder.record(about, "GangStarting", message="2 pods", is_warning=False)
        clock.advance(60)
    await recorder.record(about, "GangStarting", message="3 pods", is_warning=True)

    events = (await s.cluster.list(EVENTS, s.select(fields=f"involvedObject.uid={uid_of(about)}"))).items
    rows = sorted((event["message"], event["type"], event["count"]) for event in events)
    assert rows == [("2 pods", "Normal", 2), ("3 pods", "Warning", 1)]
    first = next(event for event in events if event["count"] == 2)
    assert (first["firstTimestamp"], first["lastTimestamp"]) == ("2030-01-01T00:00:00Z", "2030-01-01T00:01:00Z")


async def an_event_that_cannot_be_stored_stops_nobody(s: Subject) -> None:
    about = s.job("demo")
    about["metadata"] |= {"namespace": "no-such-namespace", "uid": "none"}

    await Recorder(s.cluster, SimClock(), component="contract").record(about, "Lost", message="nobody reads this")


async def _bind(s: Subject, pod: str, node: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    meta = {"namespace": s.namespace, "name": pod}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
    await s.cluster.post(PODS.path(s.namespace, pod, "binding"), binding)


PROMISES: tuple[Promise, ...] = (
    only_the_object_that_was_meant_is_deleted,
    a_finalizer_holds_a_deletion_up,
    a_pod_is_bound_to_a_node_once,
    a_pod_on_a_node_stays_until_the_node_lets_it_go,
    a_pod_without_a_node_goes_at_once,
    what_a_gone_owner_owned_goes_too,
    the_same_event_again_is_counted,
    an_event_that_cannot_be_stored_stops_nobody,
)
