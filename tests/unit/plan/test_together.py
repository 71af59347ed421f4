"""Who is placed together: all that begin together, whatever tries they had; who comes back to others goes alone."""

from dataclasses import replace

import pytest

from paceline.model.job_status import JobStatus, Phase
from paceline.plan.job.decide import decide
from paceline.plan.job.snapshot import Disruption
from tests.unit.plan.worlds import GANG, NOW, REPLICA, after, attempt_of, gang, numbers, obeyed, places, seen, then

A, B, C = places(3)
RUNNING = {"phase": Phase.RUNNING, "start_time": NOW, "running_time": NOW}
# One member has come back alone twice, and one was given up once: no two have the same number of tries.
UNEVEN = {"attempts": {"worker-1": 2, "worker-2": 1}, "restarts": {"worker-1": 2}}
EMPTY = ("", "", "")


def crew(scope=REPLICA, **rules):
    return gang(3, scope=scope, **{"success": (), **rules})


def made(plan):
    """Number and gang of what a plan makes, by place."""
    return {str(new.place): (new.attempt, new.gang_size) for new in plan.create}


def all_at(attempt, size=3):
    return {str(place): (attempt, size) for place in (A, B, C)}


def marked(world, *going):
    mark = Disruption(reason="PreemptionByScheduler", message="preempted by a pod of higher priority")
    pods = (replace(pod, disruption=mark) for pod in world.pods if pod.place in going)
    return replace(world, pods=(*(each for each in world.pods if each.place not in going), *pods))


@pytest.mark.parametrize("scope", [GANG, REPLICA])
def test_a_first_try_is_placed_together(scope):
    assert made(decide(seen(of=crew(scope)), NOW)) == all_at(0)


@pytest.mark.parametrize("wish", ["is_paused", "is_suspended"])
@pytest.mark.parametrize("scope", [GANG, REPLICA])
def test_a_job_that_was_on_hold_comes_back_as_a_gang(scope, wish):
    uneven = UNEVEN if scope is REPLICA else {}
    world = seen("Running", "Running", "Succeeded", of=crew(scope), **{wish: True}, **RUNNING, **uneven)
    held = decide(world, NOW)
    back = decide(then(world, held, *EMPTY, **{wish: False}), after(60))
    plan = decide(then(world, back, *EMPTY, **{wish: False}), after(60))

    assert made(plan) == all_at(3 if uneven else 1)
    assert (back.status.attempt, back.status.resumes, back.status.backoff_count) == (1, 1, 2 if uneven else 0)


def test_so_does_one_that_somebody_restarts():
    world = seen("Running", "Running", "Running", of=crew(), restart_request="now", **RUNNING, **UNEVEN)
    begun = decide(world, NOW)

    assert made(decide(then(world, begun, *EMPTY), after(1))) == all_at(3)


def test_so_does_one_that_gave_way():
    world = marked(seen("Running", "Running", "Running", of=crew(), **RUNNING, **UNEVEN), A, B, C)
    gone = decide(world, NOW)

    assert made(decide(then(world, gone, *EMPTY), after(1))) == all_at(3)
    assert (gone.status.attempt, gone.status.backoff_count) == (0, 2)


def test_who_is_done_does_not_come_back_and_is_not_waited_for():
    world = marked(seen("Running", "Succeeded", "Running", of=crew(), **RUNNING, **UNEVEN), A, C)
    gone = decide(world, NOW)
    plan = decide(obeyed(world, gone), after(1))

    # Nobody who waits has a number that the one who is done has had: its pod makes no gang complete.
    assert made(plan) == {"worker-0": (3, 2), "worker-2": (3, 2)}


@pytest.mark.parametrize("is_made", [False, True])
def test_who_is_preempted_a_moment_later_joins_those_who_wait_already(is_made):
    """The scheduler marks one pod after the other, and a job may be looked at in between."""
    world = marked(seen("Running", "Running", "Running", of=crew(), **RUNNING), A)
    world = obeyed(world, decide(world, NOW))
    if is_made:
        alone = decide(world, after(1))
        assert made(alone) == {"worker-0": (1, 1)}
        world = obeyed(world, alone)
    gone = decide(marked(world, B, C), after(2))
    plan = decide(obeyed(world, gone), after(3))

    assert {name: each for name, each in all_at(1).items() if name != "worker-0" or not is_made} == made(plan)


def test_who_comes_back_to_others_that_run_waits_for_nobody():
    world = seen("Running", "Failed 1", "Failed 1", of=crew(), **RUNNING)
    counted = decide(world, NOW)

    assert made(decide(then(world, counted, "Running", "", ""), after(9))) == {"worker-1": (1, 1), "worker-2": (1, 1)}


def test_who_comes_back_when_nobody_runs_comes_with_all_others_that_do():
    world = seen("Failed 1", "Failed 1", "Succeeded", of=crew(failure=()), **RUNNING)
    counted = decide(world, NOW)

    assert made(decide(then(world, counted, "", "", "Succeeded"), after(9))) == {
        "worker-0": (1, 2),
        "worker-1": (1, 2),
    }


def test_elastic_members_begin_again_with_as_few_as_are_enough():
    of = crew(is_elastic=True, least=2)
    world = seen("Failed 1", "Running", "Running", of=of, **RUNNING, **UNEVEN)
    counted = decide(world, NOW)

    assert made(decide(then(world, counted, *EMPTY), after(9))) == all_at(3, size=2)


def test_no_number_comes_twice():
    """Names of pods are made of them: what was seen once is never made again."""
    world = seen("Running", "Running", "Running", of=crew(), restart_request="now", **RUNNING, **UNEVEN)
    before = {place: attempt_of(world.status, place) for place in (A, B, C)}
    status = JobStatus.from_wire(decide(world, NOW).status.to_wire())

    assert all(attempt_of(status, place) > number for place, number in before.items())


def test_a_job_whose_status_an_older_version_wrote_keeps_its_pods():
    """It has no records of replicas; the pods tell their attempts."""
    running = seen("Running", "Running", "Running", of=crew(), attempt=2, **RUNNING)
    old = replace(running, status=running.status.but(replicas=(), tasks=()))
    plan = decide(old, NOW)

    assert (plan.create, plan.delete, numbers(plan.status)) == ((), (), {"worker-0": 2, "worker-1": 2, "worker-2": 2})
    assert made(decide(then(old, decide(replace(old, restart_request="now"), NOW), *EMPTY), after(1))) == all_at(3)


def test_x13_a_job_that_nobody_schedules_as_a_whole_says_so_once():
    world = replace(seen("", "", ""), starts_singly=True)
    first = decide(world, NOW)
    second = decide(obeyed(world, first), after(1))
    alone = decide(replace(seen("", of=gang(1)), starts_singly=True), NOW)

    assert [event.reason for event in (*first.events, *second.events)].count("StartsSingly") == 1
    assert "StartsSingly" not in [event.reason for event in alone.events]
    assert "StartsSingly" not in [event.reason for event in decide(seen("", "", ""), NOW).events]
