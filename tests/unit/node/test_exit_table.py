"""All exit codes and all signals under all restart policies: what the pod's status says, and what happens next."""

import pytest

from paceline.node.lifecycle.decide import decide
from paceline.node.lifecycle.view import ContainerAttempt, ContainerStart, ExitRecord
from paceline.node.runtime import shim
from tests.unit.node.pods import NOW, ago, container, deleted, pod, started, view

CODES, SIGNALS, POLICIES = range(256), range(1, 65), ("Always", "OnFailure", "Never")
# The order of a row: policy, whether it ended well; then phase, and whether the container is started again.
TABLE = {
    ("Always", True): ("Running", True),
    ("Always", False): ("Running", True),
    ("OnFailure", True): ("Succeeded", False),
    ("OnFailure", False): ("Running", True),
    ("Never", True): ("Succeeded", False),
    ("Never", False): ("Failed", False),
}


def waited(code=0, number=0, *, core=False):
    """Write a wait status as the kernel does."""
    return number | (0x80 if core else 0) | code << 8


def after(status, *, restarts=0, reason=None):
    """Give a try that ended with this wait status a moment ago."""
    code, number, word = shim.decode_wait_status(status)
    end = ExitRecord(exit_code=code, signal=number, reason=reason or word, started_at=ago(30), finished_at=NOW)
    return ContainerAttempt(restarts=restarts, started=started(30), ended=end)


def main_status(plan):
    (status,) = plan.status["containerStatuses"]
    return status


def told(state):
    """What a person reads of an end."""
    end = state["terminated"]
    return end["exitCode"], end.get("signal"), end["reason"]


STATUSES = {
    **{f"exit {code}": (waited(code), (code, None, "Error" if code else "Completed")) for code in CODES},
    **{f"signal {number}": (waited(number=number), (128 + number, number, "Error")) for number in SIGNALS},
    **{f"core {number}": (waited(number=number, core=True), (128 + number, number, "Error")) for number in (3, 6, 11)},
}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_end_has_its_phase_and_its_words_under_every_policy(policy):
    for name, (status, words) in STATUSES.items():
        plan = decide(view(pod(policy=policy), {"main": after(status)}), NOW)

        phase, again = TABLE[policy, words[0] == 0]
        assert plan.status["phase"] == phase, name
        # The first restart comes at once, so that the end itself is what the status shows.
        assert told(main_status(plan)["state"]) == words, name
        assert plan.start == ((ContainerStart(container="main", restarts=1),) if again else ()), name
        assert not main_status(plan)["ready"], name


@pytest.mark.parametrize("policy", POLICIES)
def test_every_end_of_a_later_try_is_what_the_pause_looks_back_to(policy):
    for name, (status, words) in STATUSES.items():
        plan = decide(view(pod(policy=policy), {"main": after(status, restarts=1)}), NOW)

        phase, again = TABLE[policy, words[0] == 0]
        found = main_status(plan)
        assert (plan.status["phase"], plan.start, found["restartCount"]) == (phase, (), 1), name
        if again:
            assert found["state"]["waiting"]["reason"] == "CrashLoopBackOff", name
            assert found["state"]["waiting"]["message"].startswith("back-off 10s restarting failed container=main "), (
                name
            )
        assert told(found["lastState"] if again else found["state"]) == words, name
        assert (plan.wake_at is not None) == again, name


def test_every_end_decides_over_an_init_container():
    for name, (status, words) in STATUSES.items():
        for policy in POLICIES:
            first = pod(policy=policy, initContainers=[container("first")])
            plan = decide(view(first, {"first": after(status)}), NOW)

            is_good = words[0] == 0
            following = (
                ContainerStart(container="main", restarts=0)
                if is_good
                else ContainerStart(container="first", restarts=1)
            )
            is_over = policy == "Never" and not is_good
            assert plan.start == (() if is_over else (following,)), (name, policy)
            assert plan.status["phase"] == ("Failed" if is_over else "Pending"), (name, policy)
            assert told(plan.status["initContainerStatuses"][0]["state"]) == words, (name, policy)


def test_every_end_of_a_pod_that_is_being_deleted_is_its_last():
    for name, (status, words) in STATUSES.items():
        for policy in POLICIES:
            plan = decide(view(deleted(policy=policy), {"main": after(status)}), NOW)

            assert plan.status["phase"] == ("Succeeded" if words[0] == 0 else "Failed"), (name, policy)
            assert (plan.start, plan.remove) == ((), True), (name, policy)
            assert told(main_status(plan)["state"]) == words, (name, policy)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("status", "reason"),
    [(waited(137), "OOMKilled"), (waited(128), "StartError"), (waited(137), "ShimLost"), (waited(137), "NodeRebooted")],
)
def test_a_word_that_says_more_is_kept_and_counts_as_a_failure(policy, status, reason):
    plan = decide(view(pod(policy=policy), {"main": after(status, reason=reason)}), NOW)

    phase, again = TABLE[policy, False]
    assert plan.status["phase"] == phase
    assert told(main_status(plan)["state"]) == (status >> 8, None, reason)
    assert bool(plan.start) == again


def test_the_worst_of_two_containers_decides_once_both_have_ended():
    for policy in POLICIES:
        for code in CODES:
            two = pod(container("a"), container("b"), policy=policy)
            plan = decide(view(two, {"a": after(waited(0)), "b": after(waited(code))}), NOW)

            assert plan.status["phase"] == TABLE[policy, code == 0][0], (policy, code)
