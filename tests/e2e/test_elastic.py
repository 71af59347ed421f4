"""A real elastic training by torchrun grows, loses a worker, shrinks, and goes on from its checkpoint each time."""

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.testing.embedded import Embedded, embedded, wait_until
from tests.e2e.manifests import claim, pytorch, text

SCRIPT = Path(__file__).parent / "jobs" / "elastic.py"
# Every change of size starts Python and PyTorch again in all workers.
PATIENCE_SECONDS = 150.0

# Torchrun waits half a minute for late comers at every change of size: a test that mostly waits, for `make soak`.
pytestmark = [pytest.mark.timeout(900), pytest.mark.soak]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    environment = os.environ.get("PACELINE_PYTORCH")
    if not environment:
        pytest.skip("no PyTorch: type `make test`, or PACELINE_PYTORCH=$(tools/setup torch) pytest …")
    with embedded("--image", f"pytorch/pytorch*={environment}") as running:
        yield running


def job() -> dict[str, Any]:
    made = pytorch(
        "grow",
        command=["python"],
        image="pytorch/pytorch:2.13.0",
        args=["elastic.py"],
        workingDir="/work",
        restartPolicy="OnFailure",
        volumeMounts=[{"name": "work", "mountPath": "/work"}],
        volumes=[{"name": "work", "persistentVolumeClaim": {"claimName": "grow"}}],
    )
    made["spec"]["torchrunConfig"] = {"enabled": True, "maxRestarts": 20, "extraOptions": ["--monitor_interval=0.5"]}
    made["spec"]["elastic"] = {"enabled": True, "minReplicas": 1, "maxReplicas": 3, "expectedReplicas": 2}
    return made


def folder_of(cluster: Embedded, name: str) -> Path:
    """Make the folder behind a claim."""
    where = ("get", "pvc", name, "-o", "jsonpath={.spec.volumeName}")
    volume = wait_until("the claim is bound", lambda: cluster.kubectl(*where).out)
    path = Path(cluster.kubectl("get", "pv", volume, "-o", "jsonpath={.spec.hostPath.path}").out)
    path.mkdir(parents=True, exist_ok=True)
    return path


def kill(pod: str) -> None:
    """Kill the programs of a pod, as a machine without memory would: its torchrun and what that has started."""
    mine = [
        int(each.parent.name)
        for each in Path("/proc").glob("[0-9]*/environ")
        if f"HOSTNAME={pod}".encode() in _read(each) and b"elastic.py" in _read(each.with_name("cmdline"))
    ]
    assert mine
    for pid in mine:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def resize(cluster: Embedded, size: int) -> None:
    wanted = json.dumps({"spec": {"elastic": {"expectedReplicas": size}}})
    assert cluster.kubectl("patch", "pj", "grow", "--type=merge", "-p", wanted).code == 0


def status(cluster: Embedded) -> dict[str, Any]:
    return dict(json.loads(cluster.kubectl("get", "pj", "grow", "-o", "jsonpath={.status}").out or "{}"))


def test_two_three_two_with_a_killed_worker(cluster: Embedded) -> None:
    assert cluster.paceline("submit", "-", stdin=text(claim("grow"))).code == 0
    folder = folder_of(cluster, "grow")
    shutil.copy(SCRIPT, folder)
    assert cluster.paceline("submit", "-", stdin=text(job())).code == 0

    def counts(world: int, after: int) -> int:
        """Wait until so many count together, beyond a step; give the step they are at."""

        def found() -> int:
            path = folder / "checkpoint.json"
            now = json.loads(path.read_text()) if path.exists() else {"world": 0, "step": 0}
            return int(now["step"]) if now["world"] == world and now["step"] > after else 0

        return wait_until(f"{world} workers count beyond step {after}", found, PATIENCE_SECONDS)

    step = counts(2, 0)
    resize(cluster, 3)
    step = counts(3, step)
    pod = cluster.kubectl("get", "pods", "-l", "replica-index=1", "-o", "jsonpath={.items[0].metadata.name}").out
    before = status(cluster)["backoffCount"]
    kill(pod)
    wait_until("the worker is tried again", lambda: status(cluster)["backoffCount"] > before, PATIENCE_SECONDS)
    step = counts(3, step)
    resize(cluster, 2)
    step = counts(2, step)
    (folder / "stop").touch()
    wait_until("the job ends", lambda: status(cluster)["phase"] in ("Succeeded", "Failed"), PATIENCE_SECONDS)

    over = status(cluster)
    assert (over["phase"], over["attempt"]) == ("Succeeded", 0)
    assert pod.endswith("-worker-1")
    assert over["elastic"]["expectedReplicas"] == 2
