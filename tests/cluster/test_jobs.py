"""Every job is created at once, as on a busy cluster; each test then follows one of them to its end."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.lab import Lab
from tests.cluster.manifests import (
    RESTRICTED,
    claim,
    deepspeed,
    generic,
    job,
    on_claim,
    pytorch,
    replica,
    spread,
    tensorflow,
    xgboost,
)
from tests.cluster.programs import REACH_ALL, SUM, TENSORFLOW_MEETING, TRACKER

# The first test waits for the cluster to start, too.
pytestmark = pytest.mark.timeout(900)

ONCE_FAILING = """
import os, sys
print("host", os.uname().nodename)
path = "/shared/tried"
if os.path.exists(path):
    sys.exit(0)
open(path, "w").close()
sys.exit(137)
"""
# The claim is there three times: the kubelet would wait for ever if that were three volumes.
ONE_CLAIM = """
open("/shared/given", "w").write("42")
assert open("/input/given").read() == "42"
open("/output/result", "w").write("42")
try:
    open("/input/given", "w")
except OSError as error:
    print("the input is", error.strerror)
"""
SUCCEEDING: dict[str, dict[str, Any]] = {
    "generic": generic("generic", "print('done')"),
    "many": generic("many", "print('done')", replicas=8),
    "pytorch": pytorch("pytorch", SUM),
    "spread": spread(pytorch("spread", SUM)),
    "four": pytorch("four", SUM, replicas=4),
    "host-network": spread(
        pytorch("host-network", SUM, pod={"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"})
    ),
    "tensorflow": tensorflow("tensorflow", TENSORFLOW_MEETING),
    "old-tensorflow": tensorflow("old-tensorflow", TENSORFLOW_MEETING, kind="TensorFlowJob"),
    "xgboost": xgboost("xgboost", TRACKER),
    "deepspeed": deepspeed("deepspeed", REACH_ALL),
    "tried-again": pytorch("tried-again", ONCE_FAILING, replicas=1, pod=on_claim("shared")),
    "one-claim": generic(
        "one-claim",
        ONE_CLAIM,
        replicas=1,
        pod=on_claim("shared"),
        input={"claim": "shared"},
        output={"claim": "shared"},
    ),
    "non-root": generic(
        "non-root",
        "import os; assert os.getuid() == 1000",
        replicas=1,
        pod={"securityContext": {"runAsUser": 1000, "runAsNonRoot": True}},
    ),
}
SUCCEEDING["tried-again"]["spec"]["replicaSpecs"][0]["restartPolicy"] = "ExitCode"

LOOKUP = """
import os, socket
print(socket.gethostbyname(os.environ["MASTER_ADDR"]))
"""
# Nobody answers at this address of the bridge.
WITHOUT_DNS = {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.244.0.250"]}}

# A job, the exit code that its status has, and the last line of its log.
FAILING: dict[str, tuple[dict[str, Any], int, str]] = {
    "exit-3": (pytorch("exit-3", "import sys; print('the end'); sys.exit(3)", replicas=1), 3, "the end"),
    "out-of-time": (
        generic("out-of-time", "import time; time.sleep(600)", replicas=1, runPolicy={"activeDeadlineSeconds": 5}),
        0,
        "",
    ),
    "without-dns": (pytorch("without-dns", LOOKUP, replicas=1, pod=WITHOUT_DNS), 1, "name resolution"),
}


@pytest.fixture(scope="module")
def busy(lab: Lab) -> Lab:
    failing = [manifest for manifest, _, _ in FAILING.values()]
    lab.apply(claim("shared"), *SUCCEEDING.values(), *failing)
    return lab


@pytest.mark.parametrize("name", SUCCEEDING)
def test_a_job_succeeds(busy: Lab, name: str) -> None:
    kind = SUCCEEDING[name]["kind"]

    done = busy.await_phase(kind, name, "Succeeded")

    assert done["status"]["completionTime"]


@pytest.mark.parametrize("name", FAILING)
def test_a_job_that_fails_says_why(busy: Lab, name: str) -> None:
    manifest, code, line = FAILING[name]

    failed = busy.await_phase(manifest["kind"], name, "Failed")

    failure = failed["status"].get("failure", {})
    assert (failure.get("exitCode", 0), line in (failure.get("lastLines") or [""])[-1]) == (code, True), failed


def test_ranks_on_two_nodes_find_each_other_by_name(busy: Lab) -> None:
    """X-13: the pods of one gang are on both nodes, and rank 1 reaches rank 0 by its name."""
    busy.await_phase("PyTorchTrainingJob", "spread", "Succeeded")

    assert {pod["spec"]["nodeName"] for pod in busy.pods("spread")} == {"node-1", "node-2"}
    assert busy.logs("spread").count("the sum is 21") == 2


def test_a_replica_that_was_killed_is_tried_again(busy: Lab) -> None:
    done = busy.await_phase("PyTorchTrainingJob", "tried-again", "Succeeded")

    (task,) = done["status"]["tasks"]
    assert len(busy.pods("tried-again")) == 2, task


def test_a_claim_is_input_output_and_a_volume_of_the_author_at_once(busy: Lab) -> None:
    busy.await_phase("GenericJob", "one-claim", "Succeeded")

    assert "the input is Read-only file system" in busy.logs("one-claim")


def test_a_job_is_paused_and_resumed(lab: Lab) -> None:
    lab.apply(pytorch("paused", "import time; time.sleep(3600)"))
    lab.await_phase("PyTorchTrainingJob", "paused", "Running")

    assert lab.paceline("pause", "paused").returncode == 0
    lab.await_phase("PyTorchTrainingJob", "paused", "Paused")
    assert lab.paceline("resume", "paused").returncode == 0
    lab.await_phase("PyTorchTrainingJob", "paused", "Running")
    lab.cluster.run("delete", "pytorchtrainingjob", "paused", "--wait")


def test_paceline_run_follows_a_job_to_its_end(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(pytorch("followed", SUM)))

    ran = lab.paceline("run", str(path))

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "followed succeeded" in ran.stderr


UNSATISFIED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "image": (
        generic("image", "", replicas=1, pod={"container": {"image": "localhost:1/none:1"}}),
        ("localhost:1/none:1",),
    ),
    "claim": (generic("claim", "", replicas=1, pod=on_claim("absent")), ("absent",)),
    "class": (
        generic("class", "", replicas=1, pod=on_claim("no-class")),
        ("unbound immediate PersistentVolumeClaims", "claim no-class, of storage class absent, is not bound"),
    ),
    "gpu": (
        generic("gpu", "", replicas=1, pod={"container": {"resources": {"limits": {"nvidia.com/gpu": 1}}}}),
        ("nvidia.com/gpu",),
    ),
    "beam": (
        job(
            "BeamJob",
            "beam",
            flinkClusterTemplate={"spec": {"flinkVersion": "1.10.1", "taskManager": {"replicas": 2}}},
            jobTemplate={"spec": {"template": replica("")["template"]}},
        ),
        ("Flink is not supported",),
    ),
}


@pytest.fixture(scope="module")
def waiting(lab: Lab) -> Lab:
    no_class = claim("no-class")
    no_class["spec"]["storageClassName"] = "absent"
    lab.apply(no_class, *(manifest for manifest, _ in UNSATISFIED.values()))
    return lab


@pytest.mark.parametrize("name", UNSATISFIED)
def test_a_job_that_cannot_start_says_what_is_missing(waiting: Lab, name: str) -> None:
    manifest, words = UNSATISFIED[name]

    waiting.await_reason(manifest["kind"], name, *words)


def test_a_full_quota_is_named(lab: Lab) -> None:
    namespace = lab.make_namespace("tight", hard={"pods": "1"})
    lab.apply(generic("two", "import time; time.sleep(3600)"), namespace=namespace)

    lab.await_reason("GenericJob", "two", "exceeded quota", namespace=namespace)


def test_a_namespace_with_restricted_pods_takes_a_job_that_keeps_its_rules(lab: Lab) -> None:
    namespace = lab.make_namespace("strict", level="restricted")
    lab.apply(pytorch("strict", SUM, pod={"container": {"securityContext": RESTRICTED}}), namespace=namespace)
    lab.apply(pytorch("refused", SUM), namespace=namespace)

    lab.await_phase("PyTorchTrainingJob", "strict", "Succeeded", namespace)
    lab.await_reason("PyTorchTrainingJob", "refused", "violates PodSecurity", namespace=namespace)
