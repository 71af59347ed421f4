"""The curves of applications, by a real TensorBoard at the root of a port: of all revisions, and of each worker."""

import contextlib
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded, paceline_command, wait_until
from tests.e2e.watching import environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
IMAGE = "tensorboard:test"
SMALL = "worker.gpuCount=0,worker.number=2,ps.number=1,worker.memory=64Mi,ps.memory=64Mi,hyperparams.epochs=4"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded("--image", f"tensorboard={environment('tensorboard')}") as running:
        yield running


@contextlib.contextmanager
def opened(cluster: Embedded, name: str) -> Iterator[str]:
    """Run `paceline tensorboard` for the length of a block; give what it says to open."""
    command = [paceline_command(), "tensorboard", name, "--port", "0"]
    with subprocess.Popen(command, env=cluster.environment(), stdout=subprocess.PIPE, text=True) as front:
        try:
            assert front.stdout is not None
            yield front.stdout.readline().strip()
        finally:
            front.terminate()


def fetch(url: str, host: str = "") -> tuple[int, str, str]:
    """Give the code, the address in the end, and the text of a page."""
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.url, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, url, error.read().decode(errors="replace")


def comes_to(cluster: Embedded, name: str, revision: int, phase: str) -> None:
    def look() -> bool:
        shown = cluster.kubectl("get", "trainingapp", name, "-o", "json")
        status = json.loads(shown.out).get("status") or {}
        return (status.get("revision"), status.get("phase")) == (revision, phase)

    wait_until(f"revision {revision} of {name} is {phase}", look, seconds=120)


def page_of(url: str) -> str:
    """Wait until a page answers; give where it is in the end."""

    def look() -> str:
        code, where, text = fetch(url)
        return where if code == 200 and "tb-" in text else ""

    return wait_until("TensorBoard answers", look, seconds=120)


def test_h13_h14_h63_h71_one_tensorboard_shows_all_revisions_at_the_root_of_a_port(cluster: Embedded) -> None:
    installed = cluster.paceline(
        "install", "mnist", "tensorflow-training", "--set", f"{SMALL},tensorboard.image={IMAGE}"
    )
    assert installed.code == 0, installed.err
    comes_to(cluster, "mnist", 1, "Succeeded")
    assert cluster.paceline("upgrade", "mnist", "--set", "hyperparams.learningrate=0.2").code == 0
    comes_to(cluster, "mnist", 2, "Succeeded")

    with opened(cluster, "mnist") as url:
        page = page_of(url)
        wanted = {f"mnist-{revision}/worker-{index}" for revision in (1, 2) for index in (0, 1)}
        wait_until("all runs are shown", lambda: set(json.loads(fetch(f"{page}data/runs")[2])) == wanted)
        points = json.loads(fetch(f"{page}data/plugin/scalars/scalars?run=mnist-2%2Fworker-1&tag=cost")[2])
        others = fetch(f"{url}api/v1/namespaces/default/secrets")[0]
        beside = fetch(page.replace("/name/mnist/", "/name/other/"))[0]
        stranger = fetch(url, host="example.org:80")[0]

    assert len(points) == 4
    assert (others, beside, stranger) == (404, 404, 403), "nothing but this page, and to nobody else's"


SCRIPT = Path(__file__).parents[2] / "src" / "paceline" / "trainers" / "parameter_server.py"


def test_s36_s37_each_worker_has_a_tensorboard_with_its_own_curves_alone(cluster: Embedded) -> None:
    command = "python3 parameter_server.py --epochs=2 --logdir=/output/logs"
    words = ("--workers", "2", "--memory", "64Mi", "--log-dir", "/output/logs", "--command", command, "-d")
    trained = cluster.paceline("train", str(SCRIPT), "pair", *words)
    assert trained.code == 0, trained.err
    comes_to(cluster, "pair", 1, "Succeeded")

    for index in (0, 1):
        with opened(cluster, f"pair-tensorboard{index}") as url:
            page = page_of(url)
            runs = wait_until("runs are shown", lambda page=page: json.loads(fetch(f"{page}data/runs")[2]))
            assert runs == [f"worker-{index}"]
