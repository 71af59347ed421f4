"""The files and curves of a claim, through the Explorer that serves them, with real pods."""

import json
import os
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, wait_until
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


def paceline(cluster: Embedded, *words: str, stdin: str = "") -> str:
    ran = cluster.paceline(*words, stdin=stdin)
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
