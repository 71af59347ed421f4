"""Whoever is killed, and whenever: started again, the life goes on and ends as if nothing had happened.

The same objects with the same phases, counters and exit codes; every program executed once per try; no story about a
job told twice; and all along the invariants of the simulation.
"""

import pytest

from paceline.testing.lives import COMPONENTS
from tests.crash.choices import again, every_await, every_state, every_turn, every_write, once
from tests.crash.lives import LIVES
from tests.crash.replay import check

# Of the long lists, every so-many-th in `make test`; a soak goes through all of them.
STRIDE = 40

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.parametrize("component", COMPONENTS),
    pytest.mark.parametrize("life", LIVES),
]


def test_killed_at_a_write(life, component):
    assert check(life, map(once, every_state(life, component)))


def test_killed_at_an_await(life, component):
    assert check(life, map(once, every_await(life, component)))


def test_killed_together_with_the_other(life, component):
    crashes = list(every_write(life, component))[::STRIDE]
    assert check(life, (once(crash, together=True) for crash in crashes))


def test_killed_again_while_coming_back(life, component):
    crashes = list(every_write(life, component))[::STRIDE]
    assert check(life, (again(crash, later=3) for crash in crashes))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("down_seconds", [0.0, 1.0, 20.0])
def test_killed_at_every_write(life, component, down_seconds):
    assert check(life, (once(crash, down_seconds=down_seconds) for crash in every_write(life, component)))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_killed_at_every_turn(life, component):
    assert check(life, map(once, every_turn(life, component)))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_killed_together_with_the_other_at_every_write(life, component):
    assert check(life, (once(crash, together=True) for crash in every_write(life, component)))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("later", [1, 2, 5, 9])
def test_killed_again_while_coming_back_from_every_write(life, component, later):
    assert check(life, (again(crash, later=later) for crash in every_write(life, component)))
