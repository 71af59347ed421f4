"""What a member wrote that left when its job shrank is kept like that of the others."""

from dataclasses import replace

import pytest

from paceline.model.gang import ReplicaId
from paceline.model.job_status import JobStatus, Phase
from paceline.plan.job.decide import decide
from paceline.plan.job.plan import AuxiliaryPod
from tests.unit.plan.test_keeping import COPYING, CUT, KEPT, errand, keepers
from tests.unit.plan.worlds import GANG, NOW, REPLICA, SITE, after, obeyed, places, pod, seen

A, B = places(2)
FLUSH = AuxiliaryPod(name="flush-worker-1", attempt=0)


def crew(size, *, left=(), scope=REPLICA, has_claim=True):
    """An elastic gang; who has left is known to it once that is written down."""
    made = keepers(2, scope=scope, has_claim=has_claim, success=((A,),), failure=((A,),))
    gone = tuple(replace(made.members[1], place=place) for place in left)
    least = 1 if scope is REPLICA else None
    return replace(made, members=made.members[:size], scaled_down=gone, is_elastic=True, least=least)


def shrunk(word="Running", stages=COPYING, **rules):
    """A job of two that has been told to be one, and has written that down."""
    world = seen("Running", word, of=crew(2, **rules))
    world = replace(world, pods=tuple(replace(each, stages=stages) for each in world.pods))
    grown = obeyed(world, replace(decide(world, NOW), create=()))
    plan = decide(replace(grown, gang=crew(1, **rules)), after(1))
    status = JobStatus.from_wire(plan.status.to_wire())
    return replace(grown, gang=crew(1, left=status.scaled_down, **rules), status=status)


def left_by(world, *pods, errands=()):
    """The first member is done, and these are what is there of the one that left."""
    first = replace(pod(A, "Succeeded", attempt=world.status.attempt), stages=KEPT)
    return replace(world, pods=(first, *pods), auxiliary_pods=tuple(errands))


def passed(world, seconds):
    plan = decide(world, after(seconds))
    return plan, replace(world, status=JobStatus.from_wire(plan.status.to_wire()))


@pytest.mark.parametrize("scope", [REPLICA, GANG])
def test_a_copy_that_shrinking_cut_short_is_made_by_another_pod_before_the_job_ends(scope):
    world = shrunk(scope=scope)
    assert world.status.scaled_down == (B,)

    first, world = passed(left_by(world), 10)
    second, world = passed(world, 11)
    last, _ = passed(replace(world, auxiliary_pods=(errand("Succeeded", place=B),)), 12)

    assert (first.status.phase.is_final, second.auxiliary_pods) == (False, (FLUSH,))
    assert (last.status.phase, last.status.scaled_down, last.events[-1].reason) == (Phase.SUCCEEDED, (), "Succeeded")


def test_what_its_own_sidecar_copied_is_not_copied_again():
    world = shrunk()
    leaving = replace(pod(B, "Failed 143"), stages=KEPT, is_deleting=True)
    plan, world = passed(replace(world, pods=(world.pods[0], leaving)), 5)
    assert plan.status.scaled_down == ()

    assert decide(left_by(world), after(10)).status.phase is Phase.SUCCEEDED


def test_one_that_has_not_gone_yet_is_waited_for():
    world = left_by(shrunk(), replace(pod(B, "Running"), stages=COPYING, is_deleting=True))
    _, world = passed(world, 10)
    plan = decide(world, after(11))

    assert (plan.status.phase.is_final, plan.auxiliary_pods) == (False, ())
    assert f"pod {SITE.pod(B)} uploads its output" in plan.status.waiting


def test_what_nobody_can_copy_any_more_is_told():
    _, world = passed(left_by(shrunk(has_claim=False)), 10)
    plan = decide(world, after(11))

    assert plan.status.phase is Phase.SUCCEEDED
    assert plan.events[-1].is_warning
    assert "the output of worker-1 may be incomplete" in plan.events[-1].message


def test_one_that_left_before_it_began_has_written_nothing():
    assert shrunk("Pending").status.scaled_down == ()


def test_a_cut_copy_counts_as_none():
    world = shrunk()
    leaving = replace(pod(B, "Failed 143"), stages=CUT, is_deleting=True)

    assert decide(replace(world, pods=(world.pods[0], leaving)), after(5)).status.scaled_down == (B,)


def test_whoever_comes_back_looks_after_the_output_again():
    world = shrunk()
    plan = decide(replace(world, gang=crew(2), pods=world.pods[:1]), after(5))

    assert plan.status.scaled_down == ()


def test_a_job_that_ends_as_it_shrinks_waits_for_a_pass_that_knows_how_to_copy():
    world = seen("Running", "Running", of=crew(2))
    grown = obeyed(world, replace(decide(world, NOW), create=()))
    done = left_by(replace(grown, gang=crew(1)))
    first, world = passed(done, 1)
    again = decide(world, after(1))
    known = decide(replace(world, gang=crew(1, left=world.status.scaled_down)), after(1))

    assert (first.status.phase.is_final, first.wake_at) == (False, after(1))
    assert (again.auxiliary_pods, again.wake_at) == ((), after(1))
    assert known.auxiliary_pods == (FLUSH,)


def test_jobs_whose_output_nobody_copies_write_nothing_down():
    bare = replace(crew(2), members=tuple(replace(each, keeping=None) for each in crew(2).members))
    world = seen("Running", "Running", of=bare)
    grown = obeyed(world, replace(decide(world, NOW), create=()))
    smaller = replace(bare, members=bare.members[:1])

    assert decide(replace(grown, gang=smaller), after(1)).status.scaled_down == ()


def test_a_place_is_found_by_its_name():
    assert ReplicaId.named("parameter-server-12") == ReplicaId("parameter-server", 12)
