"""A node that dies, and one that is drained: the job goes on elsewhere, and its restarts are not charged."""

import pytest

from paceline.testing.embedded import wait_until
from tests.cluster.lab import WAIT_SECONDS, Lab
from tests.cluster.manifests import pytorch

pytestmark = pytest.mark.timeout(900)

WAITING = "import time; time.sleep(3600)"


def start_on(lab: Lab, name: str, node: str) -> str:
    """Run a job of one replica, at first on a certain node, and return the name of its pod."""
    prefers = {"weight": 100, "preference": {"matchExpressions": [on_node(node)]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [prefers]}}
    lab.apply(pytorch(name, WAITING, replicas=1, pod={"affinity": affinity}))
    lab.await_phase("PyTorchTrainingJob", name, "Running")
    (pod,) = lab.pods(name)
    assert pod["spec"]["nodeName"] == node
    return str(pod["metadata"]["name"])


def on_node(name: str) -> dict:
    return {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}


def moved(lab: Lab, name: str, earlier: str, node: str) -> bool:
    """Return True once a later pod of the job runs on a node."""
    return any(
        pod["metadata"]["name"] != earlier
        and pod["spec"].get("nodeName") == node
        and pod["status"]["phase"] == "Running"
        for pod in lab.pods(name)
    )


def charged(lab: Lab, name: str) -> int:
    return int(lab.get("PyTorchTrainingJob", name)["status"].get("backoffCount", 0))


def test_a_replica_on_a_dead_node_starts_on_another_one(lab: Lab) -> None:
    earlier = start_on(lab, "survivor", "node-2")

    with lab.cluster.cut_off("node-2"):
        wait_until("it runs elsewhere", lambda: moved(lab, "survivor", earlier, "node-1"), seconds=WAIT_SECONDS)
        events = lab.cluster.run("get", "events", "--field-selector=involvedObject.name=survivor")
        assert "NodeLost" in events
        assert charged(lab, "survivor") == 0
    lab.cluster.run("wait", "--for=condition=Ready", "node/node-2", "--timeout=120s")
    lab.cluster.run("delete", "pytorchtrainingjob", "survivor", "--wait")


def test_a_drained_node_is_left_without_a_charge(lab: Lab) -> None:
    earlier = start_on(lab, "drained", "node-2")

    lab.cluster.run("drain", "node-2", "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=120s")
    try:
        wait_until("it runs elsewhere", lambda: moved(lab, "drained", earlier, "node-1"), seconds=WAIT_SECONDS)
        assert charged(lab, "drained") == 0
    finally:
        lab.cluster.run("uncordon", "node-2")
    lab.cluster.run("delete", "pytorchtrainingjob", "drained", "--wait")
