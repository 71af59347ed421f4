"""Whoever is killed, and whenever: started again, the life goes on and ends as if nothing had happened.

The same objects with the same phases, counters and exit codes; every program executed once per try; no story about a
job told twice; and all along the invariants of the simulation.
"""

import pytest

from paceline.testing.sim.scenario import COMPONENTS
from tests.crash.choices import (
    again,
    every_await,
    every_request,
    every_state,
    every_turn,
    every_write,
    late_starts,
    once,
)
from tests.crash.lives import LIVES
from tests.crash.replay import check

# Lives of `make test`: one with a job, one with pods alone; `make test-all` goes through the others.
SAMPLE = ("sweep", "pods")
# Of the long lists, every so-many-th in `make test-all`; a soak goes through all of them.
STRIDE = 150

pytestmark = pytest.mark.timeout(900)

in_every_life = pytest.mark.parametrize("life", LIVES)
in_lives = pytest.mark.parametrize(
    "life", [life if life in SAMPLE else pytest.param(life, marks=pytest.mark.slow) for life in LIVES]
)
every_component = pytest.mark.parametrize("component", COMPONENTS)
those_who_ask = pytest.mark.parametrize("component", ["agent", "controllers"])
soak = pytest.mark.soak
long = pytest.mark.timeout(1800)


@in_lives
@every_component
def test_killed_at_a_write(life, component):
    assert check(life, map(once, every_state(life, component)))


@pytest.mark.slow
@every_component
def test_killed_at_an_await(component):
    assert sum(check(life, map(once, every_await(life, component))) for life in LIVES)


@in_lives
@every_component
def test_killed_together_with_the_other(life, component):
    crashes = list(every_write(life, component))[::STRIDE]
    assert check(life, (once(crash, together=True) for crash in crashes))


@in_lives
@every_component
def test_killed_again_while_coming_back(life, component):
    crashes = list(every_write(life, component))[::STRIDE]
    assert check(life, (again(crash, later=3) for crash in crashes))


@in_lives
@those_who_ask
def test_what_was_asked_for_happens_after_the_next_start(life, component):
    crashes = list(every_request(life, component))[:: STRIDE // 3]
    assert check(life, (once(crash, down_seconds=0.0, late_turns=40) for crash in crashes))


@pytest.mark.slow
def test_no_program_runs_twice_when_its_start_comes_late():
    assert check("pods", late_starts("pods"))


@soak
@long
@in_every_life
@every_component
@pytest.mark.parametrize("down_seconds", [0.0, 1.0, 20.0])
def test_killed_at_every_write(life, component, down_seconds):
    assert check(life, (once(crash, down_seconds=down_seconds) for crash in every_write(life, component)))


@soak
@long
@in_every_life
@every_component
def test_killed_at_every_turn(life, component):
    assert check(life, map(once, every_turn(life, component)))


@soak
@long
@in_every_life
@every_component
def test_killed_together_with_the_other_at_every_write(life, component):
    assert check(life, (once(crash, together=True) for crash in every_write(life, component)))


@soak
@long
@in_every_life
@every_component
@pytest.mark.parametrize("later", [1, 2, 5, 9])
def test_killed_again_while_coming_back_from_every_write(life, component, later):
    assert check(life, (again(crash, later=later) for crash in every_write(life, component)))


@soak
@long
@in_every_life
@those_who_ask
@pytest.mark.parametrize("late_turns", [0, 10, 20, 40, 80])
def test_whatever_was_asked_for_happens_after_the_next_start(life, component, late_turns):
    crashes = every_request(life, component)
    assert check(life, (once(crash, down_seconds=0.0, late_turns=late_turns) for crash in crashes))


@soak
@long
@in_every_life
def test_no_program_of_any_life_runs_twice_when_its_start_comes_late(life):
    assert check(life, late_starts(life))
