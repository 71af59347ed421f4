"""When a TensorBoard or Notebook has a pod, and what it says of itself."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from paceline.model.interactive import InteractiveWorkload, ServiceStatus, Trait
from paceline.plan.interactive.decide import ServicePod, ServiceSeen, Use, decide
from paceline.plan.job.snapshot import PodPhase

NOW = datetime(2030, 1, 1, tzinfo=UTC)
BOARD = InteractiveWorkload(
    plural="tensorboards",
    name="curves",
    namespace="default",
    stem="curves-12345",
    template={},
    port=6006,
    idle_seconds=100,
    digest="new",
)
DESK = replace(BOARD, plural="notebooks", page="lab", ends_by_itself=True, has_token=True)


def after(seconds):
    return NOW + timedelta(seconds=seconds)


def pod(phase="Running", *, is_ready=True, digest="new", **more):
    is_ready = is_ready and phase == "Running"
    return ServicePod(name="curves-12345-0", uid="1", phase=PodPhase(phase), is_ready=is_ready, digest=digest, **more)


def seen(*pods, window=BOARD, status=None, used=None, opened=None, is_counted=True, **more):
    use = Use(is_counted=is_counted, used=used, opened=opened)
    known = {"has_door": True, **more}
    return ServiceSeen(window=window, status=status or ServiceStatus(), pods=pods, use=use, **known)


RUNNING = (pod(),)


def live(*moments, window=BOARD, pods=RUNNING, **more):
    """Pass through moments with the same pods; give the last plan."""
    status, plan = None, None
    for moment in moments:
        plan = decide(seen(*pods, window=window, status=status, **more), moment)
        # As it is read back.
        status = ServiceStatus.from_wire(plan.status.to_wire())
    return plan


def traits(status):
    return {each.type: (each.status, each.reason) for each in status.conditions}


SUSPENDED = replace(BOARD, is_suspended=True)

# What is seen: the phase that is told, whether a pod is made, and the pods that go.
STEPS = {
    "nothing yet": (seen(), "Initializing", True, 0),
    "a pod that starts": (seen(pod("Pending")), "Initializing", False, 0),
    "a pod that runs and does not answer": (seen(pod(is_ready=False)), "Initializing", False, 0),
    "a pod that answers": (seen(pod()), "Running", False, 0),
    "a pod that is going": (seen(pod(is_deleting=True)), "Initializing", False, 0),
    "a pod of an older spec": (seen(pod(digest="old")), "Initializing", False, 1),
    "a pod that has failed": (seen(pod("Failed")), "Initializing", False, 1),
    "a TensorBoard that has ended": (seen(pod("Succeeded")), "Initializing", False, 1),
    "a notebook that has ended": (seen(pod("Succeeded"), window=DESK), "Paused", False, 1),
    "a notebook that has failed": (seen(pod("Failed"), window=DESK), "Initializing", False, 1),
    "suspended with a pod": (seen(pod(), window=SUSPENDED), "Paused", False, 1),
    "suspended with a pod that is going": (seen(pod(is_deleting=True), window=SUSPENDED), "Paused", False, 0),
    "suspended without a pod": (seen(window=SUSPENDED), "Paused", False, 0),
}


@pytest.mark.parametrize(("found", "phase", "makes_pod", "going"), STEPS.values(), ids=STEPS)
def test_a_step_with(found, phase, makes_pod, going):
    plan = decide(found, NOW)

    assert (plan.status.phase, plan.makes_pod, len(plan.delete)) == (phase, makes_pod, going)


@pytest.mark.parametrize("window", [BOARD, SUSPENDED], ids=["running", "suspended"])
def test_the_service_in_front_is_made_whenever_it_is_missing(window):
    assert decide(seen(window=window, has_door=False), NOW).makes_door
    assert not decide(seen(window=window), NOW).makes_door


def test_it_says_where_it_is_opened_and_what_is_asked_for_there():
    board, desk = (decide(seen(pod(), window=window), NOW).status for window in (BOARD, DESK))

    assert (board.url, board.secret) == ("/t9k/tensorboards/projects/default/name/curves/", "")
    assert (desk.url, desk.secret) == ("/t9k/notebooks/projects/default/name/curves/lab", "curves-12345-token")
    assert desk.pod == ("curves-12345-0", "1", "Running")


def test_where_the_api_server_does_not_serve_pages_they_are_opened_by_the_service_proxy():
    board, desk = (decide(seen(pod(), window=window, serves_pages=False), NOW).status.url for window in (BOARD, DESK))

    assert board == "/api/v1/namespaces/default/services/tb-curves:http/proxy/"
    assert desk == (
        "/api/v1/namespaces/default/services/nb-curves:http/proxy/t9k/notebooks/projects/default/name/curves/lab"
    )


def test_a_pod_that_waits_lends_it_its_reason():
    plan = decide(seen(pod("Pending", reason="Unschedulable", message="no node has room")), NOW)

    assert plan.status.waiting == "pod curves-12345-0: no node has room"
    assert traits(plan.status)[Trait.READY] == (False, "Unschedulable")
    assert [(told.reason, told.is_warning) for told in plan.events] == [("Unschedulable", True)]


def test_after_a_failure_the_next_pod_waits_a_while():
    first = decide(seen(pod("Failed", reason="Evicted")), NOW)
    too_early = decide(seen(status=first.status), after(9))
    later = decide(seen(status=first.status), after(10))

    assert "Evicted" in first.status.waiting
    assert first.wake_at == too_early.wake_at == after(10)
    assert (too_early.makes_pod, later.makes_pod) == (False, True)


def test_a_pod_is_made_only_once_the_old_one_has_gone():
    """Two notebooks on one claim would write over each other."""
    assert not decide(seen(pod(digest="old", is_deleting=True)), NOW).makes_pod


# Idleness


def test_nobody_uses_it_for_long():
    assert live(NOW, after(99)).status.phase == "Running"
    rest = live(NOW, after(100))
    assert rest.status.phase == "Paused"
    assert traits(rest.status) == {
        Trait.READY: (False, "Idle"),
        Trait.IDLE: (True, "Idle"),
        Trait.SUSPENDED: (True, "Idle"),
    }
    assert [told.reason for told in rest.events] == ["Suspended"]


# Who is not suspended, and why.
SPARED = {
    "one that is used": {"used": after(50)},
    "one that was opened": {"opened": after(50)},
    "one whose requests nobody counts": {"is_counted": False},
    "one that is never to be": {"window": replace(BOARD, idle_seconds=0)},
    "one that ends by itself": {"window": DESK},
}


@pytest.mark.parametrize("more", SPARED.values(), ids=SPARED)
def test_left_alone_is(more):
    made = decide(seen(window=more.get("window", BOARD)), NOW).status

    assert decide(seen(pod(), status=made, **more), after(120)).status.phase == "Running"


def first_made(window=BOARD):
    return ServiceStatus.from_wire(decide(seen(window=window), NOW).status.to_wire())


def test_the_time_begins_when_its_pod_is_made():
    plan = decide(seen(pod(), status=first_made()), after(99))

    assert plan.status.phase == "Running"
    assert plan.wake_at == after(100)
    assert decide(seen(pod(), status=first_made()), after(100)).status.phase == "Paused"


def test_the_last_use_is_written_down_but_not_every_one():
    """Whoever is killed and comes back knows it to the minute, or to a quarter of the time that counts."""
    for used, written in ((24, 0), (25, 25)):
        plan = decide(seen(pod(), status=first_made(), used=after(used)), after(30))
        assert plan.status.last_activity == after(written)
        assert plan.wake_at == after(used + 100)


def test_after_an_hour_it_is_called_idle():
    window = replace(BOARD, idle_seconds=90_000)
    status = first_made(window)

    fresh, idle = (decide(seen(pod(), window=window, status=status), after(s)) for s in (3599, 3600))
    assert (traits(fresh.status)[Trait.IDLE][0], fresh.wake_at) == (False, after(3600))
    assert (traits(idle.status)[Trait.IDLE][0], idle.wake_at) == (True, after(90_000))
    assert idle.status.phase == "Running"


def at_rest(window=BOARD, reason="Idle"):
    if reason == "Idle":
        plan = decide(seen(pod(), window=window, status=first_made(window)), after(100))
    else:
        plan = decide(seen(pod("Succeeded"), window=window, status=first_made(window)), after(100))
    assert traits(plan.status)[Trait.SUSPENDED] == (True, reason)
    return ServiceStatus.from_wire(plan.status.to_wire())


RESTING = {"idle": (BOARD, "Idle"), "ended": (DESK, "Ended")}


@pytest.mark.parametrize(("window", "reason"), RESTING.values(), ids=RESTING)
def test_what_rests_stays_so_until_somebody_opens_it(window, reason):
    status = at_rest(window, reason)

    for opened in (None, after(99)):
        stays = decide(seen(window=window, status=status, opened=opened), after(500))
        assert (stays.status.phase, stays.makes_pod, stays.events) == ("Paused", False, ())
    wakes = decide(seen(window=window, status=status, opened=after(101)), after(102))
    assert (wakes.status.phase, wakes.makes_pod) == ("Initializing", True)
    assert [told.reason for told in wakes.events] == ["Resumed"]
    assert traits(wakes.status)[Trait.SUSPENDED] == (False, "-")
    assert wakes.status.last_activity == after(102)


@pytest.mark.parametrize(("window", "reason"), RESTING.values(), ids=RESTING)
def test_only_what_comes_after_the_suspension_wakes_it_up_within_the_same_second(window, reason):
    """Times of conditions have no fractions of a second."""
    moment = after(100) + timedelta(milliseconds=500)
    pods = (pod(),) if reason == "Idle" else (pod("Succeeded"),)
    plan = decide(seen(*pods, window=window, status=first_made(window)), moment)
    status = ServiceStatus.from_wire(plan.status.to_wire())

    earlier = decide(seen(window=window, status=status, opened=moment - timedelta(milliseconds=1)), after(102))
    assert (earlier.status.phase, earlier.makes_pod) == ("Paused", False)
    later = decide(seen(window=window, status=status, opened=moment + timedelta(milliseconds=1)), after(102))
    assert (later.status.phase, later.makes_pod) == ("Initializing", True)


def test_a_notebook_that_is_opened_before_its_old_pod_has_gone_waits_for_that():
    status = at_rest(DESK, "Ended")
    opened = {"window": DESK, "status": status, "opened": after(101)}

    assert not decide(seen(pod("Succeeded", is_deleting=True), **opened), after(102)).makes_pod
    assert decide(seen(**opened), after(103)).makes_pod


def test_what_its_author_suspends_is_not_opened():
    status = decide(seen(pod(), window=SUSPENDED), NOW).status

    stays = decide(seen(window=SUSPENDED, status=status, opened=after(50)), after(51))
    assert (stays.status.phase, stays.makes_pod) == ("Paused", False)
    assert decide(seen(status=status), after(52)).makes_pod


def test_nothing_changes_while_nothing_changes():
    for window, pods in ((BOARD, (pod(),)), (SUSPENDED, ()), (DESK, (pod(),))):
        once, twice = live(NOW, window=window, pods=pods), live(NOW, after(1), window=window, pods=pods)
        assert once.status.to_wire() == twice.status.to_wire()
        assert twice.events == ()


OPEN = replace(BOARD, service_type="LoadBalancer")


def test_the_service_in_front_of_it_gets_the_type_that_its_author_wants():
    assert decide(seen(has_door=False, window=OPEN), NOW).makes_door
    assert not decide(seen(has_door=False, window=OPEN), NOW).changes_door
    assert decide(seen(window=OPEN), NOW).changes_door
    assert decide(seen(door_type="NodePort"), NOW).changes_door
    assert not decide(seen(window=OPEN, door_type="LoadBalancer"), NOW).changes_door


def test_it_says_where_anybody_opens_it():
    told = decide(seen(pod(), window=OPEN, door_type="LoadBalancer", address="http://192.0.2.9/"), NOW).status

    assert told.to_wire()["address"] == "http://192.0.2.9/"
    assert ServiceStatus.from_wire(told.to_wire()) == told
    assert "address" not in decide(seen(pod(), status=told), NOW).status.to_wire()


def test_one_that_is_reached_from_outside_is_not_called_idle_for_nobody_counts_who_comes():
    assert live(NOW, after(101)).status.phase == "Paused"
    assert live(NOW, after(101), window=OPEN).status.phase == "Running"


@pytest.mark.parametrize("days", [1, 3653])
def test_whoever_opens_it_by_a_clock_that_is_ahead_does_not_keep_it_for_ever(days):
    ahead = after(timedelta(days=days).total_seconds())
    plan = live(NOW, after(1), opened=ahead)
    assert plan.status.last_activity == NOW
    idle = live(NOW, after(1), after(101), opened=ahead)

    assert traits(idle.status)[Trait.SUSPENDED] == (True, "Idle")


@pytest.mark.parametrize("pods", [(), (pod("Running", is_deleting=True),)])
def test_one_that_comes_back_has_all_of_its_time_whenever_it_was_asked_for(pods):
    """The moment may be that of its suspension: who asks knows only that one by the cluster's clock."""
    asleep = ServiceStatus.from_wire(live(NOW, after(101)).status.to_wire())
    since = asleep.condition(Trait.SUSPENDED).since
    plan = decide(seen(*pods, status=asleep, opened=since), after(5000))
    again = decide(seen(*pods, status=plan.status, opened=since), after(5099))

    for each in (plan, again):
        assert traits(each.status)[Trait.SUSPENDED][0] is False
