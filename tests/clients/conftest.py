"""One embedded cluster per module, with what other people's clients need to find it."""

import gc
import warnings
from collections.abc import Iterator

import pytest

from paceline.testing.embedded import Embedded, embedded


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded() as running:
        yield running


@pytest.fixture
def leavings() -> Iterator[None]:
    """Collects the connections that a client leaves open, whose warning would hit whatever test comes next."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
