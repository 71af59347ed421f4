"""The examples of TensorFlow train for real: workers in step, parameter servers, and TF_CONFIG written by hand."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded, wait_until
from tests.e2e.support.frameworks import curve, environment, filled, reaches, status
from tests.e2e.support.shell_pods import show

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "examples" / "05-tensorflow"
# A model that guesses reads one digit in ten right; these end above 0.95.
GOOD_ACCURACY = 0.9
# Up to four processes read thousands of modules each, on whatever machine this is.
SECONDS = 240.0
TWO_OF_THEM = pytest.mark.timeout(2 * SECONDS + 60)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded("--image", f"tensorflow/tensorflow*={environment('tensorflow')}") as running:
        yield running


@pytest.fixture(scope="module")
def claim(cluster: Embedded) -> Path:
    """The folder behind the claim `mnist`, with the training scripts in it."""
    made = cluster.kubectl("create", "-f", str(EXAMPLES / "claim.yaml"))
    assert made.code == 0, made.err
    return filled(cluster, "mnist", *EXAMPLES.glob("*.py"))


def said(cluster: Embedded, pod: str) -> str:
    return cluster.kubectl("logs", pod).out


@TWO_OF_THEM
def test_the_tutorials_job_trains_in_four_workers_and_its_curve_is_shown_meanwhile_and_after(
    cluster: Embedded, claim: Path
) -> None:
    """Vectors 1 and 2, with the kind's old name. T-01, T-02"""
    text = (EXAMPLES / "mirrored.yaml").read_text()
    old = text.replace("TensorFlowTrainingJob", "TensorFlowJob").replace("--no_cuda", "--no_cuda --wait_for /mnt/go")
    made = cluster.kubectl("create", "-f", "-", stdin=old)
    assert (made.code, made.err) == (0, "Warning: kind TensorFlowJob is an old name for TensorFlowTrainingJob\n")

    told = wait_until("it has a TensorBoard", lambda: status(cluster, "tensorflowjob", "mnist").get("tensorboard"))
    board = told["dependent"]["name"]
    assert re.fullmatch("mnist-[0-9a-f]{5}", board)
    url = reaches(cluster, "tensorboard", board, "Running", seconds=SECONDS)["url"]
    # The last of the eight epochs waits for a file.
    assert curve(cluster, url, "train:epoch_loss", 7, seconds=SECONDS) == list(range(7))
    assert status(cluster, "tensorflowjob", "mnist")["phase"] == "Running"

    (claim / "go").touch()
    reaches(cluster, "tensorflowjob", "mnist", "Succeeded", seconds=SECONDS)
    assert curve(cluster, url, "train:epoch_loss", 8) == list(range(8))
    assert curve(cluster, url, "train:epoch_accuracy", 8) == list(range(8))
    # All have taken the same steps: what one lost, all lost.
    last = [re.findall(r"loss: \S+ - accuracy: \S+", said(cluster, f"{board}-worker-{index}")) for index in range(4)]
    assert len(last[0]) == 8
    assert last == [last[0]] * 4
    (accuracy,) = re.findall(r"worker 0 of 4: accuracy ([\d.]+)", said(cluster, f"{board}-worker-0"))
    assert float(accuracy) > GOOD_ACCURACY

    model = claim / "saved_model" / "saved_model.pb"
    assert model.stat().st_uid == 1000
    labels = [show(cluster, "pod", f"{board}-worker-{index}")["metadata"]["labels"] for index in range(4)]
    assert [each.get("job-role") for each in labels] == ["master", None, None, None]
    shown = cluster.paceline("describe", "mnist").out
    assert "cpu 8 / 16, memory 4Gi / 8Gi" in shown
    assert f"it is opened at {url}" in shown


def phases_by_role(cluster: Embedded, name: str) -> dict[str, list[str]]:
    tasks = status(cluster, "tj", name)["tasks"]
    return {task["type"]: [replica["phase"] for replica in task["replicas"]] for task in tasks}


def test_parameter_servers_never_end_and_go_when_the_chief_has_trained(cluster: Embedded, claim: Path) -> None:
    ran = cluster.paceline("run", str(EXAMPLES / "parameter_server.yaml"), seconds=SECONDS)

    assert ran.code == 0, ran.out + ran.err
    (accuracy,) = re.findall(r"^accuracy ([\d.]+)  model /mnt/served_model$", ran.out, re.MULTILINE)
    assert float(accuracy) > GOOD_ACCURACY
    assert (claim / "served_model" / "saved_model.pb").is_file()
    for role in ("ps", "worker"):
        labels = f"tensorstack.dev/owner-name=served,replica-type={role}"
        gone = cluster.kubectl("wait", "--for=delete", "pod", "-l", labels, "--timeout=90s")
        assert gone.code == 0, gone.err
    found = status(cluster, "tj", "served")
    assert (found["phase"], found["backoffCount"]) == ("Succeeded", 0)
    # The status follows when the pods are gone.
    phases = {"chief": ["Succeeded"], "worker": ["Deleted", "Deleted"], "ps": ["Deleted"]}
    wait_until("the status says which were deleted", lambda: phases_by_role(cluster, "served") == phases)
    # They are gone, and what they wrote is not.
    kept = cluster.paceline("logs", "served", "--all").out
    assert [word in kept for word in ("ps 0 serves", "worker 0 serves", "worker 1 serves")] == [True] * 3


def test_a_job_of_any_sort_can_write_tf_config_by_itself(cluster: Embedded, claim: Path) -> None:
    """Vector 8, as TensorFlow reads it."""
    ran = cluster.paceline("run", str(EXAMPLES / "generic.yaml"), seconds=SECONDS)

    assert ran.code == 0, ran.out + ran.err
    (accuracy,) = re.findall(r"^worker 0 of 2: accuracy ([\d.]+)$", ran.out, re.MULTILINE)
    assert float(accuracy) > GOOD_ACCURACY
    assert (claim / "by_hand_model" / "saved_model.pb").is_file()
    assert (claim / "worker-log" / "train").is_dir()
