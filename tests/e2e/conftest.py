"""One embedded cluster per test module: the real command, started once, ended for good."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded
from tests.e2e.boxes import machine, prepare

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded() as running:
        yield running


@pytest.fixture(scope="session")
def meet_script() -> str:
    """The text of a script whose members must find each other."""
    return (HERE / "jobs" / "meet.py").read_text()


@pytest.fixture
async def world():
    async with machine() as real:
        yield real


@pytest.fixture
def container(world, tmp_path):
    """Makes the folder of a container that runs a command, and ends what a failed test leaves."""
    made = []

    def make(*command, name="0", root=tmp_path, **launch):
        made.append(prepare(world, root, tuple(command), name=name, **launch))
        return made[-1]

    yield make
    for box in made:
        if world.processes.holds(box.folder):
            box.signal(signal.SIGQUIT)
