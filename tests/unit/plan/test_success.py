"""Rules that name places."""

import pytest

from paceline.model.gang import CleanUp, ReplicaId
from paceline.model.job_status import Phase
from paceline.plan.job.completion import describe_rule
from paceline.plan.job.decide import decide
from paceline.plan.job.restart_policy import is_unreachable, met_rule
from tests.unit.plan.worlds import NOW, REPLICA, after, gang, places, seen, then

A, B, C = places(3)
DONE = frozenset({A, B})

HOLD = {
    "one place that is there": (((A,),), (A,)),
    "all places that are there": (((A, B),), (A, B)),
    "the first of two rules that hold": (((B,), (A,)), (B,)),
    "not a rule with a place that is missing": (((A, C),), None),
    "the second rule when the first does not": (((C,), (A,)), (A,)),
    "nothing without rules": ((), None),
}


@pytest.mark.parametrize(("rules", "rule"), HOLD.values(), ids=HOLD)
def test_what_holds_is(rules, rule):
    assert met_rule(rules, DONE) == rule


HOPELESS = {
    "when the only rule lost a place": (((A, C),), True),
    "not while another rule can hold": (((A,), (C,)), False),
    "when every rule lost a place": (((A,), (B, C)), True),
}


@pytest.mark.parametrize(("rules", "is_so"), HOPELESS.values(), ids=HOPELESS)
def test_a_job_is_hopeless(rules, is_so):
    assert is_unreachable(rules, DONE) is is_so


def test_a_rule_is_said_as_its_author_wrote_it():
    assert (
        describe_rule((ReplicaId("worker", 0), ReplicaId("ps", 1), ReplicaId("worker", 2)))
        == "{worker: [0, 2], ps: [1]}"
    )


# successRules [{worker: [0]}], failureRules [{worker: [0]}, {worker: [1]}].
VECTOR = gang(3, restart="Never", scope=REPLICA, success=((A,),), failure=((A,), (B,)), clean_up=CleanUp.UNFINISHED)


def test_a_generic_job_fails_by_its_rule_and_says_which():
    """Vector 7, the first half."""
    plan = decide(seen("Running", "Failed", "Running", of=VECTOR), NOW)

    assert plan.status.phase is Phase.FAILED
    assert "failure rule {worker: [1]} is met" in plan.events[-1].message


def test_a_generic_job_succeeds_while_others_run_and_cleans_up_the_runners_only():
    """Vector 7, the second half."""
    world = seen("Succeeded", "Succeeded", "Running", of=VECTOR)
    plan = decide(world, NOW)
    later = decide(then(world, plan, "Succeeded", "Succeeded", "Running"), after(10))

    assert plan.status.phase is Phase.SUCCEEDED
    assert later.delete == ("demo-12345-worker-2",)


SUCCESSES = {
    "one place": (((A,),), "worker-0 succeeded (it determines the job's result)"),
    "several": (((A, B),), "success rule {worker: [0, 1]} is met"),
}


@pytest.mark.parametrize(("rules", "said"), SUCCESSES.values(), ids=SUCCESSES)
def test_success_is_told_of(rules, said):
    plan = decide(seen("Succeeded", "Succeeded", of=gang(2, scope=REPLICA, success=rules)), NOW)

    assert (plan.events[-1].reason, plan.events[-1].message) == ("Succeeded", said)
