"""When a control process is started again, and what is said of its end."""

import pytest

from paceline.cluster.supervisor import MOST_PAUSE_SECONDS, Exit, pause_after


def test_pauses_grow_to_a_bound():
    pauses = [pause_after(failures) for failures in range(50)]

    assert pauses[:3] == [0.0, 0.0, 0.1]
    assert pauses == sorted(pauses)
    assert pauses[-1] == MOST_PAUSE_SECONDS
    # A few crashes in a row are over soon, and a loop of them is no load.
    assert sum(pauses[:5]) < 1
    assert pauses[12] == MOST_PAUSE_SECONDS


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-9, "was killed by SIGKILL"),
        (-11, "was killed by SIGSEGV"),
        (-63, "was killed by signal 63"),
        (1, "ended with exit code 1"),
        (None, "ended"),
    ],
)
def test_how_it_ended_is_said(code, words):
    assert str(Exit(code=code, was_ready=True, seconds=1.0)) == words
