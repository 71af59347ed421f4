"""Applications: the user's own folder by `paceline train`, and both charts, installed and upgraded by a real Helm."""

from pathlib import Path
from typing import Any

import pytest

from paceline.sdk.submission.source_archive import pack
from paceline.testing.embedded import wait_until
from tests.cluster.lab import Helm, Lab

pytestmark = pytest.mark.timeout(900)

CHARTS = Path(__file__).parents[2] / "charts"
KIND = "TrainingApp"
# What an application's templates can set: a limit of processors is not among it.
HARD = {"requests.cpu": "64", "requests.memory": "64Gi", "limits.memory": "64Gi"}
TRAIN = """
import socket, sys
from helper import WORD
open("/output/report", "w").write(f"{WORD} {sys.argv[1:]}")
print(WORD, "on", socket.gethostname())
"""
SMALL = "cpu=20m,memory=128Mi"


@pytest.fixture(scope="module", params=["open", "counted"])
def namespace(lab: Lab, request: pytest.FixtureRequest) -> str:
    """A namespace, and another one that counts what pods use."""
    return lab.make_namespace(request.param, hard=HARD if request.param == "counted" else None)


@pytest.fixture(scope="module")
def board_image(lab: Lab) -> str:
    return lab.load_environment("tensorboard")


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder with a script and a module that it needs; returns the script."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "helper.py").write_text("WORD = 'trained'\n")
    return folder / "train.py"


@pytest.fixture
def helm(lab: Lab, tmp_path: Path) -> Helm:
    return Helm(folder=tmp_path / "helm", kubeconfig=lab.cluster.kube.kubeconfig)


def results(lab: Lab, app: dict[str, Any]) -> dict[str, str]:
    """Return the reports that the replicas of an application's present job have written, by replica."""
    namespace, name = app["metadata"]["namespace"], app["status"]["job"]["name"]
    claim = f"{name.rpartition('-')[0]}-data"
    volume = lab.get("persistentvolumeclaim", claim, namespace)["spec"]["volumeName"]
    folder = Path(lab.get("persistentvolume", volume)["spec"]["hostPath"]["path"], name)
    return {path.parent.name: path.read_text() for path in folder.glob("*/report")}


def test_paceline_train_runs_a_folder_of_the_user(lab: Lab, namespace: str, code: Path) -> None:
    options = ("--framework", "python", "--workers", "2", "--cpu", "20m", "--memory", "128Mi", "--param", "lr=0.1")

    ran = lab.paceline("train", str(code), "mine", *options, "--namespace", namespace)

    assert ran.returncode == 0, f"{ran.stdout}{ran.stderr}{lab.story('mine-1', namespace)}"
    app = lab.await_phase(KIND, "mine", "Succeeded", namespace)
    assert results(lab, app) == {f"worker-{index}": "trained ['--lr=0.1']" for index in range(2)}


def test_the_chart_of_a_model_training_trains_again_with_other_values(
    lab: Lab, namespace: str, code: Path, helm: Helm
) -> None:
    packed = pack(str(code))
    lab.apply(packed.config_map("code", {}), namespace=namespace)
    source = f"archive.digest={packed.digest},archive.configMap=code,command=python3 train.py,framework=python"
    chart = ("model", str(CHARTS / "model-training"), "--namespace", namespace, "--set", f"{source},{SMALL}")

    helm.run("install", *chart)
    first = lab.await_phase(KIND, "model", "Succeeded", namespace)
    helm.run("upgrade", *chart, "--set", "hyperparameters.lr=0.2")
    wait_until("revision 2 begins", lambda: lab.get(KIND, "model", namespace)["status"]["revision"] == 2)
    second = lab.await_phase(KIND, "model", "Succeeded", namespace)

    assert results(lab, first) == {"worker-0": "trained []"}
    assert results(lab, second) == {"worker-0": "trained ['--lr=0.2']"}
    helm.run("uninstall", "model", "--namespace", namespace, "--wait")


def test_the_chart_of_a_tensorflow_training_trains_and_shows_its_curves(
    lab: Lab, namespace: str, board_image: str, helm: Helm
) -> None:
    roles = ",".join(f"{role}.{text}" for role in ("worker", "ps") for text in ("gpuCount=0", "cpu=20m", "number=2"))
    board = f"tensorboard.image={board_image},tensorboard.serviceType=ClusterIP"
    chart = ("curves", str(CHARTS / "tensorflow-training"), "--namespace", namespace)

    helm.run("install", *chart, "--set", f"{roles},{board},hyperparams.epochs=5")

    app = lab.await_phase(KIND, "curves", "Succeeded", namespace)
    lab.await_phase("TensorBoard", app["status"]["job"]["name"].rpartition("-")[0], "Running", namespace)
    url = wait_until("its URL is known", lambda: lab.get(KIND, "curves", namespace)["status"].get("url"))
    assert "TensorBoard" in lab.cluster.run("get", "--raw", url)
    helm.run("uninstall", "curves", "--namespace", namespace, "--wait")
