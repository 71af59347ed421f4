"""Rule suspend: a queueing system (Kueue) decides when a job may have pods."""

from dataclasses import replace

import pytest

from paceline.model.job_status import ConditionType, JobStatus, Phase
from paceline.plan.job.decide import decide
from tests.unit.plan.worlds import NOW, after, gang, seen, then

RUNNING = {"phase": Phase.RUNNING, "start_time": NOW}
HELD = {"is_suspended": True}


def suspended(status):
    return status.condition(ConditionType.SUSPENDED)


# What is seen → pods to create, pods to delete.
CASES = {
    "made suspended makes nothing": (("", ""), {}, 0, 0),
    "that runs gives its pods back": (("Running", "Running"), RUNNING, 0, 2),
    "that waits for nodes gives its pods back": (("Pending", "Pending"), {}, 0, 2),
    "keeps ended pods for their logs": (("Running", "Succeeded"), RUNNING, 0, 1),
    "counts no restart for a failed member": (("Running", "Failed"), RUNNING, 0, 1),
}


@pytest.mark.parametrize(("members", "status", "creates", "deletes"), CASES.values(), ids=CASES)
def test_a_suspended_job(members, status, creates, deletes):
    plan = decide(seen(*members, **HELD, **status), NOW)

    assert (len(plan.create), len(plan.delete)) == (creates, deletes)
    assert (plan.status.phase, plan.status.backoff_count) == (Phase.PENDING, 0)
    assert suspended(plan.status).status
    assert (suspended(plan.status).reason, plan.status.condition(ConditionType.RUNNING).status) == (
        "JobSuspended",
        False,
    )
    assert "spec.suspend" in plan.status.waiting


def test_success_before_the_suspension_is_success():
    assert decide(seen("Succeeded", "Running", **HELD), NOW).status.phase is Phase.SUCCEEDED


def test_an_ended_job_is_not_suspended():
    plan = decide(seen("Succeeded", "Succeeded", phase=Phase.SUCCEEDED, completion_time=NOW, **HELD), NOW)

    assert suspended(plan.status) is None


def test_pods_that_end_while_it_is_suspended_decide_nothing():
    world = seen("Running", "Running", **HELD, **RUNNING)
    held = decide(world, NOW)
    for members in (("Succeeded", "Running"), ("Failed", "Failed")):
        later = decide(then(world, held, *members), after(5))

        assert later.status.phase is Phase.PENDING
        assert suspended(later.status).status


def test_a_job_that_may_start_begins_its_first_try():
    world = seen("", "", **HELD)
    held = decide(world, NOW)
    free = then(world, held, is_suspended=False)
    started = decide(free, after(60))
    made = decide(then(free, started), after(60))

    assert (started.status.phase, started.status.attempt, started.status.resumes) == (Phase.PENDING, 0, 0)
    assert not suspended(started.status).status
    assert suspended(started.status).reason == "JobResumed"
    assert [new.attempt for new in made.create] == [0, 0]


def test_a_job_that_comes_back_begins_its_next_try_and_goes_on_as_after_a_pause():
    world = seen("Running", "Running", **HELD, **RUNNING)
    held = decide(world, NOW)
    free = then(world, held, is_suspended=False)
    started = decide(free, after(60))
    made = decide(then(free, started), after(61))
    running = decide(then(free, made, "Running", "Running"), after(62))

    assert (started.status.phase, started.status.resumes) == (Phase.RESUMING, 1)
    assert [new.attempt for new in made.create] == [1, 1]
    assert (running.status.phase, running.status.backoff_count) == (Phase.RUNNING, 0)
    assert running.status.start_time == after(62)


def test_pause_and_suspend_together_make_no_pod_until_both_are_lifted():
    world = seen("Running", "Running", is_paused=True, **HELD, **RUNNING)
    first = decide(world, NOW)
    unpaused = then(world, first, is_paused=False)
    second = decide(unpaused, after(1))
    third = decide(then(unpaused, second), after(2))
    free = then(unpaused, third, is_suspended=False)
    fourth = decide(free, after(3))

    assert [plan.create for plan in (first, second, third, fourth)] == [()] * 4
    assert first.status.phase is Phase.PAUSED
    assert suspended(third.status).status
    assert len(decide(then(free, fourth), after(4)).create) == 2


def test_a_suspended_job_that_is_paused_makes_no_pod_when_it_is_let_go():
    world = seen("", "", **HELD)
    held = decide(world, NOW)
    free = replace(then(world, held), is_suspended=False, is_paused=True)
    started = decide(free, after(1))

    assert started.create == ()
    assert decide(replace(free, status=started.status), after(2)).status.phase is Phase.PAUSED


def test_each_turn_is_told_once():
    world = seen("Running", "Running", **HELD, **RUNNING)
    held = decide(world, NOW)
    quiet = decide(then(world, held), after(1))
    back = decide(then(world, quiet, is_suspended=False), after(2))

    assert [told.reason for told in held.events][-1] == "Suspended"
    assert quiet.events == ()
    assert [told.reason for told in back.events] == ["Resuming"]


def test_the_next_controller_knows_that_it_is_suspended():
    world = seen("", "", of=gang(2), **HELD)
    last = JobStatus.from_wire(decide(world, NOW).status.to_wire())
    plan = decide(replace(world, status=last), after(9))

    assert (plan.create, plan.events, plan.status) == ((), (), last)
