"""What happens next to a pod, rule by rule."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.node.lifecycle.decide import decide
from paceline.node.lifecycle.view import MAX_BACK_OFF, ContainerAttempt, ContainerStart, StartProblem, back_off_after
from tests.unit.node.pods import NOW, ago, container, deleted, done, ended, lost, pod, running, view

HELD_ONLY = ContainerAttempt(restarts=0, has_shim=True)
INTENT_ONLY = ContainerAttempt(restarts=0)
TWO = (container("a"), container("b"))
INIT = [container("one"), container("two")]

STARTS = {
    "a new pod starts its container": (view(pod()), [("main", 0)]),
    "containers start side by side": (view(pod(*TWO)), [("a", 0), ("b", 0)]),
    "a container that runs is left alone": (view(pod(), {"main": running()}), []),
    "a try that was prepared and never begun is begun": (view(pod(), {"main": INTENT_ONLY}), [("main", 0)]),
    "a shim that holds its folder is not joined by a second": (view(pod(), {"main": HELD_ONLY}), []),
    "init containers come first, one by one": (view(pod(initContainers=INIT)), [("one", 0)]),
    "the next init container waits for the one before": (view(pod(initContainers=INIT), {"one": running()}), []),
    "a good init container makes room for the next": (view(pod(initContainers=INIT), {"one": done()}), [("two", 0)]),
    "the containers come after the last init container": (
        view(pod(initContainers=INIT), {"one": done(), "two": done()}),
        [("main", 0)],
    ),
    "a failed init container is tried again": (
        view(pod(initContainers=INIT, policy="OnFailure"), {"one": done(1)}),
        [("one", 1)],
    ),
    "a failed init container ends a pod that is never restarted": (
        view(pod(initContainers=INIT), {"one": done(1)}),
        [],
    ),
    "Never means never": (view(pod(), {"main": done(1)}), []),
    "OnFailure restarts what failed": (view(pod(policy="OnFailure"), {"main": done(1)}), [("main", 1)]),
    "OnFailure leaves what went well": (view(pod(policy="OnFailure"), {"main": done(0)}), []),
    "Always restarts what went well": (view(pod(policy="Always"), {"main": done(0)}), [("main", 1)]),
    "the second restart waits": (view(pod(policy="Always"), {"main": done(1, 9.9, restarts=1)}), []),
    "the second restart comes after its pause": (
        view(pod(policy="Always"), {"main": done(1, 10, restarts=1)}),
        [("main", 2)],
    ),
    "after a long good run the restart comes at once": (
        view(pod(policy="Always"), {"main": done(1, 0, restarts=7, ran=600)}),
        [("main", 8)],
    ),
    "what is blocked is not tried again in the same pass": (
        view(pod(*TWO), problems={"a": StartProblem(reason="ErrImagePull", message="…")}),
        [("b", 0)],
    ),
    "a pod that is over starts nothing": (view(pod(status={"phase": "Failed"})), []),
    "a pod that goes starts nothing": (view(deleted()), []),
}


@pytest.mark.parametrize(("world", "starts"), STARTS.values(), ids=STARTS)
def test_starts(world, starts):
    assert decide(world, NOW).start == tuple(ContainerStart(container=name, restarts=count) for name, count in starts)


STOPS = {
    "a pod that goes asks its containers to stop": (view(deleted(), {"main": running()}), ["main"], [], 30),
    "one that was asked is not asked again": (view(deleted(), {"main": running(asked=10)}), [], [], 20),
    "after the grace period it is killed": (view(deleted(), {"main": running(asked=30)}), [], ["main"], None),
    "a shorter grace period counts from the asking": (
        view(deleted(grace=5), {"main": running(asked=10)}),
        [],
        ["main"],
        None,
    ),
    "no grace means no asking": (view(deleted(grace=0), {"main": running()}), [], ["main"], None),
    "only what still runs is stopped": (
        view(deleted(*TWO), {"a": done(0), "b": running()}),
        ["b"],
        [],
        30,
    ),
    "what runs on after its pod was given up is killed": (
        view(pod(status={"phase": "Failed"}), {"main": running()}),
        [],
        ["main"],
        None,
    ),
}


@pytest.mark.parametrize(("world", "ask", "kill", "wake"), STOPS.values(), ids=STOPS)
def test_stops(world, ask, kill, wake):
    plan = decide(world, NOW)

    assert (list(plan.stop), list(plan.kill)) == (ask, kill)
    assert plan.wake_at == (None if wake is None else NOW + timedelta(seconds=wake))
    assert not plan.remove


def test_a_pod_that_goes_is_removed_when_nothing_of_it_runs():
    assert decide(view(deleted(), {"main": done(0)}), NOW).remove
    assert decide(view(deleted()), NOW).remove
    assert not decide(view(pod(), {"main": done(0)}), NOW).remove


def test_a_record_that_is_there_counts_more_than_a_shim_that_is_about_to_go():
    last_moment = ContainerAttempt(restarts=0, started=running().started, ended=ended(0), has_shim=True)

    assert decide(view(deleted(), {"main": last_moment}), NOW).remove


@pytest.mark.parametrize(("boot", "reason"), [("boot-1", "ShimLost"), ("boot-0", "NodeRebooted")])
def test_an_end_that_nobody_recorded_is_recorded_before_anything_else(boot, reason):
    plan = decide(view(pod(policy="Always"), {"main": lost(boot)}), NOW)

    (name, end), *others = plan.record
    assert (name, end.exit_code, end.reason, end.finished_at) == ("main", 137, reason, NOW)
    assert others == []
    assert (plan.start, plan.status) == ((), None)


def test_a_finished_pod_is_not_written_again():
    """Terminal is terminal: whatever the folders say later, the status stays."""
    assert decide(view(pod(status={"phase": "Succeeded"}), {"main": done(1)}), NOW).status is None


def test_the_restart_is_waited_for():
    plan = decide(view(pod(policy="Always"), {"main": done(1, 4, restarts=1)}), NOW)

    assert plan.wake_at == ago(4) + timedelta(seconds=10)


@given(st.integers(0, 10_000), st.floats(0, 599))
def test_pauses_grow_and_stay_bounded(restarts, ran):
    pause = back_off_after(done(1, restarts=restarts, ran=ran))

    assert timedelta() <= pause <= MAX_BACK_OFF
    assert pause <= back_off_after(done(1, restarts=restarts + 1, ran=ran))


TRIES = st.sampled_from([None, INTENT_ONLY, HELD_ONLY, running(), running(asked=5), done(0), done(1), lost()])


@given(TRIES, TRIES, st.sampled_from(["Never", "OnFailure", "Always"]), st.booleans())
def test_nothing_is_started_that_runs_and_nothing_goes_that_runs(first, second, policy, goes):
    """Whatever the folders say: no container runs twice, and no pod goes before its containers have ended."""
    tries = {name: each for name, each in (("a", first), ("b", second)) if each is not None}
    subject = deleted(*TWO, policy=policy) if goes else pod(*TWO, policy=policy)

    plan = decide(view(subject, tries), NOW)

    live = {name for name, each in tries.items() if each.has_shim and each.ended is None}
    assert not live & {start.container for start in plan.start}
    assert not (plan.remove and live)
    assert not (goes and plan.start)
