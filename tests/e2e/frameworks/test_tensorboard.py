"""A real TensorBoard, its curves read over HTTP through the API server, while and after a job logs them."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.errors import HostError
from paceline.testing.embedded import Embedded, embedded, leftovers, wait_until
from paceline.testing.s3_server import KEY, KEY_ID, S3Server, s3_server
from tests.e2e.support.api_caller import Door
from tests.e2e.support.data_jobs import beside_pods, secret
from tests.e2e.support.frameworks import condition, curve, environment, folder_of, reaches, status
from tests.e2e.support.manifests import claim, pytorch
from tests.e2e.support.shell_pods import create, show

pytestmark = pytest.mark.slow

CURVE = (Path(__file__).parents[1] / "jobs" / "curve.py").read_text()
IMAGE = "tensorboard:test"
DATA = {
    "image": IMAGE,
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded("--image", f"tensorboard={environment('tensorboard')}") as running:
        create(running, claim("data"))
        yield running


@pytest.fixture(scope="module")
def data(cluster: Embedded) -> Path:
    folder = folder_of(cluster, "data")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def tensorboard(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "tensorstack.dev/v1beta1",
        "kind": "TensorBoard",
        "metadata": {"name": name},
        "spec": {"image": IMAGE, **spec},
    }


def job(name: str, folder: str, **more: Any) -> dict[str, Any]:
    command = ["python", "-c", CURVE, f"/data/{folder}", f"/data/{name}-go"]
    made = pytorch(name, command=command, workers=1, **DATA)
    made["spec"] |= more
    return made


def test_a_jobs_tensorboard_shows_its_curve_while_it_trains_and_after_and_goes_with_it(
    cluster: Embedded, data: Path
) -> None:
    """Vectors 1 and 19."""
    shown = {"image": IMAGE, "trainingLogFilesets": ["t9k://pvc/data/train/log"]}
    create(cluster, job("train", "train/log", tensorboardSpec=shown))

    told = wait_until("the job knows it", lambda: status(cluster, "pj", "train").get("tensorboard"))
    name = told["dependent"]["name"]
    url = reaches(cluster, "tensorboard", name, "Running")["url"]
    assert url == f"/t9k/tensorboards/projects/default/name/{name}/"
    assert show(cluster, "pods", f"{name}-worker-0")["metadata"]["name"] == f"{name}-worker-0"
    assert curve(cluster, url, ".:loss", 5) == [0, 1, 2, 3, 4]
    assert status(cluster, "pj", "train")["phase"] == "Running"

    (data / "train-go").touch()
    reaches(cluster, "pj", "train", "Succeeded")
    assert curve(cluster, url, ".:loss", 10) == list(range(10))
    assert url in cluster.paceline("get", "tensorboards").out
    ready = wait_until("the job tells so", lambda: _if_ready(cluster, "train"))
    assert (ready["action"], ready["reason"], ready["type"]) == ("NOP", "DependentReady", "Normal")
    assert ready["dependent"]["uid"] == show(cluster, "tensorboard", name)["metadata"]["uid"]

    assert cluster.kubectl("delete", "pj", "train").code == 0
    for kind in ("tensorboard", "pod", "service"):
        wait_until(f"no {kind} is left", lambda kind=kind: name not in cluster.kubectl("get", kind, "-o", "name").out)
    assert list((data / "train" / "log").iterdir())


def _if_ready(cluster: Embedded, name: str) -> dict[str, Any]:
    told: dict[str, Any] = status(cluster, "pj", name).get("tensorboard") or {}
    return told if told.get("ready") else {}


@pytest.fixture(scope="module")
def logged(cluster: Embedded, data: Path) -> None:
    """Two runs in a claim."""
    for name in ("one", "two"):
        (data / f"{name}-go").touch()
        create(cluster, job(name, f"runs/{name}"))
    for name in ("one", "two"):
        reaches(cluster, "pj", name, "Succeeded")


@pytest.mark.usefixtures("logged")
def test_several_places_are_shown_as_one(cluster: Embedded) -> None:
    places = {"pvc": [{"name": "data", "subPath": ["runs/one", "./runs/two/"]}]}
    create(cluster, tensorboard("both", logDir=places))

    url = reaches(cluster, "tensorboard", "both", "Running")["url"]
    for run in ("data/runs/one/.", "data/runs/two/."):
        assert curve(cluster, url, f"{run}:loss", 10) == list(range(10))
    by_service = "/api/v1/namespaces/default/services/tb-both:http/proxy/"
    assert b"TensorBoard" in Door(cluster).read(by_service)
    assert cluster.kubectl("delete", "tensorboard", "both").code == 0


@pytest.fixture
def bucket(cluster: Embedded) -> Iterator[S3Server]:
    try:
        with s3_server(host=beside_pods(cluster)) as running:
            running.make_bucket("curves")
            yield running
    except HostError as error:
        pytest.skip(str(error))


def test_curves_that_a_job_put_into_a_bucket_are_shown_from_there(cluster: Embedded, bucket: S3Server) -> None:
    keys = {"accessKeyId": KEY_ID, "accessKeySecret": KEY}
    # As T9k has it: the variables that TensorBoard and its like read.
    variables = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": KEY, "S3_ENDPOINT": bucket.address}
    create(cluster, secret("keys", **keys), secret("s3-env", AWS_DEFAULT_REGION="us-east-1", **variables))
    output = {"bucket": {"url": "s3://curves/runs", "endpoint": bucket.address, "secret": "keys"}}
    made = pytorch("stored", command=["python", "-c", CURVE, "/output/log", "/output"], workers=1, image=IMAGE)
    made["spec"] |= {"output": output}
    create(cluster, made)
    reaches(cluster, "pj", "stored", "Succeeded")

    places = {"s3": {"secretRef": {"name": "s3-env"}, "uri": ["s3://curves/runs/"]}}
    create(cluster, tensorboard("afar", logDir=places))

    url = reaches(cluster, "tensorboard", "afar", "Running")["url"]
    assert curve(cluster, url, "stored/worker-0/log:loss", 10) == list(range(10))
    assert KEY not in cluster.kubectl("get", "pods,tensorboards,events", "-o", "yaml").out
    assert cluster.kubectl("delete", "tensorboard", "afar").code == 0


@pytest.mark.usefixtures("logged")
def test_one_that_nobody_uses_is_suspended_and_opening_it_wakes_it(cluster: Embedded) -> None:
    """T-16"""
    create(cluster, tensorboard("sleepy", logDir={"pvc": [{"name": "data"}]}, idleSeconds=1))

    rest = reaches(cluster, "tensorboard", "sleepy", "Paused")
    assert [condition(rest, kind)["reason"] for kind in ("Suspended", "Idle", "Ready")] == ["Idle"] * 3
    wait_until("its pod is gone", lambda: "sleepy" not in cluster.kubectl("get", "pods", "-o", "name").out)
    assert "sleepy" in cluster.kubectl("get", "services", "-o", "name").out

    longer = json.dumps({"spec": {"idleSeconds": 3600}})
    assert cluster.kubectl("patch", "tensorboard", "sleepy", "--type=merge", "-p", longer).code == 0
    with Door(cluster).ask("GET", f"{rest['url']}data/runs") as answer:
        assert answer.status == 503
    assert status(cluster, "tensorboard", "sleepy")["phase"] == "Paused"
    with Door(cluster).ask("GET", rest["url"]) as answer:
        assert answer.status == 503
    reaches(cluster, "tensorboard", "sleepy", "Running")
    assert curve(cluster, rest["url"], "runs/one:loss", 10) == list(range(10))


@pytest.mark.usefixtures("logged")
def test_it_outlives_both_processes_is_paused_and_resumed_by_hand_and_leaves_none_behind(cluster: Embedded) -> None:
    create(cluster, tensorboard("steady", logDir={"pvc": [{"name": "data", "subPath": ["runs"]}]}))
    before = reaches(cluster, "tensorboard", "steady", "Running")

    for pid in (cluster.agent_pid, cluster.control_pid):
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    assert cluster.paceline("up", "-d").code == 0
    assert curve(cluster, before["url"], "one:loss", 10) == list(range(10))
    assert reaches(cluster, "tensorboard", "steady", "Running")["pod"] == before["pod"]

    assert cluster.paceline("pause", "tensorboard/steady").out == "tensorboard/steady paused\n"
    rest = reaches(cluster, "tensorboard", "steady", "Paused")
    assert (condition(rest, "Suspended")["reason"], condition(rest, "Idle")["status"]) == ("Suspended", "False")
    with Door(cluster).ask("GET", rest["url"]) as answer:
        assert answer.status == 503
    assert cluster.paceline("resume", "tb/steady").out == "tensorboard/steady resumed\n"
    after = reaches(cluster, "tensorboard", "steady", "Running")
    assert after["pod"]["reference"]["uid"] != before["pod"]["reference"]["uid"]

    refused = cluster.paceline("down")
    assert (refused.code, "tensorboard/steady" in refused.err) == (2, True)
    assert cluster.paceline("down", "--stop-jobs").code == 0
    assert leftovers(cluster.home) == ()
    assert cluster.paceline("up", "-d").code == 0
    assert status(cluster, "tensorboard", "steady")["phase"] == "Paused"
