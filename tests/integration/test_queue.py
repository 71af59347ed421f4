"""The scheduling queue and the age of events, on a simulated cluster, in virtual time."""

import asyncio
from datetime import timedelta

from paceline.apimachinery.meta import Object
from paceline.apimachinery.timestamps import from_wire
from paceline.client.event_recorder import Recorder
from paceline.client.interface import CONFIG_MAPS, EVENTS, Select
from paceline.controllers.event_expiry import EventExpiry
from paceline.errors import NotFound
from paceline.model.retention import EventPolicy
from paceline.model.scheduling_queue import EMPTY, NAME, NAMESPACE, SchedulingQueue, read_queue
from paceline.testing.sim.cluster import SimCluster
from tests.integration.life import phase_becomes
from tests.integration.test_preemption import PYTORCH, crew, live, submit, until, waits

WAITING = 12


async def queue(cluster: SimCluster) -> SchedulingQueue:
    try:
        return read_queue(await cluster.client().get(CONFIG_MAPS, NAMESPACE, NAME))
    except NotFound:
        return EMPTY


async def becomes(cluster: SimCluster, *names: str) -> None:
    async def holds() -> bool:
        return tuple(entry.name for entry in (await queue(cluster)).entries) == names

    await until(holds)


def writes(cluster: SimCluster) -> int:
    """Count the writes of the queue since the cluster began."""
    return sum(record.key.endswith(f"/{NAMESPACE}/{NAME}") for record in cluster.log.since(0))


async def delete(cluster: SimCluster, name: str) -> None:
    await cluster.client().delete(PYTORCH, ("default", name))


def test_x15_the_queue_follows_those_who_wait() -> None:
    async def act(cluster: SimCluster) -> None:
        await submit(cluster, crew("runs"))
        await phase_becomes(cluster, PYTORCH, "runs", "Running")
        # No job has waited yet, so nothing was written.
        assert await queue(cluster) == EMPTY
        assert writes(cluster) == 0
        for name in ("first", "second"):
            await submit(cluster, crew(name))
            await until(lambda name=name: waits(cluster, name))  # type: ignore[misc]
        await becomes(cluster, "first", "second")
        await submit(cluster, crew("huge", replicas=3))
        await submit(cluster, crew("patient", of="patient"))
        await becomes(cluster, "patient", "first", "second")
        await delete(cluster, "runs")
        await phase_becomes(cluster, PYTORCH, "patient", "Running")
        await becomes(cluster, "first", "second")
        for name in ("patient", "first", "second"):
            await delete(cluster, name)
        await becomes(cluster)

    live(act)


def test_a_new_first_one_is_one_write_however_many_wait_behind_it() -> None:
    async def act(cluster: SimCluster) -> None:
        await submit(cluster, crew("runs"))
        await phase_becomes(cluster, PYTORCH, "runs", "Running")
        names = [f"job-{number:02}" for number in range(WAITING)]
        for name in names:
            await submit(cluster, crew(name))
            await until(lambda name=name: waits(cluster, name))  # type: ignore[misc]
        await becomes(cluster, *names)
        earlier_writes = writes(cluster)
        await delete(cluster, "runs")
        await phase_becomes(cluster, PYTORCH, names[0], "Running")
        await becomes(cluster, *names[1:])
        # The second job is first now: its two pods get a new message; those of the others keep theirs.
        behind = [record for record in cluster.log.since(0) if f"/pods/default/{names[-1]}-" in record.key]
        assert 1 <= writes(cluster) - earlier_writes <= 2
        assert len(behind) == 2 * 2
        (last,) = [entry for entry in (await queue(cluster)).entries if entry.name == names[-1]]
        position = (await queue(cluster)).position_of(last.uid)
        assert position is not None
        assert position.position == WAITING - 1

    live(act)


def test_a_new_scheduler_corrects_what_an_earlier_one_has_left() -> None:
    async def act(cluster: SimCluster) -> None:
        await submit(cluster, crew("runs"))
        await phase_becomes(cluster, PYTORCH, "runs", "Running")
        await submit(cluster, crew("later"))
        await becomes(cluster, "later")
        await cluster.kill_control()
        control = cluster.start_control()
        await control.ready.wait()
        await delete(cluster, "later")
        await becomes(cluster)

    live(act)


async def events(cluster: SimCluster) -> list[Object]:
    return list((await cluster.client().list(EVENTS, Select(namespace="default"))).items)


def test_events_are_counted_and_go_when_they_are_old() -> None:
    async def act(cluster: SimCluster) -> None:
        recorder = Recorder(cluster.client(), cluster.clock, component="test")
        about: Object = {"kind": "Pod", "metadata": {"name": "a", "namespace": "default", "uid": "u"}}
        for _ in range(5):
            await recorder.record(about, "BackOff", message="again")
            await asyncio.sleep(60)
        await recorder.record(about, "Once", message="only once")
        first, once = sorted(await events(cluster), key=lambda event: str(event["reason"]))
        assert (first["count"], once["count"]) == (5, 1)
        lasted = timedelta(minutes=4)
        assert from_wire(first["lastTimestamp"]) - from_wire(first["firstTimestamp"]) >= lasted
        # One is seen again, the other one is not.
        expiry = EventExpiry(cluster=cluster.client(), clock=cluster.clock, policy=EventPolicy(age=lasted))
        await expiry.sweep()
        assert len(await events(cluster)) == 2
        await asyncio.sleep(lasted.total_seconds())
        await recorder.record(about, "BackOff", message="again")
        await asyncio.sleep(1)
        await expiry.sweep()
        assert [(event["reason"], event["count"]) for event in await events(cluster)] == [("BackOff", 6)]

    live(act)


def test_of_too_many_events_the_latest_stay() -> None:
    async def act(cluster: SimCluster) -> None:
        recorder = Recorder(cluster.client(), cluster.clock, component="test")
        for number in range(30):
            about: Object = {"kind": "Pod", "metadata": {"name": f"pod-{number:02}", "namespace": "default"}}
            await recorder.record(about, "Told", message="something")
            await asyncio.sleep(1)
        expiry = EventExpiry(cluster=cluster.client(), clock=cluster.clock, policy=EventPolicy(events=10))
        await expiry.sweep()
        names = sorted(event["involvedObject"]["name"] for event in await events(cluster))
        assert names == [f"pod-{number}" for number in range(20, 30)]
        await expiry.sweep()
        assert len(await events(cluster)) == 10

    live(act)
