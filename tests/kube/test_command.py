"""`paceline kube manifests` and `paceline kube controller` as people type them, beside a real kube-apiserver."""

import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from types import MappingProxyType

import pytest

from paceline.client.interface import CRDS, LEASES, NAMESPACES
from paceline.client.kubeconfig import load
from paceline.client.sync import DirectCluster
from paceline.testing.real.kube import ALONE, RealKube, find_assets, real_kube
from tests.kubes import assets_or_skip

pytestmark = [pytest.mark.kube, pytest.mark.timeout(180)]

PACELINE = str(Path(sys.executable).with_name("paceline"))
PATIENCE_SECONDS = 60.0
NOTHING: Mapping[str, str] = MappingProxyType({})


@pytest.fixture(scope="module")
def fresh() -> Iterator[RealKube]:
    """A real kube-apiserver for the tests that do not care which kinds it has."""
    with real_kube(assets_or_skip(), ALONE) as kube:
        yield kube


@pytest.fixture
def empty() -> Iterator[RealKube]:
    """A real kube-apiserver of one test: the tests of a module may run in any order."""
    with real_kube(assets_or_skip(), ALONE) as kube:
        yield kube


def paceline(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run((PACELINE, *args), capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)


def kubectl(kube: RealKube, *args: str, stdin: str = "") -> str:
    assets = find_assets()
    assert assets is not None
    command = (str(assets / "kubectl"), f"--kubeconfig={kube.kubeconfig}", *args)
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout


class Controller:
    """A running `paceline kube controller`."""

    def __init__(self, *args: str, env: Mapping[str, str]) -> None:
        command = (PACELINE, "kube", "controller", *args)
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **env})
        self.lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stderr or ():
            self.lines.put(line.rstrip())
        self.lines.put(None)

    def says(self, text: str) -> str:
        """Wait for a line that begins so."""
        heard = []
        while (line := self.lines.get(timeout=PATIENCE_SECONDS)) is not None:
            heard.append(line)
            if line.startswith(text):
                return line
        raise AssertionError(f"it never said {text!r}, but: {heard}")

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_SECONDS)
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@contextmanager
def controlled(*args: str, env: Mapping[str, str] = NOTHING) -> Iterator[Controller]:
    made = Controller(*args, env=env)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.end(signal.SIGKILL)


def test_a_cluster_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    nowhere = tmp_path / "kubeconfig"
    config = {
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a"}}],
        "current-context": "a",
    }
    nowhere.write_text(json.dumps(config))
    done = paceline("kube", "controller", "--kubeconfig", str(nowhere))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: https://127.0.0.1:1 does not answer")


def test_a_context_that_is_not_there_is_named(fresh: RealKube) -> None:
    done = paceline("kube", "controller", "--kubeconfig", str(fresh.kubeconfig), "--context", "reel")
    assert done.returncode == 1
    assert "no context named 'reel'; did you mean 'real'?" in done.stderr


def test_what_manifests_prints_is_taken_by_kubectl_either_way(fresh: RealKube) -> None:
    printed = paceline("kube", "manifests", "--set", "image=paceline:test").stdout
    kinds = re.findall(r"(?m)^kind: (\w+)$", printed)
    assert {"CustomResourceDefinition", "Deployment", "ClusterRole", "ServiceAccount", "Namespace"} <= set(kinds)
    # What lies in a namespace that a dry run does not make would be refused.
    parts = [part for part in re.split(r"(?m)^---$", printed) if part and not re.search(r"(?m)^  namespace:", part)]
    for how in ("--server-side=true", "--server-side=false"):
        kubectl(fresh, "apply", how, "--dry-run=server", "-f", "-", stdin="---".join(parts))


def generations(kube: RealKube) -> set[int]:
    with DirectCluster(load(kube.kubeconfig, Path.read_bytes)) as cluster:
        return {each["metadata"]["generation"] for each in cluster.list(CRDS).items}


def test_a_controller_installs_leads_hands_over_and_lets_go(empty: RealKube) -> None:
    kubeconfig = str(empty.kubeconfig)
    without = paceline("kube", "controller", "--kubeconfig", kubeconfig)
    assert without.returncode == 1
    assert "does not know our kinds; type: paceline kube crds | kubectl apply --server-side -f -" in without.stderr
    with controlled("--kubeconfig", kubeconfig, "--install-crds") as first:
        assert "knows all" in first.says(f"{empty.server} is Kubernetes v1.")
        first.says("leading as ")
        # A definition that is written again is served anew, and every watch of its kind ends.
        with controlled("--kubeconfig", kubeconfig, "--install-crds") as second:
            second.says("waiting: ")
            assert generations(empty) == {1}
            assert first.end(signal.SIGTERM) == 0
            second.says("leading as ")
            with DirectCluster(load(empty.kubeconfig, Path.read_bytes)) as cluster:
                lease = cluster.get(LEASES, "paceline-system", "paceline-controller")
                assert lease["spec"]["leaseTransitions"] == 1
                assert cluster.get(NAMESPACES, "", "paceline-system")
            assert second.end(signal.SIGINT) == 0


def fetch(port: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.fixture
def promtool() -> str:
    """Prometheus' checker of metrics."""
    path = os.environ.get("PACELINE_PROMTOOL") or shutil.which("promtool")
    if path is None:
        pytest.skip("no promtool: type `tools/setup promtool` and set PACELINE_PROMTOOL to what it prints")
    return path


def test_probes_and_metrics_of_a_controller_are_served_and_its_log_is_json(fresh: RealKube, promtool: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ("--kubeconfig", str(fresh.kubeconfig), "--metrics-bind-address", f"127.0.0.1:{port}")
        refused = paceline("kube", "controller", *options)
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        f"error: --metrics-bind-address 127.0.0.1:{port}: cannot listen there: Address already in use; choose another"
    ]
    with controlled(*options, "--log-format", "json", "--install-crds") as controller:
        messages = []
        while not (messages and messages[-1]["message"].startswith("leading as ")):
            line = controller.lines.get(timeout=PATIENCE_SECONDS)
            assert line is not None, messages
            messages.append(json.loads(line))
        assert {"time", "level", "logger", "message"} <= messages[-1].keys()
        assert [fetch(port, path)[0] for path in ("/healthz", "/readyz", "/metrics", "/other")] == [200, 200, 200, 404]
        text = fetch(port, "/metrics")[1]
        checked = subprocess.run(
            (promtool, "check", "metrics"), input=text, capture_output=True, text=True, check=False
        )
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
        for line in (
            'leader_election_master_status{name="paceline-controller"} 1',
            'paceline_jobs{kind="GenericJob",phase="Running"} 0',
            'workqueue_depth{name="jobs"} 0',
        ):
            assert line in text.splitlines()
        assert 'rest_client_requests_total{method="GET",code="200"}' in text
        assert controller.end(signal.SIGTERM) == 0
