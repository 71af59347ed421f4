"""A disk that does not confirm a write: the control process ends and comes back, and loses nothing it acknowledged."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.host.lockfile import is_ready
from paceline.testing.embedded import Embedded, embedded, wait_until
from tests.e2e.recovery.test_disk import create
from tests.e2e.support.counting_job import Counting

pytestmark = pytest.mark.slow

FAILING = Path(__file__).parents[1] / "jobs" / "failing_sync"


@pytest.fixture
def cluster() -> Iterator[Embedded]:
    path = os.pathsep.join(filter(None, (str(FAILING), os.environ.get("PYTHONPATH"))))
    with embedded(env={"PYTHONPATH": path}) as running:
        yield running


def test_after_a_failed_sync_the_cluster_comes_back_when_the_disk_works(cluster: Embedded) -> None:
    job = Counting(cluster=cluster, lines=3, is_held=True)
    job.submit()
    running = job.wait_running()
    assert create(cluster, "acknowledged").code == 0
    first = cluster.control_pid
    disk, done = cluster.home / "broken-disk", cluster.home / "broken-disk.done"

    disk.touch()
    wait_until("the disk is broken", lambda: done.exists() and done.read_text() == str(first))
    refused = create(cluster, "refused")
    wait_until("the control process has ended", lambda: cluster.control_pid != first)

    assert refused.code != 0
    # It is tried again all the time, and says what is wrong.
    wait_until("another one meets the broken disk", lambda: done.read_text() not in ("", str(first)))
    wait_until("the log tells", lambda: "the disk did not confirm a write" in cluster.settings.log.read_text())
    assert cluster.supervisor_pid is not None
    disk.unlink()
    wait_until("it is back", lambda: is_ready(cluster.settings.lock) and create(cluster, "after").code == 0)

    assert cluster.kubectl("get", "--raw", "/readyz").out == "ok"
    names = cluster.kubectl("get", "configmaps", "-o", "name").out
    assert "configmap/acknowledged" in names
    assert job.processes() == running
    job.let_go()
    assert job.wait("Succeeded")["attempt"] == 0
