"""The curves of applications, by a real TensorBoard at the root of a port: of all revisions, and of each worker."""

import contextlib
import json
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.testing.embedded import Embedded, embedded, paceline_command, wait_until
from tests.e2e.support.api_caller import own_loopback
from tests.e2e.support.frameworks import environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.slow]
IMAGE = "tensorboard:test"
# Nobody but this machine reaches them, and no other process of these tests uses them.
HERE, BESIDE = own_loopback(3), own_loopback(4)
SMALL = "worker.gpuCount=0,worker.number=2,ps.number=1,worker.memory=64Mi,ps.memory=64Mi,hyperparams.epochs=4"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded("--image", f"tensorboard={environment('tensorboard')}", "--external-address", HERE) as running:
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
        try:
            code, where, text = fetch(url)
        except OSError:
            return ""
        return where if code == 200 and "tb-" in text else ""

    return wait_until("TensorBoard answers", look, seconds=120)


def test_h13_h14_h63_h71_one_tensorboard_shows_all_revisions_at_the_root_of_a_port(cluster: Embedded) -> None:
    installed = cluster.paceline(
        *("app", "install", "mnist", "tensorflow-training"),
        *("--set", f"{SMALL},tensorboard.image={IMAGE},tensorboard.serviceType=ClusterIP"),
    )
    assert installed.code == 0, installed.err
    comes_to(cluster, "mnist", 1, "Succeeded")
    assert cluster.paceline("app", "upgrade", "mnist", "--set", "hyperparams.learningrate=0.2").code == 0
    comes_to(cluster, "mnist", 2, "Succeeded")

    with opened(cluster, "mnist") as url:
        page = page_of(url)
        wanted = {f"mnist-{revision}/worker-{index}" for revision in (1, 2) for index in (0, 1)}
        wait_until("all runs are shown", lambda: set(json.loads(fetch(f"{page}data/runs")[2])) == wanted)
        # TensorBoard lists a run at its first point, and reads the others at its next reload.
        scalars = f"{page}data/plugin/scalars/scalars?run=mnist-2%2Fworker-1&tag=cost"
        wait_until("a point per epoch is shown", lambda: len(json.loads(fetch(scalars)[2])) == 4)
        others = fetch(f"{url}api/v1/namespaces/default/secrets")[0]
        beside = fetch(f"{url}%2e%2e/other/")[0]
        stranger = fetch(url, host="example.org:80")[0]

    assert page == url
    assert (others, beside, stranger) == (404, 404, 403), "nothing but this page, and to nobody else's"


def may_listen(port: int) -> bool:
    """Tell whether whoever runs this may have a port: the first 1024 take root on most machines."""
    try:
        socket.create_server((BESIDE, port)).close()
    except PermissionError:
        return False
    return True


def board(cluster: Embedded, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.kubectl("get", "tensorboard", name, "-o", "json").out)["status"]
    return found


def comes_to_be_at(cluster: Embedded, name: str, *, port: int | None) -> str:
    """Wait until the service of an application's TensorBoard is reached at a port, or at its high one; give where."""

    def look() -> str:
        service = json.loads(cluster.kubectl("get", "service", f"tb-{name}", "-o", "json").out)["spec"]
        high = service["ports"][0].get("nodePort")
        wanted = f"http://{HERE}/" if port == 80 else f"http://{HERE}:{high}/"
        return wanted if board(cluster, name).get("address") == wanted else ""

    return wait_until(f"{name} is reached at {port or 'its high port'}", look)


def test_h42_h59_h60_h71_a_tensorboard_is_opened_at_the_root_of_an_address_and_comes_back(cluster: Embedded) -> None:
    values = f"{SMALL},tensorboard.image={IMAGE}"
    assert cluster.paceline("app", "install", "wide", "tensorflow-training", "--set", values).code == 0
    comes_to(cluster, "wide", 1, "Succeeded")
    front = 80 if may_listen(80) else None
    address = comes_to_be_at(cluster, "wide", port=front)

    assert page_of(address) == address, "it is the page itself, and training has ended"
    runs = {"wide-1/worker-0", "wide-1/worker-1"}
    wait_until("all runs are shown", lambda: set(json.loads(fetch(f"{address}data/runs")[2])) == runs)
    assert address in cluster.paceline("app", "status", "wide").out
    assert address in cluster.paceline("get", "tensorboards").out
    service = cluster.kubectl("get", "service", "tb-wide").out
    assert "LoadBalancer" in service
    assert (HERE in service) is (front == 80)

    name = board(cluster, "wide")["pod"]["reference"]["name"]
    kill = "for each in /proc/[0-9]*; do grep -q tensorboard $each/comm && kill -9 ${each#/proc/}; done"
    cluster.kubectl("exec", name, "--", "sh", "-c", kill)
    wait_until("it was started again", lambda: restarts(cluster, name) > 0)
    assert page_of(address) == address

    assert cluster.paceline("app", "upgrade", "wide", "--set", "tensorboard.serviceType=NodePort").code == 0
    high = comes_to_be_at(cluster, "wide", port=None)
    assert page_of(high) == high
    comes_to(cluster, "wide", 2, "Succeeded")
    assert cluster.paceline("app", "upgrade", "wide", "--set", "tensorboard.serviceType=ClusterIP").code == 0
    wait_until("it is reached from inside only", lambda: not board(cluster, "wide").get("address"))
    wait_until("nobody answers", lambda: not answers(high) and not answers(address))
    assert cluster.paceline("app", "uninstall", "wide").code == 0


def restarts(cluster: Embedded, pod: str) -> int:
    status = json.loads(cluster.kubectl("get", "pod", pod, "-o", "json").out)["status"]
    return int(status["containerStatuses"][0]["restartCount"])


def answers(url: str) -> bool:
    try:
        return fetch(url)[0] == 200
    except OSError:
        return False


SCRIPT = Path(__file__).parents[3] / "src" / "paceline" / "trainers" / "parameter_server.py"


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
