"""A real Helm and a real kube-apiserver: our chart is a release like any other, and each release one application."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.testing.real.kube import RealKube
from tests.kubes import kube_with_kinds

CHART = str(Path(__file__).parents[2] / "charts" / "tensorflow-training")
pytestmark = [pytest.mark.kube, pytest.mark.timeout(180)]
Helm = Callable[..., str]


@pytest.fixture(scope="module")
def kube() -> Iterator[RealKube]:
    with kube_with_kinds() as running:
        yield running


@pytest.fixture
def helm(kube: RealKube, tmp_path: Path) -> Helm:
    program = shutil.which("helm")
    if program is None:
        pytest.skip("no helm: put the folder that `tools/setup helm` prints on PATH")
    homes = {f"HELM_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "CONFIG", "DATA")}
    env = {**os.environ, **homes, "KUBECONFIG": str(kube.kubeconfig)}

    def run(*args: str, code: int = 0) -> str:
        ran = subprocess.run([program, *args], env=env, capture_output=True, text=True, check=False, timeout=120)
        assert ran.returncode == code, (args, ran)
        return ran.stdout if code == 0 else ran.stderr

    return run


def apps(kube: RealKube) -> dict[str, Any]:
    _, body = kube.get("/apis/paceline.dev/v1beta1/namespaces/default/trainingapps")
    return {each["metadata"]["name"]: each["spec"]["values"] for each in json.loads(body)["items"]}


def test_a_release_lives_its_whole_life_on_kubernetes(kube: RealKube, helm: Helm) -> None:
    assert "STATUS: deployed" in helm("install", "mnist", CHART, "--set", "worker.gpuCount=0")
    assert apps(kube)["mnist"]["worker"]["gpuCount"] == 0
    assert "cannot re-use a name" in helm("install", "mnist", CHART, code=1)

    helm("upgrade", "mnist", CHART, "--reuse-values", "--set", "hyperparams.epochs=1000000")
    assert (apps(kube)["mnist"]["worker"]["gpuCount"], apps(kube)["mnist"]["hyperparams"]["epochs"]) == (0, 1000000)
    helm("rollback", "mnist", "1")
    assert apps(kube)["mnist"]["hyperparams"]["epochs"] == 100

    (listed,) = json.loads(helm("list", "-o", "json"))
    assert (listed["name"], listed["revision"], listed["chart"]) == ("mnist", "3", "tensorflow-training-0.1.0")
    assert json.loads(helm("status", "mnist", "-o", "json"))["info"]["status"] == "deployed"
    helm("uninstall", "mnist")
    assert apps(kube) == {}


def test_two_releases_stand_side_by_side(kube: RealKube, helm: Helm) -> None:
    """H-73"""
    for name in ("left", "right"):
        helm("install", name, CHART, "--set", "worker.gpuCount=0")

    assert set(apps(kube)) == {"left", "right"}
    for name in ("left", "right"):
        helm("uninstall", name)
    assert apps(kube) == {}


def test_values_that_do_not_fit_are_refused_before_anything_is_sent(kube: RealKube, helm: Helm) -> None:
    told = helm("install", "bad", CHART, "--set", "worker.numbr=2", code=1)

    assert "numbr" in told
    assert "bad" not in apps(kube)
