"""Rule stallSeconds: a job whose replicas all fall silent is tried again, or fails."""

from dataclasses import replace

import pytest

from paceline.model.gang import CleanUp
from paceline.model.job_status import ConditionType, Phase
from paceline.model.replica_record import ContainerState
from paceline.plan.job.decide import decide
from paceline.plan.job.plan import LogRef
from paceline.plan.job.snapshot import LogActivity
from tests.unit.plan.worlds import GANG, REPLICA, after, gang, places, pod, seen, then

A, B = places(2)
CREW = gang(2, stall_seconds=100)
MAIN = {place: LogRef(pod=f"demo-12345-{place}", container="main") for place in (A, B)}


def heard(asked, *, last=None, since=None, is_known=True):
    """What a container's log said, in seconds after its start."""
    moment = None if last is None else after(last)
    return LogActivity(
        read_at=after(asked), since=after(asked if since is None else since), last=moment, is_known=is_known
    )


def asked(of_a, of_b):
    return {MAIN[A]: of_a, MAIN[B]: of_b}


SURE = asked(heard(140, since=100), heard(140, since=100))

# What was heard, when → who is asked, when to look again, whether the job is believed to be stalled.
CASES = {
    "nobody is asked while they may be silent": ({}, 99, (), 100, False),
    "both are asked when they may not": ({}, 100, (A, B), None, False),
    "who was asked too early is asked again": (asked(heard(99), heard(100)), 101, (A,), 130, False),
    "one answer is not believed": (asked(heard(100), heard(100)), 101, (), 130, False),
    "they are asked again after a while": (asked(heard(100), heard(100)), 130, (A, B), None, False),
    "two answers that say the same are": (SURE, 140, (), None, True),
    "a line of one is enough for both": (asked(heard(100, last=60), heard(100)), 101, (), 160, False),
    "the last line counts": (
        asked(heard(200, last=60, since=160), heard(200, last=10, since=160)),
        200,
        (),
        None,
        True,
    ),
    "nobody who cannot be asked is accused": (
        asked(heard(140, since=100), heard(140, is_known=False)),
        150,
        (),
        170,
        False,
    ),
    "and is asked again": (asked(heard(140, since=100), heard(140, is_known=False)), 170, (B,), None, False),
}


@pytest.mark.parametrize(("known", "seconds", "who", "look", "is_stalled"), CASES.values(), ids=CASES)
def test_the_silence_of_a_job(known, seconds, who, look, is_stalled):
    plan = decide(seen("Running", "Running", of=CREW, log_activity=known), after(seconds))

    assert plan.check_logs == tuple(MAIN[place] for place in who)
    assert (plan.status.backoff_count, plan.status.attempt) == ((1, 1) if is_stalled else (0, 0))
    if not is_stalled:
        assert plan.wake_at == (None if look is None else after(look))


@pytest.mark.parametrize(
    ("members", "crew"),
    [
        (("Running", "Running"), gang(2)),
        (("Running", "Pending"), CREW),
        (("", ""), CREW),
    ],
    ids=["without the rule", "while a member waits", "before anything runs"],
)
def test_nobody_listens(members, crew):
    plan = decide(seen(*members, of=crew, log_activity=SURE), after(500))

    assert (plan.check_logs, plan.status.backoff_count) == ((), 0)


def test_a_short_patience_needs_no_long_confirmation():
    crew = gang(1, stall_seconds=5)
    plan = decide(seen("Running", of=crew, log_activity={MAIN[A]: heard(5)}), after(6))

    assert plan.wake_at == after(10)


def test_a_container_whose_start_is_not_known_is_nobody_to_listen_to():
    unknown = replace(pod(A, "Running"), containers=(ContainerState(name="main", state="Running"),))
    world = replace(seen("Running", of=gang(1, stall_seconds=5)), pods=(unknown,))

    assert decide(world, after(500)).check_logs == ()


@pytest.mark.parametrize("scope", [GANG, REPLICA])
def test_all_begin_anew_and_it_counts_as_one_restart(scope):
    crew = gang(2, stall_seconds=100, scope=scope)
    world = seen("Running", "Running", of=crew, log_activity=SURE)
    plan = decide(world, after(140))

    assert plan.delete == ("demo-12345-worker-0", "demo-12345-worker-1")
    assert (plan.status.phase, plan.status.attempt, plan.status.backoff_count) == (Phase.PENDING, 1, 1)
    assert plan.status.role_restarts == {"worker": 1}
    assert plan.wake_at == after(141)
    assert (plan.events[-1].reason, plan.events[-1].is_warning) == ("Stalled", True)
    assert plan.events[-1].message == (
        "no replica has written a line since 2030-01-01T00:00:00Z, for more than 100 seconds; "
        "next attempt of all replicas (restart 1 of at most 3)"
    )
    gone = replace(then(world, plan, "", ""), pods=(), log_activity={})
    made = decide(gone, after(141)).create
    assert [(each.place, each.attempt) for each in made] == [(A, 1), (B, 1)]


ENDS = {
    "all restarts are used": (gang(2, stall_seconds=100, backoff_limit=0), "all restarts are used (0 of the job)"),
    "its leader is not tried again": (gang(2, stall_seconds=100, restart="Never"), "restartPolicy is Never"),
    "all restarts of its leader's role are used": (
        gang(2, stall_seconds=100, backoff_limit=None, role_limits={"worker": 0}),
        "all restarts are used (0 of the job)",
    ),
}


@pytest.mark.parametrize(("crew", "why"), ENDS.values(), ids=ENDS)
def test_the_job_fails_when(crew, why):
    plan = decide(seen("Running", "Running", of=replace(crew, clean_up=CleanUp.NONE), log_activity=SURE), after(140))
    failed = plan.status.condition(ConditionType.FAILED)

    assert plan.status.phase is Phase.FAILED
    assert failed.reason == "Stalled"
    assert failed.message == (
        f"no replica has written a line since 2030-01-01T00:00:00Z, for more than 100 seconds; {why}"
    )
    # Whatever the policy for pods: what hangs would hang for ever.
    assert len(plan.delete) == 2


def test_an_exit_code_that_nobody_has_is_no_reason_against_another_try():
    crew = gang(2, stall_seconds=100, restart="ExitCode")

    assert decide(seen("Running", "Running", of=crew, log_activity=SURE), after(140)).status.backoff_count == 1
