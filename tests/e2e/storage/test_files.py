"""The files and curves of a claim, through the Explorer that serves them, with real pods."""

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.client.kubeconfig import load
from paceline.client.sync import DirectCluster
from paceline.presentation.explorer import PART_BYTES
from paceline.sdk.files import VolumeFiles
from paceline.testing.embedded import Embedded, paceline_command, wait_until
from tests.unit.podtools.files.event_files import event, event_file, simple

JOB = """\
apiVersion: batch.tensorstack.dev/v1beta1
kind: PyTorchTrainingJob
metadata: {name: digits}
spec:
  tensorboardSpec: {trainingLogFilesets: [t9k://pvc/data/logs], image: nobody/has-this, suspend: true}
  replicaSpecs:
    - type: worker
      replicas: 1
      template:
        spec:
          containers:
            - name: pytorch
              image: python
              command: [python3, -c, "for step in range(1, 4): print(f'step {step} loss={1 / step}')"]
"""


def paceline(cluster: Embedded, *arguments: str, stdin: str = "") -> str:
    ran = cluster.paceline(*arguments, stdin=stdin)
    assert ran.code == 0, ran.err
    return str(ran.out)


@pytest.fixture(scope="module", autouse=True)
def volume(cluster: Embedded) -> None:
    paceline(cluster, "volume", "create", "data", "--size", "1Gi")


def test_t15_files_go_in_and_out_of_a_volume_unchanged(cluster: Embedded, tmp_path: Path) -> None:
    source = tmp_path / "model.bin"
    source.write_bytes(os.urandom(20_000_000))
    paceline(cluster, "volume", "put", str(source), "data:models/")
    assert paceline(cluster, "volume", "ls", "data:models", "-o", "name").split() == ["model.bin"]
    paceline(cluster, "volume", "get", "data:models/model.bin", str(tmp_path / "back.bin"))
    assert (tmp_path / "back.bin").read_bytes() == source.read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    taken = cluster.paceline("volume", "put", str(source), "data:models/")
    assert (taken.code, taken.err) == (1, "error: models/model.bin: exists already\n")
    assert "models" in paceline(cluster, "volume", "du", "data")
    paceline(cluster, "volume", "rm", "data:models", "-r", "-y")
    assert "models" not in paceline(cluster, "volume", "ls", "data", "-o", "name")


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cut(cluster: Embedded, enough: int, size_of: Callable[[], int], *arguments: str) -> int:
    """Kill a command once so many bytes have arrived; return how many had."""
    with subprocess.Popen([paceline_command(), "volume", *arguments], env=cluster.environment()) as command:
        wait_until("a part has arrived", lambda: size_of() >= enough or command.poll() is not None, seconds=600)
        command.kill()
    assert command.returncode == -signal.SIGKILL, "it ended before it could be cut"
    return size_of()


SIZES = [
    pytest.param(12 * PART_BYTES, id="100M", marks=pytest.mark.slow),
    pytest.param(2_000_000_000, id="2G", marks=[pytest.mark.soak, pytest.mark.timeout(1800)]),
]


@pytest.mark.parametrize("size", SIZES)
def test_t15_a_large_file_that_is_cut_goes_on_both_ways_and_is_the_same_bytes(
    cluster: Embedded, tmp_path: Path, size: int
) -> None:
    """A8: the client is killed in the middle, and the pod of the Explorer deleted in the middle of the rest."""
    name, source, back = f"large-{size}.bin", tmp_path / f"large-{size}.bin", tmp_path / "back.bin"
    with source.open("wb") as file:
        for _ in range(0, size, 1 << 20):
            file.write(os.urandom(min(1 << 20, size - file.tell())))
    assert source.stat().st_size == size
    paceline(cluster, "volume", "ls", "data")
    claim = json.loads(paceline(cluster, "get", "pvc", "data", "-o", "json"))
    volume = json.loads(cluster.kubectl("get", "pv", claim["spec"]["volumeName"], "-o", "json").out)["spec"]
    folder = Path((volume.get("hostPath") or volume["local"])["path"])

    def unfinished(where: Path) -> int:
        return max((path.stat().st_size for path in where.glob(".*") if path.is_file()), default=0)

    def kill_server(done: int, _total: int) -> None:
        offsets.append(done)
        if done > size * 2 // 3 and not killed:
            killed.append(cluster.kubectl("delete", "pods", "--all", "--now").out)

    arrived = cut(cluster, size // 3, lambda: unfinished(folder), "put", str(source), "data")
    with DirectCluster(load(cluster.kubeconfig, Path.read_bytes)) as direct:
        files = VolumeFiles(cluster=direct, namespace="default", claim="data")
        offsets: list[int] = []
        killed: list[str] = []
        files.upload(source, name, progress=kill_server)
        assert "deleted" in killed[0]
        assert arrived - PART_BYTES <= offsets[0] <= size
        assert offsets[0] > 0
        assert digest_of(folder / name) == digest_of(source)

        arrived = cut(cluster, size // 3, lambda: unfinished(tmp_path), "get", f"data:{name}", str(back))
        offsets, killed = [], []
        files.download(name, back, progress=kill_server)
        assert "deleted" in killed[0]
        assert offsets[0] == arrived
    assert digest_of(back) == digest_of(source)
    assert unfinished(tmp_path) == unfinished(folder) == 0
    paceline(cluster, "volume", "rm", f"data:{name}", "-y")


def test_h66_the_metrics_of_a_job_come_from_its_event_files_or_from_its_log(cluster: Embedded, tmp_path: Path) -> None:
    paceline(cluster, "run", "-", stdin=JOB)
    listed = json.loads(paceline(cluster, "metrics", "digits", "-o", "json"))
    assert listed["source"] == "logs"
    (loss,) = listed["items"]
    assert [point["value"] for point in loss["points"]] == [1.0, 0.5, 1 / 3]
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "events.out.tfevents.1").write_bytes(event_file(*(event(step, simple("acc", 0.5)) for step in (1, 2))))
    paceline(cluster, "volume", "put", str(logs), "data")
    listed = json.loads(paceline(cluster, "metrics", "digits", "-o", "json"))
    assert (listed["source"], listed["items"][0]["name"], listed["items"][0]["count"]) == ("events", "acc", 2)
    assert "acc" in paceline(cluster, "metrics", "digits", "acc")


def test_an_explorer_that_nobody_uses_ends_and_the_next_request_wakes_it(cluster: Embedded) -> None:
    paceline(cluster, "volume", "create", "quiet", "--size", "1Gi")
    manifest = {
        "apiVersion": "tensorstack.dev/v1beta1",
        "kind": "Explorer",
        "metadata": {"name": "quiet"},
        "spec": {"storageType": "pvc", "storageName": "quiet", "idleSeconds": 3},
    }
    paceline(cluster, "submit", "-", stdin=json.dumps(manifest))

    def is_asleep() -> bool:
        explorer = json.loads(paceline(cluster, "get", "explorer", "quiet", "-o", "json"))
        return bool((explorer.get("status") or {}).get("phase") == "Paused")

    wait_until("it sleeps", is_asleep)
    assert paceline(cluster, "volume", "ls", "quiet") == ""
