"""The whole cluster lives through random faults, and no invariant breaks; planted bugs are found."""

import logging
from collections.abc import Iterator

import pytest

from paceline.testing.sim.run import Failed, simulate
from tests.integration.planted import PLANTS

EVENTS = 10_000
SEEDS = range(20)
# A smoke of the above, for `make test`.
FEW_EVENTS = 1_000
FEW_SEEDS = range(3)
# Other seeds than above, ten times as many: `make simulation`.
SOAK_SEEDS = range(20, 220)
# A bug shows early, and many short runs differ more than a long one.
EVENTS_TO_FIND_A_BUG = 2_000
SEEDS_TO_FIND_A_BUG = 50
# Most show when all has come to rest, after very short runs too: ten of those cost less than two of the others.
SHORT_RUNS = tuple((seed, 300) for seed in range(10))
LONG_RUNS = tuple((seed, EVENTS_TO_FIND_A_BUG) for seed in range(SEEDS_TO_FIND_A_BUG))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Say nothing: a simulated hour of trouble fills a page."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", FEW_SEEDS)
def test_no_invariant_breaks_in_a_short_run(seed: int) -> None:
    assert simulate(seed, FEW_EVENTS).events >= FEW_EVENTS


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_invariant_breaks_whatever_happens(seed: int) -> None:
    assert simulate(seed, EVENTS).events >= EVENTS


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_no_invariant_breaks_with_ten_times_as_many_seeds(seed: int) -> None:
    assert simulate(seed, EVENTS).events >= EVENTS


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_gives_the_same_long_trace_twice(seed: int) -> None:
    assert simulate(seed, EVENTS) == simulate(seed, EVENTS)


@pytest.mark.parametrize("seed", [3, 8])
def test_the_same_seed_gives_the_same_trace_twice(seed: int) -> None:
    assert simulate(seed, FEW_EVENTS) == simulate(seed, FEW_EVENTS)


def test_other_seeds_give_other_runs() -> None:
    assert simulate(1, 300).digest != simulate(2, 300).digest


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, first = PLANTS[name]
    plant(monkeypatch)

    for seed, events in (first, *SHORT_RUNS, *LONG_RUNS):
        try:
            simulate(seed, events)
        except Failed:
            return
    pytest.fail(f"{SEEDS_TO_FIND_A_BUG} seeds did not find that {name}")
