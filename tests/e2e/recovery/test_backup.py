"""A backup of a cluster that runs, and what becomes of the cluster when it is put back."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded, wait_until
from tests.e2e.support.counting_job import Counting


@pytest.fixture
def cluster() -> Iterator[Embedded]:
    with embedded() as running:
        yield running


def create(cluster: Embedded, name: str) -> None:
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    made = cluster.kubectl("create", "-f", "-", stdin=body)
    assert made.code == 0, made.err


def listed(cluster: Embedded) -> tuple[set[str], int]:
    """The names of our config maps, and the revision of the list."""
    said = json.loads(cluster.kubectl("get", "--raw", "/api/v1/namespaces/default/configmaps").out)
    names = {item["metadata"]["name"] for item in said["items"] if item["metadata"]["name"].startswith("made-")}
    return names, int(said["metadata"]["resourceVersion"])


def up(cluster: Embedded) -> None:
    started = cluster.paceline("up", "-d")
    assert started.code == 0, started.err


def test_a_backup_of_a_running_cluster_brings_back_what_was_there(cluster: Embedded, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    create(cluster, "made-before")
    done = cluster.paceline("cluster", "backup", str(backup))
    assert done.code == 0, done.err
    assert "objects at revision" in done.out
    assert backup.stat().st_mode & 0o777 == 0o600
    assert "already exists" in cluster.paceline("cluster", "backup", str(backup)).err
    create(cluster, "made-after")
    names, revision = listed(cluster)
    assert names == {"made-before", "made-after"}

    refused = cluster.paceline("cluster", "restore", str(backup))
    assert refused.code != 0
    assert "stop it with `paceline down`" in refused.err
    assert cluster.paceline("down").code == 0
    restored = cluster.paceline("cluster", "restore", str(backup))
    assert restored.code == 0, restored.err
    up(cluster)

    names, later = listed(cluster)
    assert names == {"made-before"}
    assert later > revision
    old = cluster.kubectl("get", "--raw", f"/api/v1/configmaps?watch=1&resourceVersion={revision}&timeoutSeconds=1")
    assert json.loads(old.out.splitlines()[0])["object"]["reason"] == "Expired"
    assert cluster.paceline("cluster", "verify").code == 0


@pytest.mark.slow
def test_processes_of_pods_that_the_backup_does_not_know_are_ended(cluster: Embedded, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    assert cluster.paceline("cluster", "backup", str(backup)).code == 0
    job = Counting(cluster=cluster, lines=3, is_held=True)
    job.submit()
    assert job.wait_running()
    assert cluster.paceline("down", "--keep-jobs").code == 0
    assert cluster.paceline("cluster", "restore", str(backup)).code == 0

    up(cluster)

    wait_until("no process of the job is left", lambda: not job.processes())
    assert cluster.kubectl("get", "pods", "-o", "name").out == ""


@pytest.mark.slow
def test_a_job_that_the_backup_knows_runs_on(cluster: Embedded, tmp_path: Path) -> None:
    job = Counting(cluster=cluster, lines=3, is_held=True)
    job.submit()
    running = job.wait_running()
    assert cluster.paceline("cluster", "backup", str(tmp_path / "backup")).code == 0
    assert cluster.paceline("down", "--keep-jobs").code == 0
    assert cluster.paceline("cluster", "restore", str(tmp_path / "backup")).code == 0

    up(cluster)

    assert job.processes() == running
    job.let_go()
    assert job.wait("Succeeded")["attempt"] == 0


@pytest.mark.slow
def test_a_damaged_backup_is_named_and_nothing_is_changed(cluster: Embedded, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    create(cluster, "made-before")
    assert cluster.paceline("cluster", "backup", str(backup)).code == 0
    data = backup.read_bytes()
    backup.write_bytes(data.replace(b'"name":"made-before"', b'"name":"made-befoRe"'))
    assert cluster.paceline("down").code == 0

    checked, refused = (
        cluster.paceline("cluster", "verify", str(backup)),
        cluster.paceline("cluster", "restore", str(backup)),
    )

    assert checked.code != 0
    assert refused.code != 0
    assert "made-before at revision" in refused.err
    assert "Traceback" not in refused.err
    up(cluster)
    assert listed(cluster)[0] == {"made-before"}
