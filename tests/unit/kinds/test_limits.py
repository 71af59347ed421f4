"""The times of a job's life and its suspension are the same for every kind of job that runs."""

import pytest

from paceline.kinds import registry
from tests.unit.kinds.manifests import (
    colossalai,
    deepspeed,
    gang_of,
    generic,
    mpi,
    one_fault,
    pytorch,
    tensorflow,
    xgboost,
)

JOBS = {make.__name__: make for make in (pytorch, generic, tensorflow, xgboost, mpi, deepspeed, colossalai)}
every_job = pytest.mark.parametrize("make", JOBS.values(), ids=JOBS)


@every_job
def test_limits_are_rules_of_the_gang(make):
    policy = {
        "activeDeadlineSeconds": 10,
        "startingDeadlineSeconds": 20,
        "stallSeconds": 30,
        "ttlSecondsAfterFinished": 0,
    }
    gang = gang_of(make(runPolicy=policy))

    assert (gang.active_deadline_seconds, gang.starting_deadline_seconds, gang.ttl_seconds) == (10, 20, 0)
    assert gang.stall_seconds == 30


@every_job
def test_without_limits_nothing_ends_by_itself(make):
    for job in (make(), make(runPolicy={})):
        gang = gang_of(job)

        assert (gang.active_deadline_seconds, gang.starting_deadline_seconds, gang.ttl_seconds) == (None, None, None)


@every_job
def test_a_limit_that_makes_no_sense_is_refused(make):
    for field, value in (
        ("activeDeadlineSeconds", 0),
        ("startingDeadlineSeconds", 0),
        ("stallSeconds", 0),
        ("ttlSecondsAfterFinished", -1),
    ):
        assert one_fault(make(runPolicy={field: value})).startswith(f"spec.runPolicy.{field}: {value} is not allowed")


@every_job
def test_who_is_suspended_says_so(make):
    assert registry.is_suspended(make(suspend=True))
    assert not registry.is_suspended(make(suspend=False))
    assert not registry.is_suspended(make())
    assert registry.faults(make(suspend=True)) == ()


@every_job
def test_suspension_and_time_to_stay_may_change(make):
    kind = registry.kind_of(make())

    assert {"suspend", "runPolicy.ttlSecondsAfterFinished"} <= set(kind.mutable)


def test_a_generic_job_has_its_clean_up_policy_at_the_top():
    """T9k has it there, and no runPolicy; ours has the times only."""
    assert "cleanUpPolicy" in one_fault(generic(runPolicy={"cleanUpPolicy": "All"}))
    assert gang_of(generic(cleanUpPolicy="All")).clean_up.value == "All"
