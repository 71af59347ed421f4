"""A log of 100 MB becomes a file, by HTTP and by the command, and nobody on its way holds all of it."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded
from tests.e2e.support.api_caller import Door
from tests.e2e.support.data_jobs import ended, job, submit

pytestmark = pytest.mark.slow

LINES, WIDTH = 1_000_000, 105
# Of a log of 105 MB.
MOST_GROWTH = 20_000_000
TALK = f"import sys; [print(str(number).zfill({WIDTH - 1})) for number in range({LINES})]"


def printed() -> bytes:
    return b"".join(b"%0*d\n" % (WIDTH - 1, number) for number in range(LINES))


def peak(pid: int) -> int:
    """Give the most memory that a process has had since its peak was last forgotten, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def forget_peak(pid: int) -> int:
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak(pid)


@pytest.fixture(scope="module")
def path(cluster: Embedded) -> str:
    """Where the API server has the log of a job that has printed so much."""
    submit(cluster, job("large", f'python3 -c "{TALK}"'))
    found = ended(cluster, "large", seconds=240)
    assert found["phase"] == "Succeeded", found
    pod = found["tasks"][0]["replicas"][0]["name"]
    return f"/api/v1/namespaces/default/pods/{pod}/log?container=main"


@pytest.fixture
def grown(cluster: Embedded, path: str) -> Callable[[], int]:
    """Tell by how much the server or the agent has grown at most since the test began."""
    assert path
    pids = [pid for pid in (cluster.control_pid, cluster.agent_pid) if pid is not None]
    before = {pid: forget_peak(pid) for pid in pids}
    assert len(before) == 2
    return lambda: max(peak(pid) - at for pid, at in before.items())


def test_s45_a_log_of_100_megabytes_becomes_a_file_and_nobody_holds_all_of_it(cluster, path, grown, tmp_path):
    wanted, downloaded, written = printed(), tmp_path / "large-main.log", tmp_path / "written.log"

    with Door(cluster).ask("GET", path) as answer, downloaded.open("wb") as file:
        assert answer.status == 200
        shutil.copyfileobj(answer, file)
    done = cluster.paceline("logs", "large", "-o", str(written), seconds=120)

    assert done.code == 0, done.err
    # Not by ==, whose explanation would take all night.
    assert wanted.startswith(downloaded.read_bytes())
    assert wanted.startswith(written.read_bytes())
    assert downloaded.stat().st_size == written.stat().st_size == LINES * WIDTH
    assert grown() < MOST_GROWTH


def test_s45_a_reader_who_stops_reading_does_not_fill_the_memory(cluster, path, grown):
    with Door(cluster).ask("GET", path) as stuck:
        assert len(stuck.read(1000)) == 1000
        # Who sends on without being read has sent all of it by the time that another reader has it.
        assert len(Door(cluster).read(path)) == LINES * WIDTH

        assert grown() < MOST_GROWTH
