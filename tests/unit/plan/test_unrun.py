"""A pod that somebody deletes before anything of its gang ran is created again, and no restart is counted."""

from dataclasses import replace

import pytest

from paceline.model.job_status import JobStatus, Phase
from paceline.plan.job.decide import decide
from paceline.plan.job.plan import NewPod
from tests.unit.plan.worlds import GANG, NOW, REPLICA, SITE, after, gang, numbers, obeyed, places, seen

A, B = places(2)
REMADE = NewPod(place=B, attempt=1)


def crew(restart="Never", scope=REPLICA, **rules):
    return gang(2, restart=restart, scope=scope, **rules)


def recorded(*members, of=None, **changes):
    """What is seen after a pass has written down members that still wait, or that run."""
    world = seen(*members, of=of or crew())
    return obeyed(world, replace(decide(world, NOW), create=()), **changes)


def without(world, *gone):
    return replace(world, pods=tuple(each for each in world.pods if each.place not in gone))


@pytest.mark.parametrize("restart", ["Never", "OnFailure", "ExitCode", "Always"])
def test_a_pod_that_is_deleted_while_all_wait_is_made_again_under_every_policy(restart):
    world = without(recorded("Pending Unschedulable", "Pending Unschedulable", of=crew(restart, backoff_limit=0)), B)
    plan = decide(world, after(1))

    assert (plan.create, plan.delete, plan.status.start_after) == ((REMADE,), (), None)
    assert (plan.status.phase, plan.status.backoff_count, plan.status.failure) == (Phase.PENDING, 0, None)
    assert numbers(plan.status) == {"worker-1": 1}
    (told,) = [each for each in plan.events if each.reason == "Remade"]
    assert told.message == (
        f"pod {SITE.pod(B)} was deleted before it ran; worker-1 is created again; this does not count as a restart"
    )


def test_so_are_all_of_them():
    plan = decide(without(recorded("Pending", "Pending"), A, B), after(1))

    assert plan.create == tuple(NewPod(place=place, attempt=1, gang_size=2) for place in (A, B))


def test_it_is_made_once_and_told_once_and_again_when_it_is_deleted_again():
    world = without(recorded("Pending", "Pending"), B)
    first = decide(world, after(1))
    made = obeyed(world, replace(first, status=JobStatus.from_wire(first.status.to_wire())))
    second = decide(made, after(2))
    third = decide(without(replace(made, status=second.status), B), after(3))

    assert (second.create, [each.reason for each in second.events]) == ((), ["NewReplica"])
    assert third.create == (NewPod(place=B, attempt=2),)


def test_a_pod_that_is_deleted_when_another_has_run_is_lost_as_ever():
    world = without(recorded("Running", "Pending"), B)
    plan = decide(world, after(1))

    assert (plan.create, numbers(plan.status)) == ((), {})
    assert "ReplicaLost" in [each.reason for each in plan.events]


def test_a_pod_that_ran_itself_is_lost_as_ever():
    plan = decide(without(recorded("Pending", "Running"), B), after(1))

    assert (plan.create, numbers(plan.status)) == ((), {})


def test_members_that_begin_anew_together_are_judged_by_their_policy():
    world = without(recorded("Pending", "Pending", of=crew(scope=GANG)), B)

    assert decide(world, after(1)).status.phase is Phase.FAILED


@pytest.mark.parametrize("held", [{"is_paused": True}, {"is_suspended": True}])
def test_pods_that_are_given_back_are_not_made_again(held):
    world = recorded("Pending", "Pending", **held)
    given = decide(world, after(1))
    plan = decide(replace(world, pods=(), status=given.status), after(2))

    assert len(given.delete) == 2
    assert (plan.create, numbers(plan.status), plan.events) == ((), {}, ())


def test_a_job_that_fails_in_the_same_moment_makes_nothing_and_says_so():
    world = without(recorded("Pending", "Pending", of=crew(starting_deadline_seconds=5)), B)
    plan = decide(world, after(6))

    assert (plan.status.phase, plan.create) == (Phase.FAILED, ())
    assert "Remade" not in [each.reason for each in plan.events]


def test_pods_of_an_ended_job_are_not_made_again():
    world = recorded("Pending", "Pending", of=crew(starting_deadline_seconds=5))
    over = decide(world, after(6))
    plan = decide(replace(world, pods=(), status=over.status), after(7))

    assert (plan.create, numbers(plan.status)) == ((), {})
