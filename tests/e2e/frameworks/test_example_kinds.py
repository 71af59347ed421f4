"""Every example is one that the server takes, without a word; those that need no framework run."""

import json
import re
from pathlib import Path

import pytest

from paceline.kinds import registry
from paceline.testing.embedded import Embedded, wait_until

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = sorted(path for path in EXAMPLES.glob("*/*.yaml") if path.name != "claim.yaml")


@pytest.fixture(scope="module")
def empty(cluster: Embedded) -> str:
    """Make a namespace where nothing runs, with the claims that the examples mount."""
    name = "examples"
    assert cluster.kubectl("create", "namespace", name).code == 0
    for path in EXAMPLES.glob("*/claim.yaml"):
        made = cluster.kubectl("apply", "-n", name, "-f", str(path))
        assert made.code == 0, made.err
    return name


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_example_is_taken(cluster: Embedded, empty: str, path: Path) -> None:
    said = cluster.kubectl("create", "-n", empty, "--dry-run=server", "-f", str(path))

    assert (said.code, said.err) == (0, "")


def test_every_kind_has_an_example() -> None:
    """T-19"""
    kinds = {kind.kind for kind in (*registry.KINDS, *registry.SERVICES) if not kind.alias_of}
    shown = {found for path in FILES for found in re.findall(r"^kind: (\w+)$", path.read_text(), re.MULTILINE)}

    assert shown == kinds


def test_an_explorer_serves_the_files_of_its_claim(cluster: Embedded, empty: str) -> None:
    created = cluster.kubectl("create", "-n", empty, "-f", str(EXAMPLES / "03-kinds" / "explorer.yaml"))
    assert created.code == 0, created.err

    listed = cluster.paceline("volume", "ls", "kinds", "-n", empty)

    assert (listed.code, listed.out) == (0, ""), listed.err
    assert (
        json.loads(cluster.kubectl("get", "explorer", "kinds", "-n", empty, "-o", "json").out)["status"]["phase"]
        == "Running"
    )
    # Tests run in any order, and the namespace is the module's: another one creates the same example.
    assert cluster.kubectl("delete", "explorer", "kinds", "-n", empty).code == 0


def test_the_tensorflow_roles_know_each_other_and_the_parameter_server_goes(cluster: Embedded) -> None:
    ran = cluster.paceline("run", str(EXAMPLES / "03-kinds" / "tensorflow.yaml"))

    assert ran.code == 0, ran.out + ran.err
    said = cluster.paceline("logs", "roles", "--all").out
    told = re.findall(r"(\w+) (\d) in ({.*}) listens at \S+:(\d+)", said)
    assert {(role, index) for role, index, _, _ in told} >= {("chief", "0")}
    assert {sizes for _, _, sizes, _ in told} == {"{'chief': 1, 'worker': 2, 'ps': 1}"}
    ports = [port for _, _, _, port in told]
    # With networks of their own all have the usual number; on the machine's network each has another.
    assert set(ports) == {"2222"} or len(set(ports)) == len(ports)
    gone = cluster.kubectl(
        "wait", "--for=delete", "pod", "-l", "tensorstack.dev/owner-name=roles,replica-type=ps", "--timeout=60s"
    )
    assert gone.code == 0, gone.err


def test_the_xgboost_ranks_are_told_of_the_tracker(cluster: Embedded) -> None:
    ran = cluster.paceline("run", str(EXAMPLES / "03-kinds" / "xgboost.yaml"))

    assert ran.code == 0, ran.out + ran.err
    status = json.loads(cluster.kubectl("get", "xj", "ranks", "-o", "json").out)["status"]
    port = status["ports"]["master"]
    assert f"rank 0 of 3, tracker at port {port}, task 0" in cluster.paceline("logs", "ranks", "--all").out


@pytest.mark.parametrize(
    ("file", "job", "reason"),
    [
        ("deepspeed.yaml", "dj/large", "Insufficient nvidia.com/gpu (8 asked"),
        ("beam.yaml", "bj/pipeline", "Flink is not supported"),
    ],
    ids=["without enough GPUs", "without Flink"],
)
def test_a_job_that_cannot_run_here_waits_and_says_why(
    cluster: Embedded, empty: str, file: str, job: str, reason: str
) -> None:
    made = cluster.kubectl("create", "-n", empty, "-f", str(EXAMPLES / "03-kinds" / file))
    assert made.code == 0, made.err

    def waiting() -> str:
        found = json.loads(cluster.kubectl("get", "-n", empty, job, "-o", "json").out)
        return str(found.get("status", {}).get("waiting", ""))

    said = wait_until("the job says what it waits for", waiting)
    assert reason in said
    assert cluster.kubectl("delete", "-n", empty, job).code == 0
