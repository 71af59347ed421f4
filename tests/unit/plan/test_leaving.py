"""Who ends first when somebody stops a job."""

from dataclasses import replace
from datetime import timedelta

from paceline.model.gang import ReplicaId
from paceline.model.job_status import Phase
from paceline.plan.job.decide import decide
from paceline.plan.job.snapshot import PodPhase
from paceline.plan.job.suspend import PATIENCE
from tests.unit.plan.worlds import NOW, after, gang, pod, seen

WORKERS = ("demo-12345-worker-0", "demo-12345-worker-1")
SERVER = "demo-12345-ps-0"
PAUSED = {"phase": Phase.PAUSED, "is_paused": True}


def world(*words, server="Running", **status):
    """Two workers and a parameter server, which is written first."""
    crew = gang(2)
    served = replace(crew, members=(replace(crew.members[0], place=ReplicaId("ps", 0)), *crew.members), servers=("ps",))
    return seen(server, *words, of=served, **status)


def leaving(found, name, *, ends_at):
    pods = tuple(replace(each, is_deleting=True, ends_at=ends_at) if each.name == name else each for each in found.pods)
    return replace(found, pods=pods)


def test_d07_workers_end_before_the_servers_they_talk_to():
    first = decide(world("Running", "Running", phase=Phase.RUNNING, is_paused=True), NOW)
    then = decide(world("Failed 143", "Running", **PAUSED), after(1))
    last = decide(world("Failed 143", "Succeeded", **PAUSED), after(2))

    assert first.delete == WORKERS
    assert then.delete == WORKERS[1:]
    assert last.delete == (SERVER,)


def test_d07_a_worker_that_is_still_ending_is_waited_for():
    found = leaving(world("Failed 143", "Running", **PAUSED), WORKERS[1], ends_at=after(30))

    plan = decide(found, NOW)

    assert plan.delete == ()
    assert plan.wake_at == after(30) + PATIENCE


def test_a_worker_on_a_node_that_is_away_is_not_waited_for_for_ever():
    found = leaving(world("Failed 143", "Running", **PAUSED), WORKERS[1], ends_at=NOW - PATIENCE)

    assert decide(found, NOW).delete == (SERVER,)
    assert decide(found, NOW - timedelta(seconds=1)).delete == ()


def test_a_suspended_job_ends_in_the_same_order():
    plan = decide(world("Running", "Running", phase=Phase.RUNNING, is_suspended=True), NOW)

    assert plan.delete == WORKERS


def test_without_servers_all_end_at_once():
    found = seen("Running", "Running", phase=Phase.RUNNING, is_paused=True)
    busy = leaving(found, WORKERS[0], ends_at=after(5))

    assert (decide(found, NOW).delete, decide(found, NOW).wake_at) == (WORKERS, None)
    assert (decide(busy, NOW).delete, decide(busy, NOW).wake_at) == (WORKERS[1:], None)


def test_a_server_that_waits_for_its_node_alone_is_ended_too():
    alone = replace(world("Succeeded", "Succeeded", **PAUSED), pods=(pod(ReplicaId("ps", 0), "Pending"),))

    plan = decide(alone, NOW)

    assert alone.pods[0].phase is PodPhase.PENDING
    assert plan.delete == (SERVER,)
