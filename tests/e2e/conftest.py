"""One embedded cluster per test module: the real command, started once, ended for good."""

import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded
from tests.e2e.support.containers import machine, prepare

HERE = Path(__file__).parent
# Of a cluster's own log, where a test has failed.
SHOWN_LINES = 40


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show beside a failure what the clusters of its test say, and which of their processes are there."""
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, Embedded):
                report.sections.append((f"{name} in {value.home}", state_of(value)))
    return report


def state_of(cluster: Embedded) -> str:
    pids = {"supervisor": cluster.supervisor_pid, "control": cluster.control_pid, "agent": cluster.agent_pid}
    log = cluster.settings.log
    lines = log.read_text(errors="replace").splitlines()[-SHOWN_LINES:] if log.exists() else ["it has no log"]
    return "\n".join((f"processes: {pids}", *lines))


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
