"""What becomes of an owned object follows from how its owners stand, and from nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.plan.garbage_collection import FOREGROUND, KEEP, ORPHAN, GarbageAction, Standing, decide, let_go

STANDINGS = st.lists(st.sampled_from(Standing), min_size=1, max_size=4)


def owned(count, **meta):
    owners = [
        {"name": f"owner-{number}", "uid": f"uid-{number}", "blockOwnerDeletion": True} for number in range(count)
    ]
    return {"metadata": {"name": "owned", "uid": "own", "ownerReferences": owners, **meta}}


def decided(standings, obj=None, *, has_dependents=False, is_in_circle=False):
    obj = obj or owned(len(standings))
    return decide(obj, standings, has_dependents=has_dependents, is_in_circle=is_in_circle)


@given(STANDINGS, st.booleans(), st.booleans())
def test_nothing_goes_while_one_owner_stands_or_cannot_be_told(standings, has_dependents, is_in_circle):
    step = decided(standings, has_dependents=has_dependents, is_in_circle=is_in_circle)

    is_safe = not {Standing.SOLID, Standing.UNKNOWN} & set(standings)
    assert bool(step.policy) == is_safe


@given(STANDINGS)
def test_beside_an_owner_that_stands_the_others_are_struck_out(standings):
    step = decided(standings)

    left = [f"owner-{number}" for number, each in enumerate(standings) if each is Standing.SOLID]
    if Standing.UNKNOWN not in standings and 0 < len(left) < len(standings):
        assert [each["name"] for each in step.owners] == left
    else:
        assert step.owners is None


@given(STANDINGS)
def test_what_goes_already_is_left_to_go(standings):
    assert decided(standings, owned(len(standings), deletionTimestamp="2030-01-01T00:00:00Z")) == KEEP


@pytest.mark.parametrize(
    ("finalizers", "policy"),
    [([], "Background"), (["other"], "Background"), ([FOREGROUND], "Foreground"), ([ORPHAN, FOREGROUND], "Orphan")],
)
def test_it_goes_as_it_wants_to_go_itself(finalizers, policy):
    assert decided([Standing.GONE], owned(1, finalizers=finalizers)) == GarbageAction(policy=policy)


def test_a_chain_goes_from_its_end_when_its_head_waits():
    assert decided([Standing.WAITING]) == GarbageAction(policy="Background")
    assert decided([Standing.WAITING], has_dependents=True) == GarbageAction(policy="Foreground")
    assert decided([Standing.GONE], has_dependents=True) == GarbageAction(policy="Background")


def test_in_a_circle_somebody_stops_holding_its_owners():
    step = decided([Standing.WAITING, Standing.GONE], has_dependents=True, is_in_circle=True)

    assert step.policy == "Foreground"
    assert [each["blockOwnerDeletion"] for each in step.owners] == [False, False]


def test_only_what_waits_for_the_owned_is_taken_off():
    assert let_go(owned(0, finalizers=["mine", FOREGROUND, ORPHAN])) == ("mine",)
