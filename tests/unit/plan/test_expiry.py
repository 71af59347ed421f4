"""Rule ttlSecondsAfterFinished: an ended job goes by itself, when its author wants it to."""

from dataclasses import replace

import pytest

from paceline.model.gang import CleanUp
from paceline.model.job_status import JobStatus, Phase
from paceline.plan.job.decide import decide
from tests.unit.plan.worlds import NOW, after, gang, seen, then

SHORT = gang(2, ttl_seconds=60)
ENDED = {"phase": Phase.SUCCEEDED, "completion_time": NOW}

# Seconds since its end → whether the job goes.
GOES = {
    "stays while its time is not over": (SHORT, 59, False),
    "goes when its time is over": (SHORT, 60, True),
    "goes when its time has long been over": (SHORT, 86_400, True),
    "goes at once when its author gives it no time": (gang(2, ttl_seconds=0), 0, True),
    "stays for ever when nothing is said": (gang(2), 10**9, False),
}


@pytest.mark.parametrize(("crew", "seconds", "goes"), GOES.values(), ids=GOES)
def test_an_ended_job(crew, seconds, goes):
    plan = decide(seen("Succeeded", "Succeeded", of=crew, **ENDED), after(seconds))

    assert plan.deletes_job is goes


@pytest.mark.parametrize("phase", [Phase.SUCCEEDED, Phase.FAILED])
def test_it_goes_however_it_ended(phase):
    world = seen("Succeeded", "Succeeded", of=SHORT, phase=phase, completion_time=NOW)

    assert decide(world, after(60)).deletes_job


def test_somebody_looks_again_when_the_time_is_over():
    world = seen("Succeeded", "Succeeded", of=SHORT, **ENDED)

    assert decide(world, after(1)).wake_at == after(60)


def test_clean_up_comes_first_and_is_not_forgotten():
    crew = gang(2, ttl_seconds=60, clean_up=CleanUp.UNFINISHED)
    world = seen("Succeeded", "Running", of=crew, **ENDED)

    assert decide(world, after(1)).wake_at == after(10)
    cleaning = decide(world, after(10))
    assert (len(cleaning.delete), cleaning.wake_at) == (1, after(60))


def test_the_moment_is_counted_from_the_end_by_the_next_controller_too():
    world = seen("Succeeded", "Succeeded", of=SHORT)
    last = JobStatus.from_wire(decide(world, NOW).status.to_wire())

    assert decide(replace(world, status=last), after(59)).wake_at == after(60)
    assert decide(replace(world, status=last), after(60)).deletes_job


def test_that_it_goes_is_told():
    plan = decide(seen("Succeeded", "Succeeded", of=SHORT, **ENDED), after(60))

    assert [told.reason for told in plan.events] == ["Expired"]
    assert "60 seconds" in plan.events[0].message


def test_a_job_that_has_not_ended_never_goes():
    """X-27"""
    for members in (("Running", "Running"), ("Pending", "Pending"), ("", "")):
        assert not decide(seen(*members, of=SHORT), after(10**6)).deletes_job


def test_a_job_that_is_paused_is_not_ended():
    world = seen("Running", "Running", of=SHORT, is_paused=True)
    plan = decide(then(world, decide(world, NOW)), after(10**6))

    assert not plan.deletes_job
