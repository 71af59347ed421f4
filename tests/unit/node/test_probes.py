"""Answers of probes are counted as Kubernetes counts them."""

from datetime import timedelta

import pytest

from paceline.node.lifecycle.decide import decide
from paceline.node.lifecycle.pod_status import pod_status
from paceline.node.probes.probes import Health, Tally, count, first_tally, health_of, is_fatal, probe_of
from tests.unit.node.pods import NOW, container, done, pod, running, view

HTTP = {"httpGet": {"port": 80}}
THRICE = (False, False, False)


def probe(kind, **said):
    return probe_of({kind: {**HTTP, **said}}, kind)


def counted(one, *answers):
    tally = first_tally(one)
    for answer in answers:
        tally = count(tally, one, is_good=answer)
    return tally


VERDICTS = {
    "nobody is ready before he says so": (probe("readinessProbe"), (), False),
    "one good answer makes ready": (probe("readinessProbe"), (True,), True),
    "a single bad answer does not take it back": (probe("readinessProbe"), (True, False, False), True),
    "three in a row do": (probe("readinessProbe"), (True, False, False, False), False),
    "a good one between them begins the count anew": (probe("readinessProbe"), (True, False, True, False, False), True),
    "more than one good answer may be wanted": (probe("readinessProbe", successThreshold=2), (True,), False),
    "and then they must come in a row": (
        probe("readinessProbe", successThreshold=2),
        (True, False, True, True),
        True,
    ),
    "who is not asked lives": (probe("livenessProbe"), (), True),
    "who is found dead once, lives": (probe("livenessProbe"), (False, False), True),
    "who is found dead three times, does not": (probe("livenessProbe"), (False, False, False), False),
    "a threshold of one is enough": (probe("livenessProbe", failureThreshold=1), (False,), False),
    "nobody has started before he says so": (probe("startupProbe"), (False,), False),
}


@pytest.mark.parametrize(("one", "answers", "verdict"), VERDICTS.values(), ids=VERDICTS)
def test_verdicts(one, answers, verdict):
    assert counted(one, *answers).verdict is verdict


def test_a_failed_readiness_never_ends_a_container():
    assert not is_fatal(counted(probe("readinessProbe"), *THRICE), probe("readinessProbe"))
    assert is_fatal(counted(probe("livenessProbe"), *THRICE), probe("livenessProbe"))
    assert is_fatal(counted(probe("startupProbe"), *THRICE), probe("startupProbe"))


def test_the_defaults_are_kubernetes_own():
    found = probe("livenessProbe")

    assert (found.delay, found.period, found.timeout) == (
        timedelta(0),
        timedelta(seconds=10),
        timedelta(seconds=1),
    )
    assert (found.successes, found.failures) == (1, 3)


GOOD, BAD = Tally(verdict=True, times=1), Tally(verdict=False, is_good=False, times=3)
ALL = container(startupProbe=HTTP, readinessProbe=HTTP, livenessProbe=HTTP)

HEALTH = {
    "before the first answer": ({}, Health(started=False, ready=False)),
    "started and not yet ready": ({"startupProbe": GOOD}, Health(ready=False)),
    "well": ({"startupProbe": GOOD, "readinessProbe": GOOD, "livenessProbe": GOOD}, Health()),
    "dead": (
        {"startupProbe": GOOD, "readinessProbe": GOOD, "livenessProbe": BAD},
        Health(alive=False, failed="livenessProbe"),
    ),
    "never started": ({"startupProbe": BAD}, Health(started=False, ready=False, alive=False, failed="startupProbe")),
}


@pytest.mark.parametrize(("tallies", "health"), HEALTH.values(), ids=HEALTH)
def test_health(tallies, health):
    assert health_of(ALL, tallies) == health


def test_a_container_that_is_not_ready_runs_but_its_pod_is_not_ready():
    status = pod_status(view(pod(), {"main": running()}, health={"main": Health(ready=False)}), NOW)

    assert (status["containerStatuses"][0]["started"], status["containerStatuses"][0]["ready"]) == (True, False)
    ready = next(each for each in status["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ContainersNotReady")


SICK = {"main": Health(alive=False, failed="livenessProbe")}


def test_a_container_that_is_found_dead_is_asked_to_go():
    assert decide(view(pod(), {"main": running()}, health=SICK), NOW).stop == ("main",)


def test_it_is_killed_when_it_takes_too_long():
    assert decide(view(pod(), {"main": running(asked=30)}, health=SICK), NOW).kill == ("main",)


def test_a_probe_may_allow_less_time_than_the_pod():
    hurried = {"main": Health(alive=False, failed="livenessProbe", grace_seconds=5)}

    assert decide(view(pod(), {"main": running(asked=5)}, health=hurried), NOW).kill == ("main",)


def test_what_was_ended_by_a_probe_comes_back_by_the_pods_policy():
    assert decide(view(pod(policy="OnFailure"), {"main": done(143)}), NOW).start
    assert not decide(view(pod(policy="Never"), {"main": done(143)}), NOW).start


def test_a_sidecar_that_has_not_started_holds_the_others_back():
    proxy = container("proxy", restartPolicy="Always", startupProbe=HTTP)
    world = view(pod(initContainers=[proxy]), {"proxy": running()}, health={"proxy": Health(started=False)})

    assert not decide(world, NOW).start
