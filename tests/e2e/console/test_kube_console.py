"""`paceline kube console`: one console for many people, who bring their own tokens."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from paceline.client.rest_config import from_json
from paceline.client.sync import DirectCluster
from paceline.host.asgi_server import loopback_socket
from paceline.testing.embedded import Embedded, paceline_command
from tests.e2e.console.browser import Browser

TOKENS = "/api/v1/namespaces/default/serviceaccounts/ada/token"


def free_port() -> int:
    with loopback_socket(0) as sock:
        return int(sock.getsockname()[1])


@pytest.fixture
def ports(cluster: Embedded, tmp_path: Path) -> Iterator[tuple[int, int]]:
    """The ports of the console and of its probes, while the command runs before the cluster."""
    access = from_json(cluster.kubeconfig, Path.read_bytes)
    assert access is not None
    (tmp_path / "ca.crt").write_bytes(access.ca)
    (tmp_path / "key").write_bytes(os.urandom(32))
    console, health = free_port(), free_port()
    addresses = ["--listen", f"127.0.0.1:{console}", "--health", f"127.0.0.1:{health}", "--server", access.server]
    files = ["--certificate-authority", str(tmp_path / "ca.crt"), "--key-file", str(tmp_path / "key")]
    with Popen([paceline_command(), "kube", "console", *addresses, *files], stderr=PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert f"http://127.0.0.1:{console}" in process.stderr.readline()
            yield console, health
        finally:
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate()
    assert process.returncode == 0, log


def test_people_act_with_their_own_tokens_and_the_console_has_none(cluster: Embedded, ports: tuple[int, int]) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ada"}}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    access = from_json(cluster.kubeconfig, Path.read_bytes)
    assert access is not None
    with DirectCluster(access) as client:
        client.post("/api/v1/namespaces/default/serviceaccounts", account)
        token = client.post(TOKENS, request)["status"]["token"]
    console, health = ports
    browser = Browser(host=f"localhost:{console}")

    assert Browser(host=f"localhost:{health}").send("GET", "/readyz") == (200, b"ok")
    assert browser.send("GET", "/healthz", Host="10.1.2.3:8080") == (200, b"ok")
    assert browser.send("GET", "/k8s/api/v1/namespaces")[0] == 401
    options = browser.json("GET", "/api/login")
    assert options["codes"] is False
    assert len(options["fingerprint"].split(":")) == 32

    browser.json("POST", "/api/login", {"token": token})

    assert browser.json("GET", "/api/me")["name"] == "system:serviceaccount:default:ada"
    assert browser.send("GET", "/k8s/api/v1/namespaces/default/pods")[0] in (200, 403)
