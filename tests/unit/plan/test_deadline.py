"""Rules activeDeadlineSeconds and startingDeadlineSeconds: a job's time to be done, and to have begun."""

from dataclasses import replace

import pytest

from paceline.model.gang import CleanUp
from paceline.model.job_status import ConditionType, JobStatus, Phase
from paceline.plan.job.decide import decide
from tests.unit.plan.worlds import NOW, after, gang, places, pod, seen, then

A, B = places(2)
LATE = gang(2, starting_deadline_seconds=30)
SHORT = gang(2, active_deadline_seconds=100)
F, R, P = Phase.FAILED, Phase.RUNNING, Phase.PENDING

# Members, seconds since the job was made → phase.
STARTS = {
    "waits while it has time": (("Running", "Pending"), 29, P),
    "fails when a member does not run in time": (("Running", "Pending"), 30, F),
    "fails when no pod could be made": (("", ""), 30, F),
    "runs when all run at the last moment": (("Running", "Running"), 30, R),
    "runs when a member has already ended well": (("Running", "Succeeded"), 30, R),
}


@pytest.mark.parametrize(("members", "seconds", "phase"), STARTS.values(), ids=STARTS)
def test_a_job_with_a_starting_deadline(members, seconds, phase):
    assert decide(seen(*members, of=LATE), after(seconds)).status.phase is phase


def test_somebody_looks_again_when_the_job_should_have_begun():
    assert decide(seen("Running", "Pending", of=LATE), after(1)).wake_at == after(30)
    assert decide(seen("Running", "Running", of=LATE), after(1)).wake_at is None


def test_the_reason_says_what_lacked():
    stuck = pod(B, "Pending Unschedulable", message="1 Insufficient nvidia.com/gpu (2 asked, 0 of 0 free)")
    world = replace(seen("Running", "", of=LATE), pods=(pod(A, "Running"), stuck))
    plan = decide(world, after(30))
    failed = plan.status.condition(ConditionType.FAILED)

    assert failed.reason == "StartingDeadlineExceeded"
    assert failed.message == (
        "1 of 2 pods ran within 30 seconds: pod demo-12345-worker-1: "
        "1 Insufficient nvidia.com/gpu (2 asked, 0 of 0 free)"
    )
    assert (plan.events[-1].reason, plan.events[-1].message) == (failed.reason, failed.message)


def test_members_that_do_not_say_why_they_wait_are_named():
    plan = decide(seen("Running", "Pending", of=LATE), after(30))

    assert plan.events[-1].message == "1 of 2 pods ran within 30 seconds; not yet: worker-1"


def test_a_job_that_has_run_once_may_take_its_time_after_a_restart():
    world = seen("Running", "Running", of=LATE)
    running = decide(world, after(1))
    again = decide(then(world, running, "Running", "Failed"), after(20))
    later = decide(then(world, again, "Pending", "Pending"), after(500))

    assert running.status.running_time == after(1)
    assert later.status.phase is P


def test_a_job_that_has_run_once_may_take_its_time_when_somebody_restarts_it():
    world = seen("Running", "Running", of=LATE)
    running = decide(world, after(1))
    wish = {"restart_request": "now"}
    anew = decide(then(world, running, "Running", "Running", **wish), after(3600))

    assert anew.status.attempt == 1
    assert decide(then(world, anew, "Pending", "Pending", **wish), after(3601)).status.phase is not F


def test_a_job_that_has_run_once_may_take_its_time_in_another_size():
    elastic = replace(LATE, is_elastic=True)
    world = seen("Running", "Running", of=elastic)
    running = decide(world, after(1))
    smaller = replace(elastic, members=elastic.members[:1])
    anew = decide(then(world, running, "Running", of=smaller), after(3600))

    assert anew.status.attempt == 1
    assert decide(then(world, anew, "Pending", of=smaller), after(3601)).status.phase is not F


def test_a_job_that_fails_before_it_ever_ran_has_no_more_time():
    world = seen("Pending", "Failed", of=LATE)
    again = decide(world, after(5))

    assert again.status.phase is P
    assert decide(then(world, again, "Pending", "Pending"), after(30)).status.phase is F


def test_a_late_start_leaves_no_pod_behind_whatever_the_policy():
    kept = replace(LATE, clean_up=CleanUp.NONE)
    plan = decide(seen("Running", "Pending", of=kept), after(30))

    assert plan.delete == ("demo-12345-worker-0", "demo-12345-worker-1")


@pytest.mark.parametrize("hold", ["is_paused", "is_suspended"])
def test_after_a_pause_the_time_to_begin_starts_anew(hold):
    world = seen("", "", of=LATE, **{hold: True})
    held = decide(world, NOW)
    back = decide(then(world, held, **{hold: False}), after(600))
    waiting = decide(then(world, back, "Pending", "Pending", **{hold: False}), after(610))

    assert decide(then(world, held), after(500)).status.phase is not F
    assert (waiting.status.phase is F, waiting.wake_at) == (False, after(630))
    late = decide(then(world, waiting, "Pending", "Pending", **{hold: False}), after(630))
    assert late.status.phase is F


@pytest.mark.parametrize("hold", ["is_paused", "is_suspended"])
def test_a_job_that_ran_before_the_pause_must_begin_in_time_after_it(hold):
    world = seen("Running", "Running", of=LATE)
    running = decide(world, after(1))
    held = decide(then(world, running, "Running", "Running", **{hold: True}), after(100))
    back = decide(then(world, held), after(600))

    assert decide(then(world, back, "Pending", "Pending"), after(629)).status.phase is not F
    assert decide(then(world, back, "Pending", "Pending"), after(630)).status.phase is F


@pytest.mark.parametrize("hold", ["is_paused", "is_suspended"])
def test_a_job_that_was_made_on_hold_is_not_late_though_nobody_looked_in_time(hold):
    """The controller was away: the time to begin is counted from the end of the hold."""
    world = seen(of=LATE, **{hold: True})
    held = decide(world, after(1000))
    back = decide(then(world, held, **{hold: False}), after(2000))

    assert held.status.phase is (Phase.PAUSED if hold == "is_paused" else Phase.PENDING)
    assert decide(then(world, back, **{hold: False}), after(2029)).status.phase is not Phase.FAILED
    assert decide(then(world, back, **{hold: False}), after(2030)).status.phase is Phase.FAILED


def test_the_next_controller_has_the_same_moment():
    first = decide(seen("Pending", "Pending", of=LATE), after(3))
    world = seen("Pending", "Pending", of=LATE, status=JobStatus.from_wire(first.status.to_wire()))

    assert decide(world, after(5)).wake_at == after(30)


def test_a_pause_before_the_start_does_not_lengthen_the_run():
    """The clock of activeDeadlineSeconds stops for pauses; before the start it does not run."""
    world = seen("", "", of=SHORT, is_paused=True)
    paused = decide(world, NOW)
    resumed = decide(then(world, paused, is_paused=False), after(3600))
    going = then(world, resumed, "Running", "Running", is_paused=False)
    started = decide(going, after(3610))

    assert resumed.status.paused_seconds == 0
    assert started.wake_at == after(3710)


def test_a_suspended_job_has_its_whole_time_again():
    world = seen("Running", "Running", of=SHORT, phase=R, start_time=NOW)
    held = decide(replace(world, is_suspended=True), after(90))
    back = decide(then(world, held, is_suspended=False), after(500))
    started = decide(then(world, back, "Running", "Running"), after(510))

    assert held.status.start_time is None
    assert (started.status.start_time, started.wake_at) == (after(510), after(610))
