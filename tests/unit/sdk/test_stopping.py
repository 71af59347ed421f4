"""Which signal is meant, and whether there is anybody who would send it."""

import pytest

from paceline.errors import Invalid
from paceline.sdk.job import is_ours, seconds_to_stop, signal_named

WORDS = {"int": "SIGINT", "SIGINT": "SIGINT", "Term": "SIGTERM", "USR1": "SIGUSR1", "sigkill": "SIGKILL"}


@pytest.mark.parametrize(("word", "name"), WORDS.items())
def test_d07_a_signal_is_named_as_people_write_it(word, name):
    assert signal_named(word) == name


@pytest.mark.parametrize(("word", "hint"), {"INTR": "did you mean INT?", "9": "such as INT", "": "such as INT"}.items())
def test_d07_what_is_no_signal_is_refused_with_one_that_is(word, hint):
    with pytest.raises(Invalid, match=hint.replace("?", r"\?")):
        signal_named(word)


def pod(phase, *ids):
    return {"status": {"phase": phase, "containerStatuses": [{"containerID": each} if each else {} for each in ids]}}


def test_d07_our_own_agent_alone_sends_the_signal_that_was_chosen():
    assert is_ours(pod("Running", "paceline://uid/main/0", ""))
    assert not is_ours(pod("Running", "containerd://abc"))
    assert is_ours({})


def test_d07_pods_that_have_ended_have_nobody_to_be_asked():
    assert seconds_to_stop([pod("Running")], margin=0) > 0
    assert seconds_to_stop([pod("Failed")], margin=0) == 0


def test_pods_may_take_their_grace_period_twice_since_servers_end_after_those_they_serve():
    def lives(phase, grace=None):
        return {"spec": {"terminationGracePeriodSeconds": grace}, **pod(phase)}

    assert seconds_to_stop([lives("Running", 5), lives("Failed", 600)], margin=10) == 20
    assert seconds_to_stop([lives("Running")], margin=10) == 70
    assert seconds_to_stop([lives("Running", 0)], margin=10) == 10
    assert seconds_to_stop([], margin=10) == 10
