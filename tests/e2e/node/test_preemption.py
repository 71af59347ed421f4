"""Real pods give way to more important ones: the job of a victim is asked to stop, waits, and trains again."""

import json
from typing import Any

import pytest

from paceline.testing.embedded import embedded, wait_until
from tests.e2e.support.manifests import text
from tests.e2e.support.shell_pods import create, show, told

GPU = "nvidia.com/gpu"
# Says when it is asked to stop, as a training does that keeps a last checkpoint.
TRAINS = "trap 'echo asked to stop; exit 143' TERM; echo training; while :; do sleep 0.1; done"
URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 100000,
}


@pytest.fixture(scope="module")
def cluster():
    with embedded("--device", f"{GPU}=2") as running:
        create(running, URGENT)
        yield running


def job(name: str, script: str, **pod: Any) -> dict[str, Any]:
    """A gang of two that wants both GPUs, and has no restarts."""
    limits = {"limits": {GPU: "1"}}
    main = {"name": "pytorch", "image": "python:3.11", "command": ["sh", "-c", script], "resources": limits}
    template = {"spec": {"containers": [main], "terminationGracePeriodSeconds": 5, **pod}}
    replica = {"type": "worker", "replicas": 2, "restartPolicy": "Never", "template": template}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "PyTorchTrainingJob",
        "metadata": {"name": name},
        "spec": {"replicaSpecs": [replica], "runPolicy": {"backoffLimit": 0}},
    }


def submit(cluster, made: dict[str, Any]) -> None:
    answer = cluster.paceline("submit", "-", stdin=text(made))
    assert answer.code == 0, answer.err


def status(cluster, name: str) -> dict[str, Any]:
    return dict(show(cluster, "pytorchtrainingjobs", name).get("status") or {})


def becomes(cluster, name: str, phase: str) -> dict[str, Any]:
    return wait_until(f"{name} is {phase}", lambda: _when(status(cluster, name), phase), 60)


def _when(found: dict[str, Any], phase: str) -> dict[str, Any]:
    return found if found.get("phase") == phase else {}


def test_x14_a_running_job_gives_way_to_a_more_important_one_and_runs_again(cluster):
    submit(cluster, job("modest", TRAINS))
    becomes(cluster, "modest", "Running")
    wait_until("both train", lambda: cluster.paceline("logs", "modest", "--all").out.count("training") == 2)
    mine = "tensorstack.dev/owner-name=modest"
    victims = json.loads(cluster.kubectl("get", "pods", "-l", mine, "-o", "json").out)["items"]
    submit(cluster, job("rush", "trap 'exit 0' USR1; while :; do sleep 0.1; done", priorityClassName="urgent"))
    becomes(cluster, "rush", "Running")
    waiting = wait_until("modest waits for room", lambda: _waits(status(cluster, "modest")), 60)

    assert "preempting to accommodate a higher priority pod (default/rush-" in waiting
    assert "Insufficient nvidia.com/gpu" in waiting
    now = status(cluster, "modest")
    assert (now["phase"], now["attempt"], now["backoffCount"], now.get("failure")) == ("Pending", 1, 0, None)
    for victim in victims:
        assert told(cluster, victim["metadata"]["name"], "Preempted").startswith("Preempted by pod ")
    assert "this does not count as a restart" in told(cluster, "modest", "Preempted")
    assert "asked to stop" in cluster.paceline("logs", "modest").out
    assert cluster.paceline("delete", "rush").code == 0
    again = becomes(cluster, "modest", "Running")
    assert (again["attempt"], again["backoffCount"]) == (1, 0)


def _waits(found: dict[str, Any]) -> str:
    said = str(found.get("waiting") or "")
    return said if "nodes are available" in said else ""
