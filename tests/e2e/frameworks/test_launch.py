"""Members start processes in each other without sshd, and the job ends as the processes did."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded
from tests.e2e.support.frameworks import folder_of

pytestmark = pytest.mark.slow

KINDS = Path(__file__).parents[3] / "examples" / "03-kinds"
RANK = r"rank (\d) of 6 on (\S+): (\d+)"
HOSTS = "$(cut -d' ' -f1 /t9k/hostfile | paste -sd,)"


def workers(count: int) -> dict[str, object]:
    container = {"name": "worker", "image": "python:3.11", "resources": {"limits": {"memory": "128Mi"}}}
    return {"replicas": count, "template": {"spec": {"containers": [container]}}}


def submitted(cluster: Embedded, kind: str, name: str, spec: dict[str, object]) -> None:
    job = {"apiVersion": "batch.tensorstack.dev/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    made = cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))
    assert made.code == 0, made.err


def ended(cluster: Embedded, short: str, name: str, phase: str) -> dict[str, object]:
    waited = cluster.kubectl("wait", f"--for=jsonpath={{.status.phase}}={phase}", f"{short}/{name}", "--timeout=90s")
    found = cluster.kubectl("get", short, name, "-o", "json").out
    assert waited.code == 0, found
    status: dict[str, object] = json.loads(found)["status"]
    return status


def test_the_first_worker_reaches_all(cluster: Embedded) -> None:
    command = f"pdsh -S -w {HOSTS} 'echo member %n is $HOSTNAME in $(cat /etc/hostname)'"
    submitted(cluster, "DeepSpeedJob", "reach", {"config": {"customCommand": command}, "worker": workers(2)})

    ended(cluster, "dj", "reach", "Succeeded")

    said = cluster.paceline("logs", "reach", "--all").out
    assert sorted(re.findall(r"member (\d) is", said)) == ["0", "1"]
    # What only members may know goes with the job.
    assert cluster.kubectl("delete", "dj", "reach").code == 0
    left = cluster.kubectl("wait", "--for=delete", "secret", "-l", "tensorstack.dev/owner-name=reach", "--timeout=60s")
    assert left.code == 0, left.err


def test_a_failure_over_there_is_the_jobs_failure(cluster: Embedded) -> None:
    """T9k calls such a job succeeded; its users read logs to find out."""
    spec = {
        "torchConfig": {"script": ["train.py"]},
        "replicaSpecs": [{"type": "worker", **workers(2)}],
    }
    submitted(cluster, "ColossalAIJob", "broken", spec)

    status = ended(cluster, "caij", "broken", "Failed")

    assert status["failure"]["exitCode"] == 127, status  # type: ignore[index]
    assert "torchrun" in cluster.paceline("logs", "broken", "--all").out


@pytest.fixture(scope="module")
def with_mpi() -> Iterator[Embedded]:
    """A cluster with a real Open MPI, and the ring in a claim."""
    environment = os.environ.get("PACELINE_MPI")
    if not environment:
        pytest.skip("no Open MPI: type `make test`, or PACELINE_MPI=$(tools/setup mpi) pytest …")
    with embedded("--image", f"mpi4py*={environment}") as running:
        made = running.kubectl("apply", "-f", str(KINDS / "claim.yaml"))
        assert made.code == 0, made.err
        path = folder_of(running, "kinds")
        path.mkdir(parents=True, exist_ok=True)
        shutil.copy(KINDS / "ring.py", path)
        yield running


def test_a_real_mpirun_runs_three_workers_with_two_processes_each(with_mpi: Embedded) -> None:
    ran = with_mpi.paceline("run", str(KINDS / "mpi.yaml"))

    assert ran.code == 0, ran.out + ran.err
    said = with_mpi.paceline("logs", "ring", "--all").out
    found = {int(rank): (host, int(total)) for rank, host, total in re.findall(RANK, said)}
    assert [found[rank][1] for rank in range(6)] == [0, 1, 3, 6, 10, 15]
    assert [found[rank][0][-1] for rank in range(6)] == ["0", "0", "1", "1", "2", "2"]


def test_a_rank_that_fails_fails_the_job_with_its_code(with_mpi: Embedded) -> None:
    text = (KINDS / "mpi.yaml").read_text().replace("name: ring", "name: fails")
    made = with_mpi.kubectl("create", "-f", "-", stdin=text.replace('"2"]', '"2", -x, FAIL=3]'))
    assert made.code == 0, made.err

    status = ended(with_mpi, "mj", "fails", "Failed")

    assert status["failure"]["exitCode"] == 9, status  # type: ignore[index]
    assert status["failure"]["pod"].endswith("-launcher-0")  # type: ignore[index]
