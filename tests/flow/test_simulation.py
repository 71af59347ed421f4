"""The whole cluster lives through random faults, and no invariant breaks; planted bugs are found."""

import logging
from collections.abc import Iterator

import pytest

from paceline.testing.simrun import Failed, simulate
from tests.flow.planted import PLANTS

EVENTS = 2_000
SEEDS = 40
BATCH = 4
SOAK_SEEDS = 1_060
SEEDS_TO_FIND_A_BUG = 50


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Say nothing: a simulated hour of trouble fills a page."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_no_invariant_breaks_whatever_happens(first: int) -> None:
    for seed in range(first, first + BATCH):
        assert simulate(seed, EVENTS).events >= EVENTS


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + SOAK_SEEDS, 53))
def test_no_invariant_breaks_in_a_long_run(first: int) -> None:
    for seed in range(first, first + 53):
        assert simulate(seed, EVENTS).events >= EVENTS


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", [3, 8])
def test_the_same_seed_gives_the_same_trace_twice(seed: int) -> None:
    assert simulate(seed, EVENTS) == simulate(seed, EVENTS)


def test_other_seeds_give_other_runs() -> None:
    assert simulate(1, 300).digest != simulate(2, 300).digest


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS[name](monkeypatch)

    for seed in range(SEEDS_TO_FIND_A_BUG):
        try:
            simulate(seed, EVENTS)
        except Failed:
            return
    pytest.fail(f"{SEEDS_TO_FIND_A_BUG} seeds did not find that {name}")
