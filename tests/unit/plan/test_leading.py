"""Who leads: the decision alone, and two candidates whose clocks, questions and answers come as they like."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paceline.plan.leader_election import (
    ACT_SECONDS,
    AGAIN_SECONDS,
    LEASE_SECONDS,
    LeaseAction,
    LeaseView,
    acts_until,
    decide,
)

NOW = 1_000.0


def seen(holder, *, unchanged=0.0, promised=LEASE_SECONDS):
    return LeaseView(me="me", holder=holder, promised_seconds=promised, unchanged_since=NOW - unchanged)


CASES = {
    "a lease that nobody made is made": (seen(None), LeaseAction.MAKE, AGAIN_SECONDS),
    "a lease that was let go of is taken": (seen(""), LeaseAction.TAKE, AGAIN_SECONDS),
    "one's own lease is renewed": (seen("me"), LeaseAction.RENEW, AGAIN_SECONDS),
    "one's own lease is renewed however old it is": (seen("me", unchanged=99), LeaseAction.RENEW, AGAIN_SECONDS),
    "another's lease is left alone": (seen("you", unchanged=1), LeaseAction.WAIT, AGAIN_SECONDS),
    "another's lease is looked at when it may be abandoned": (seen("you", unchanged=14), LeaseAction.WAIT, 1),
    "a lease that stood still as long as promised is taken": (
        seen("you", unchanged=15),
        LeaseAction.TAKE,
        AGAIN_SECONDS,
    ),
    "a holder that promised more is given more": (
        seen("you", unchanged=20, promised=60),
        LeaseAction.WAIT,
        AGAIN_SECONDS,
    ),
    "a holder that promised little is given little": (
        seen("you", unchanged=2, promised=1),
        LeaseAction.TAKE,
        AGAIN_SECONDS,
    ),
}


@pytest.mark.parametrize(("lease", "step", "pause"), CASES.values(), ids=CASES)
def test_decide(lease, step, pause):
    plan = decide(lease, NOW)

    assert (plan.step, plan.look_again - NOW) == (step, pause)


def test_a_holder_stops_before_others_may_begin():
    assert acts_until(NOW) + AGAIN_SECONDS < NOW + LEASE_SECONDS
    assert ACT_SECONDS > 2 * AGAIN_SECONDS, "one lost renewal must not end a term"


# A moment later one of two does a turn: how late its clock is, how long its question and the answer travel, and
# whether the answer gets lost.
TRAVEL = st.sampled_from((0, 1, 8))
TURNS = st.lists(
    st.tuples(st.sampled_from((0, 1, 9, 15)), st.sampled_from("ab"), TRAVEL, TRAVEL, st.booleans()), max_size=30
)


# As soon as it can be: seen the moment it was made, and taken the moment it counts as abandoned.
@example([(0, "a", 0, 0, False), (0, "b", 0, 0, False), (15, "b", 0, 0, False)], 0.0)
@given(TURNS, st.sampled_from((0.0, -1e6, 1e6)))
def test_two_never_act_at_one_moment(turns, apart):
    """Whatever is late or lost, and however the two clocks differ: at most one believes that it leads."""
    now, revision, holder = 0.0, 0, None
    skew = {"a": 0.0, "b": apart}
    known = dict.fromkeys("ab", (-1, 0.0))
    until = dict.fromkeys("ab", -1e9)
    for passes, me, out, back, is_lost in turns:
        now += passes
        # It looks, then decides by its own clock.
        if known[me][0] != revision:
            known[me] = (revision, now + skew[me])
        mine = now + skew[me]
        plan = decide(LeaseView(me=me, holder=holder, unchanged_since=known[me][1]), mine)
        if plan.step is LeaseAction.WAIT:
            until[me] = -1e9
            continue
        asked, guard = mine, revision
        now += out
        assert guard == revision
        revision, holder = revision + 1, me
        now += back
        if not is_lost:
            known[me] = (revision, now + skew[me])
            until[me] = acts_until(asked) - skew[me]
        # Nobody else acts after the moment at which the lease changed hands.
        other = "b" if me == "a" else "a"
        assert until[other] <= now - back or plan.step is LeaseAction.RENEW
        assert not (until[other] > now and until[me] > now)
