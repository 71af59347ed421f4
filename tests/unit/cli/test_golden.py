"""Error messages as users read them: each says what happened and who must act.

`UPDATE_GOLDEN=1 pytest tests/unit/cli/test_golden.py` writes the file again; read every changed message aloud.
"""

import json
import os
from pathlib import Path

import pytest
from tests.unit.sdk.conftest import JOBS, NODES, PODS

from paceline.cli.main import main

GOLDEN = Path(__file__).parent / "golden" / "errors.txt"
JOB = """\
apiVersion: batch.tensorstack.dev/v1beta1
kind: PyTorchTrainingJob
metadata: {name: digits}
spec:
  replicaSpecs:
    - type: worker
      replicas: 2
      template:
        spec:
          containers:
            - {name: pytorch, image: "python:3.11", command: [python, train.py]}
"""
FILES = {
    "job.yaml": JOB,
    "typo.yaml": JOB.replace("template:", "templat:"),
    "negative.yaml": JOB.replace("replicas: 2", "replicas: -1"),
    "name.yaml": JOB.replace("name: digits", "name: My_Job"),
    "namespace.yaml": JOB.replace("name: digits", "name: digits, namespace: one"),
    "kind.yaml": JOB.replace("PyTorchTrainingJob", "PytorchJob"),
    "quantity.yaml": JOB.replace('image: "python:3.11"', 'image: "python:3.11", resources: {limits: {memory: lots}}'),
    "list.yaml": "- a\n- b\n",
    "empty.yaml": "",
    "no-kind.yaml": "apiVersion: v1\nmetadata: {name: a}\n",
    "tabs.yaml": "spec:\n\treplicas: 2\n",
    "latin.yaml": "name: caf\udce9\n",
    "values.yaml": "worker:\nnumber: 2\nnumber: 3\n",
    "train.py": "print('hello')\n",
}
WITHOUT_CLUSTER = (
    ("fly",),
    ("list",),
    ("describ", "digits"),
    ("get", "--speed"),
    ("run",),
    ("get",),
    ("get", "--kubeconfig", "nowhere"),
    ("run", "jobb.yaml"),
    ("run", "."),
    ("check", "list.yaml"),
    ("check", "empty.yaml"),
    ("check", "no-kind.yaml"),
    ("check", "tabs.yaml"),
    ("check", "latin.yaml"),
    ("check", "typo.yaml"),
    ("check", "negative.yaml"),
    ("check", "name.yaml"),
    ("check", "kind.yaml"),
    ("check", "quantity.yaml"),
    ("check", "-n", "two", "namespace.yaml"),
    ("logs", "digits", "--since", "soon"),
    ("logs", "digits", "-f", "--until", "5m"),
    ("stop", "digits", "--signal", "TREM"),
    ("train", "train.py", "--git-user", "me"),
    ("train", "nowhere.py"),
    ("train", "train.py", "--param", "lr"),
    ("volume", "create", "photos"),
    ("repo", "create", "mnist", "--git", "git@example.org:team/mnist.git"),
    ("app", "install", "mnist", "tensorflow-trainin"),
    ("app", "template", "render", "mnist", "tensorflow-training", "-f", "values.yaml"),
    ("app", "template", "render", "mnist", "tensorflow-training", "--set", "worker.numbr=2"),
    ("env", "build", "pytorhc"),
    ("env", "prune", "--unused-for", "long"),
    ("up", "-d", "--image", "pytorch"),
    ("up", "-d", "--device", "gpu"),
    ("up", "-d", "--external-address", "0.0.0.0"),
    ("cluster", "verify", "nowhere.paceline"),
    ("cluster", "restore", "job.yaml"),
)
WITH_CLUSTER = (
    ("describe", "digts"),
    ("describe", "pood/digits"),
    ("logs", "waiting"),
    ("logs", "digits", "--role", "ps"),
    ("exec", "waiting", "nvidia-smi"),
    ("results", "digits"),
    ("pause", "ended"),
    ("restart", "ended"),
    ("scale", "digits", "--replicas", "3"),
    ("top",),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with manifests, and a cluster that was never started."""
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text.encode(errors="surrogateescape"))
    (tmp_path / "home").mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    for name in ("PACELINE_KUBECONFIG", "PACELINE_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def cluster(stage, folder, job_object, pod_object):
    """A cluster with a job that runs, one that waits and one that has ended."""
    stage.put(NODES, {"metadata": {"name": "node-1"}})
    stage.put(JOBS, job_object(phase="Running"))
    stage.put(JOBS, job_object(name="waiting", uid="uid-2"))
    stage.put(JOBS, job_object(name="ended", uid="uid-3", phase="Succeeded"))
    stage.put(PODS, pod_object())
    stage.put(PODS, waiting_pod(pod_object(phase="Pending", owner="uid-2")))
    config = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{stage.port}"}}],
        "users": [{"name": "a", "user": {}}],
    }
    (folder / "home" / "kubeconfig").write_text(json.dumps(config))
    return folder


def waiting_pod(pod):
    """Return a pod of the waiting job that no node has room for."""
    metadata = {**pod["metadata"], "name": "waiting-1a2b3-worker-0"}
    metadata["labels"] = {**metadata["labels"], "paceline.dev/owner-name": "waiting"}
    message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu"
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {**pod, "metadata": metadata, "status": {"phase": "Pending", "conditions": [condition]}}


def transcript(commands, folder, capsys):
    """Return the commands with their error output and exit codes, as a terminal shows them."""
    lines = []
    for command in commands:
        code = main(list(command))
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        assert code != 0, command
        shown = printed.err.replace(str(folder), "/home/me").rstrip("\n")
        lines += [f"$ paceline {' '.join(command)}", shown, f"exit code {code}", ""]
    return lines


def test_every_error_message_reads_as_it_did(cluster, capsys):
    kubeconfig = cluster / "home" / "kubeconfig"
    with_cluster = transcript(WITH_CLUSTER, cluster, capsys)
    kubeconfig.unlink()
    lines = [*transcript(WITHOUT_CLUSTER, cluster, capsys), *with_cluster]
    text = "\n".join(lines)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)

    assert text == GOLDEN.read_text()


def test_the_golden_file_has_at_least_thirty_messages():
    assert GOLDEN.read_text().count("\nerror: ") >= 30
