"""Nodes that die, are drained, tainted and deleted: jobs go on elsewhere, and no restart is counted.

Every try of a rank holds a lock on the claim of its job, so that two live tries of one rank would be found.
"""

import fcntl
import sys
from collections.abc import Callable
from datetime import datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from paceline.apimachinery.meta import Object
from paceline.testing.embedded import wait_until
from paceline.testing.real.cluster import TOLERATION_SECONDS
from tests.cluster.lab import WAIT_SECONDS, Lab
from tests.cluster.manifests import claim, on_claim, pytorch

pytestmark = pytest.mark.timeout(900)

KIND = "PyTorchTrainingJob"
# A rank that finds its lock taken says so in the claim, where the test looks.
LOCKED = """
import fcntl, os, time
rank = os.environ["RANK"]
lock = open(f"/shared/rank-{rank}", "a+")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    open(f"/shared/double-{rank}", "w").close()
print("rank", rank, "holds its lock")
time.sleep(3600)
"""
HOLDING = {"paceline.dev/node-lost": "Wait"}
# Within which the next try of a rank runs, after its node is not ready and its pod is not tolerated there any more.
REPLACED_SECONDS = 60.0


def preferring(node: str) -> dict[str, Any]:
    """Return the part of a pod that brings it to a node, as long as it is there."""
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    preference = {"weight": 100, "preference": {"matchExpressions": [on_node]}}
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}}


def start_on(lab: Lab, name: str, node: str, annotations: dict[str, str] | None = None) -> str:
    """Run a job of one replica on a certain node, and return the name of its pod."""
    manifest = pytorch(name, LOCKED, replicas=1, pod={**preferring(node), **on_claim(name)})
    manifest["metadata"]["annotations"] = annotations or {}
    lab.apply(claim(name), manifest)
    lab.await_phase(KIND, name, "Running")
    (pod,) = lab.pods(name)
    assert pod["spec"]["nodeName"] == node
    return str(pod["metadata"]["name"])


def moved(lab: Lab, name: str, earlier: str, node: str) -> str:
    """Return the name of a later pod of the job that runs on a node; empty while there is none."""
    return next(
        (
            str(pod["metadata"]["name"])
            for pod in lab.pods(name)
            if pod["metadata"]["name"] != earlier
            and pod["spec"].get("nodeName") == node
            and pod["status"]["phase"] == "Running"
        ),
        "",
    )


def await_move(lab: Lab, name: str, earlier: str, node: str) -> str:
    try:
        return wait_until(f"{name} runs on {node}", lambda: moved(lab, name, earlier, node), seconds=WAIT_SECONDS)
    except AssertionError as error:
        status = lab.get(KIND, name).get("status")
        raise AssertionError(f"{error}\n{lab.story(name, 'default')}\n{status}") from None


def await_next_try(lab: Lab, name: str, earlier: str) -> None:
    """Return once a later pod runs: the one that was waited for ends when its node is back."""
    nodes = ("node-1", "node-2")
    wait_until(
        f"the next try of {name} runs",
        lambda: any(moved(lab, name, earlier, node) for node in nodes),
        seconds=WAIT_SECONDS,
    )


def charged(lab: Lab, name: str) -> int:
    return int(lab.get(KIND, name)["status"].get("backoffCount", 0))


def folder_of(lab: Lab, claim_name: str) -> Path:
    volume = lab.get("persistentvolumeclaim", claim_name)["spec"]["volumeName"]
    return Path(lab.get("persistentvolume", volume)["spec"]["hostPath"]["path"])


def doubles(lab: Lab, name: str) -> list[str]:
    """Return the ranks of a job of which two tries were alive at one time."""
    files = [path.name for path in folder_of(lab, name).iterdir()]
    assert any(file.startswith("rank-") for file in files), f"no rank of {name} has ever had a lock: {files}"
    return [file for file in files if file.startswith("double-")]


def end(lab: Lab, name: str) -> None:
    """Check what holds for every job of this module, and delete the job."""
    assert charged(lab, name) == 0
    assert doubles(lab, name) == []
    lab.cluster.run("delete", KIND, name, "--wait")


def test_a_replica_on_a_dead_node_starts_on_another_one(lab: Lab) -> None:
    survivor, holding = start_on(lab, "survivor", "node-2"), start_on(lab, "holding", "node-2", HOLDING)

    with lab.cluster.powered_off("node-2"):
        await_move(lab, "survivor", survivor, "node-1")
        lab.await_reason(KIND, "holding", f"pod {holding} may still run on node node-2")
        assert [pod["metadata"]["name"] for pod in lab.pods("holding")] == [holding]
        events = lab.cluster.run("get", "events", "--field-selector=involvedObject.name=survivor")
        assert "NodeLost" in events

    lab.cluster.run("wait", "--for=condition=Ready", "node/node-2", "--timeout=120s")
    await_next_try(lab, "holding", holding)
    for name in ("survivor", "holding"):
        end(lab, name)


def test_a_replica_on_a_node_that_is_cut_off_is_waited_for_if_the_job_says_so(lab: Lab) -> None:
    """Its process goes on, as its lock shows, and no other pod takes its place until the node is back."""
    cautious = start_on(lab, "cautious", "node-2", HOLDING)
    lock = folder_of(lab, "cautious") / "rank-0"

    with lab.cluster.cut_off("node-2"):
        lab.await_reason(KIND, "cautious", f"pod {cautious} may still run on node node-2")
        assert [pod["metadata"]["name"] for pod in lab.pods("cautious")] == [cautious]
        with lock.open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    lab.cluster.run("wait", "--for=condition=Ready", "node/node-2", "--timeout=120s")
    await_next_try(lab, "cautious", cautious)
    end(lab, "cautious")


def replaced_after(lab: Lab, node: str, pod: str) -> float:
    """Return how long a pod took to run after those of a lost node were not tolerated any more, by the API's times."""

    def ready(obj: Object) -> Object:
        return next(item for item in obj["status"]["conditions"] if item["type"] == "Ready")

    lost = ready(lab.get("node", node))
    assert lost["status"] == "Unknown"
    (container,) = lab.get("pod", pod)["status"]["containerStatuses"]
    started = datetime.fromisoformat(container["state"]["running"]["startedAt"])
    return (started - datetime.fromisoformat(lost["lastTransitionTime"])).total_seconds() - TOLERATION_SECONDS


@pytest.mark.parametrize(
    "losses",
    [pytest.param(1, id="once"), pytest.param(10, id="often", marks=(pytest.mark.soak, pytest.mark.timeout(7200)))],
)
def test_a_replica_runs_on_another_node_soon_after_its_own_is_dead(lab: Lab, losses: int) -> None:
    """Both nodes die in turn; each is back before the other one dies."""
    name = f"hunted-{losses}"
    pod = start_on(lab, name, "node-2")

    for node, other in islice(cycle((("node-2", "node-1"), ("node-1", "node-2"))), losses):
        with lab.cluster.powered_off(node):
            pod = await_move(lab, name, pod, other)
            seconds = replaced_after(lab, node, pod)
        sys.stdout.write(f"{name}: runs on {other} {seconds:.0f} s after it was not tolerated on {node}\n")
        assert seconds <= REPLACED_SECONDS
        lab.cluster.run("wait", "--for=condition=Ready", f"node/{node}", "--timeout=120s")

    assert lab.get(KIND, name)["status"]["disruptions"] == losses
    end(lab, name)


def drain(lab: Lab, node: str) -> Callable[[], str]:
    flags = ("--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=120s")
    lab.cluster.run("drain", node, *flags)
    return lambda: lab.cluster.run("uncordon", node)


def taint(lab: Lab, node: str) -> Callable[[], str]:
    lab.cluster.run("taint", "node", node, "repair=now:NoExecute")
    return lambda: lab.cluster.run("taint", "node", node, "repair-")


DISRUPTIONS = ((drain, "node-2", "node-1"), (taint, "node-1", "node-2"))


@pytest.mark.parametrize(
    "count",
    [pytest.param(4, id="four"), pytest.param(20, id="twenty", marks=(pytest.mark.soak, pytest.mark.timeout(7200)))],
)
def test_more_disruptions_than_restarts_are_allowed_do_not_end_a_job(lab: Lab, count: int) -> None:
    """Three restarts are allowed by default; four disruptions, and more, are none of them."""
    name = f"moving-{count}"
    pod = start_on(lab, name, "node-2")

    for disrupt, node, other in islice(cycle(DISRUPTIONS), count):
        undo = disrupt(lab, node)
        try:
            pod = await_move(lab, name, pod, other)
        finally:
            undo()

    assert lab.get(KIND, name)["status"]["disruptions"] == count
    end(lab, name)


def test_a_replica_on_a_node_that_is_deleted_starts_on_another_one(lab: Lab) -> None:
    earlier = start_on(lab, "orphan", "node-2", HOLDING)
    node = lab.get("node", "node-2")
    facts = {key: node["metadata"].get(key) or {} for key in ("name", "labels", "annotations")}

    with lab.cluster.powered_off("node-2"):
        lab.cluster.run("delete", "node", "node-2")
        try:
            await_move(lab, "orphan", earlier, "node-1")
            end(lab, "orphan")
        finally:
            # A kubelet registers its node only when it starts, but keeps one that is there up to date.
            lab.apply({"apiVersion": "v1", "kind": "Node", "metadata": facts, "spec": node["spec"]})
    lab.cluster.run("wait", "--for=condition=Ready", "node/node-2", "--timeout=120s")
