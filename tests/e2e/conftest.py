"""One embedded cluster per test module: the real command, started once, ended for good."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded() as running:
        yield running


@pytest.fixture(scope="session")
def meet_script() -> str:
    """The text of a script whose members must find each other."""
    return (HERE / "jobs" / "meet.py").read_text()
