"""Sidecars live beside the main containers and go after them; a pod that is overdue goes too."""

import signal
from dataclasses import replace
from datetime import timedelta

import pytest

from paceline.node.lifecycle.decide import decide
from paceline.node.lifecycle.pod_status import pod_status
from paceline.node.lifecycle.termination import chosen_signal, stop_signal
from tests.unit.node.pods import NOW, ago, container, deleted, done, pod, running, view

PROXY, LOGGER = container("proxy", restartPolicy="Always"), container("logger", restartPolicy="Always")
BOTH = [PROXY, LOGGER]
FIRST = container("first")
GREETED = container(lifecycle={"postStart": {"exec": {"command": ["true"]}}})
HOOKED = container(lifecycle={"preStop": {"exec": {"command": ["true"]}}})


def starts(world):
    return [(start.container, start.restarts) for start in decide(world, NOW).start]


STARTS = {
    "a sidecar starts before the main containers": (view(pod(initContainers=[PROXY])), [("proxy", 0)]),
    "the main containers come once it has started": (
        view(pod(initContainers=[PROXY]), {"proxy": running()}),
        [("main", 0)],
    ),
    "sidecars start one by one": (view(pod(initContainers=BOTH), {"proxy": running()}), [("logger", 0)]),
    "an init container behind it runs while it runs": (
        view(pod(initContainers=[PROXY, FIRST]), {"proxy": running()}),
        [("first", 0)],
    ),
    "a sidecar that ends is started again, whatever the pod's policy": (
        view(pod(initContainers=[PROXY]), {"proxy": done(0), "main": running()}),
        [("proxy", 1)],
    ),
    "a sidecar that keeps ending waits longer and longer": (
        view(pod(initContainers=[PROXY]), {"proxy": done(1, 9, restarts=1), "main": running()}),
        [],
    ),
    "a sidecar that has ended holds back what has not begun": (
        view(pod(initContainers=[PROXY]), {"proxy": done(1, 9, restarts=1)}),
        [],
    ),
    "a container waits for the first hook of the one before it": (
        view(pod(GREETED, container("two")), {"main": running()}),
        [],
    ),
    "also when neither has begun": (view(pod(GREETED, container("two"))), [("main", 0)]),
    "and comes once that has run": (
        view(pod(GREETED, container("two")), {"main": replace(running(), is_post_start_done=True)}),
        [("two", 0)],
    ),
    "it is not started again when the main containers have ended": (
        view(pod(initContainers=[PROXY]), {"proxy": done(0), "main": done(0)}),
        [],
    ),
}


@pytest.mark.parametrize(("world", "wanted"), STARTS.values(), ids=STARTS)
def test_starts(world, wanted):
    assert starts(world) == wanted


STOPS = {
    "a sidecar is asked to stop when the main containers have ended": (
        view(pod(initContainers=[PROXY]), {"proxy": running(), "main": done(0)}),
        ["proxy"],
        [],
    ),
    "it stays while one of them will be tried again": (
        view(pod(initContainers=[PROXY], policy="OnFailure"), {"proxy": running(), "main": done(1)}),
        [],
        [],
    ),
    "it goes when an init container failed for good": (
        view(pod(initContainers=[PROXY, FIRST]), {"proxy": running(), "first": done(1)}),
        ["proxy"],
        [],
    ),
    "the last started sidecar goes first": (
        view(pod(initContainers=BOTH), {"proxy": running(), "logger": running(), "main": done(0)}),
        ["logger"],
        [],
    ),
    "the one before it follows": (
        view(pod(initContainers=BOTH), {"proxy": running(), "logger": done(0), "main": done(0)}),
        ["proxy"],
        [],
    ),
    "a deleted pod's sidecars wait for its main containers": (
        view(deleted(initContainers=[PROXY]), {"proxy": running(), "main": running(asked=3)}),
        [],
        [],
    ),
    "and are asked then": (
        view(deleted(initContainers=[PROXY]), {"proxy": running(), "main": done(143)}),
        ["proxy"],
        [],
    ),
    "the grace period is one for all": (
        view(deleted(initContainers=[PROXY]), {"proxy": running(asked=5), "main": running(asked=30)}),
        [],
        ["main"],
    ),
    "without grace all end at once": (
        view(deleted(initContainers=[PROXY], grace=0), {"proxy": running(), "main": running()}),
        [],
        ["main"],
    ),
}


@pytest.mark.parametrize(("world", "ask", "kill"), STOPS.values(), ids=STOPS)
def test_stops(world, ask, kill):
    plan = decide(world, NOW)

    assert (list(plan.stop), list(plan.kill)) == (ask, kill)


def test_a_sidecar_gets_two_seconds_however_long_the_others_took():
    late = view(deleted(initContainers=[PROXY], grace=10), {"proxy": running(asked=1), "main": done(137, 1)})

    plan = decide(late, NOW)

    assert not plan.kill
    assert plan.wake_at > NOW


def test_a_container_gets_two_seconds_once_it_is_told_however_long_its_last_hook_took():
    hook_runs = view(deleted(HOOKED, grace=5), {"main": running(asked=6)})
    just_told = replace(hook_runs, signalled_at={"main": ago(1)})
    told_before = replace(hook_runs, signalled_at={"main": ago(3)})

    assert [decide(world, NOW).kill for world in (hook_runs, just_told, told_before)] == [(), (), ("main",)]
    assert decide(hook_runs, NOW).wake_at == decide(just_told, NOW).wake_at == NOW + timedelta(seconds=1)


def test_the_shortest_grace_is_two_seconds():
    plans = [decide(view(deleted(grace=1), {"main": running(asked=seconds)}), NOW) for seconds in (1, 2)]

    assert [plan.kill for plan in plans] == [(), ("main",)]


def test_a_pod_is_over_only_when_its_sidecars_are():
    world = view(pod(initContainers=[PROXY], status={"phase": "Running"}), {"proxy": running(asked=1), "main": done(0)})
    assert pod_status(world, NOW)["phase"] == "Running"

    world = view(pod(initContainers=[PROXY], status={"phase": "Running"}), {"proxy": done(1), "main": done(0)})
    assert pod_status(world, NOW)["phase"] == "Succeeded"


def test_a_failed_sidecar_does_not_fail_its_pod():
    world = view(pod(initContainers=[PROXY]), {"proxy": done(1), "main": running()})

    assert pod_status(world, NOW)["phase"] == "Running"


def overdue(seconds, tries, **fields):
    status = {"phase": "Running", "startTime": ago(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")}
    return view(pod(status=status, activeDeadlineSeconds=60, **fields), tries)


def test_a_pod_within_its_deadline_is_looked_at_again_when_it_ends():
    plan = decide(overdue(20, {"main": running()}), NOW)

    assert plan.wake_at == NOW + timedelta(seconds=40)
    assert not plan.stop


def test_an_overdue_pod_is_asked_to_stop_and_nothing_starts():
    assert decide(overdue(60, {"main": running()}), NOW).stop == ("main",)
    assert not decide(overdue(60, {"main": done(1)}, policy="Always"), NOW).start


def test_an_overdue_pod_fails_with_the_words_of_kubernetes_once_it_has_stopped():
    running_still = pod_status(overdue(61, {"main": running(asked=1)}), NOW)
    stopped = pod_status(overdue(61, {"main": done(0)}), NOW)

    assert running_still["phase"] == "Running"
    assert (stopped["phase"], stopped["reason"]) == ("Failed", "DeadlineExceeded")
    assert stopped["message"] == "Pod was active on the node longer than the specified deadline"


SIGNALS = {
    "none": ({}, signal.SIGTERM),
    "one by name": ({"stopSignal": "SIGINT"}, signal.SIGINT),
    "one for real time": ({"stopSignal": "SIGRTMIN+3"}, signal.SIGRTMIN + 3),
    "one counted from the last": ({"stopSignal": "SIGRTMAX-2"}, signal.SIGRTMAX - 2),
    "one of another system": ({"stopSignal": "SIGNOSUCH"}, signal.SIGTERM),
}


@pytest.mark.parametrize(("lifecycle", "number"), SIGNALS.values(), ids=SIGNALS)
def test_d07_a_container_is_asked_to_stop_by_the_signal_it_wants(lifecycle, number):
    assert stop_signal(container(lifecycle=lifecycle)) == number


CHOSEN = {
    "nobody": (None, "main", None),
    "somebody": ("SIGINT", "main", signal.SIGINT),
    "somebody, for real time": ("SIGRTMIN+3", "main", signal.SIGRTMIN + 3),
    "one of another system": ("SIGNOSUCH", "main", None),
    "no number at all": ("SIGINT+x", "main", None),
    "somebody, but a sidecar has its own": ("SIGINT", "beside", None),
}


@pytest.mark.parametrize(("word", "name", "number"), CHOSEN.values(), ids=CHOSEN)
def test_d07_the_signal_is_chosen_when_a_pod_is_stopped_by(word, name, number):
    chosen = {} if word is None else {"paceline.dev/stop-signal": word}
    beside = {"name": "beside", "restartPolicy": "Always"}
    stopped = {"metadata": {"annotations": chosen}, "spec": {"initContainers": [beside], "containers": []}}

    assert chosen_signal(stopped, name) == number
