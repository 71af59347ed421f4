"""A real Kueue beside a real API server, as a process that a test can kill and start again.

In     the folder that `tools/setup kueue` prints, root, and a running API server with its files.
Out    the kinds of Kueue, its admission webhooks, and its controller.
Never  leaves a process or a file outside of the given folder.
"""

import base64
import http.client
import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from paceline.errors import HostError
from paceline.testing.real.cluster import RealCluster
from paceline.testing.real.kube import Process, running
from paceline.testing.real.node_programs import wait_until

NAMESPACE = "kueue-system"
_LOOPBACK = "127.0.0.1"
# Kueue reads the certificate of its metrics from there and nowhere else, so it gets an /etc of its own.
_METRICS_KEYS = "/etc/kueue/metrics/certs"
_IN_OWN_ETC = f"""
mount -t tmpfs none /etc && mkdir -p {_METRICS_KEYS} && cp "$1"/tls.* {_METRICS_KEYS} && shift && exec "$@"
"""


@dataclass(slots=True, kw_only=True)
class RealKueue:
    """A controller of Kueue; `start` and `kill` in turn."""

    cluster: RealCluster
    program: Path
    home: Path
    # Where its webhooks answer, and where it says how it is.
    webhook_port: int
    health_port: int
    _process: AbstractContextManager[Process] | None = field(init=False, default=None)

    def start(self) -> None:
        """Start the controller, and return once it and its webhooks answer."""
        unshare, shell = _path_of("unshare"), _path_of("sh")
        command = (
            *(unshare, "--mount", "--propagation=private", shell, "-c", _IN_OWN_ETC, "kueue", str(self.home)),
            *(str(self.program), f"--config={self.home / 'config.yaml'}"),
            *(f"--kubeconfig={self.cluster.kube.kubeconfig}", "--feature-gates=VisibilityOnDemand=false"),
        )
        log = self.home / "kueue.log"
        self._process = running(command, log, {"PATH": os.environ["PATH"]})
        process = self._process.__enter__()

        def is_ready() -> bool:
            has_ended = process.poll() is not None
            return has_ended or (
                _is_ok(self.health_port, "/readyz") and _is_open(_host(self.cluster), self.webhook_port)
            )

        wait_until("Kueue is ready", is_ready)
        if process.poll() is not None:
            raise HostError(f"Kueue ended with code {process.returncode}; it said:\n{log.read_text()[-3000:]}")

    def kill(self) -> None:
        """End the controller as kill -9 does."""
        if self._process is not None:
            self._process.__exit__(None, None, None)
            self._process = None


@contextmanager
def real_kueue(cluster: RealCluster, folder: Path) -> Iterator[RealKueue]:
    """Define Kueue's kinds in a cluster and run its controller until the block ends."""
    for name in ("kueue", "kueue-crds", "kueue-webhooks"):
        if not (folder / name).exists():
            raise HostError(f"{folder} lacks {name}; type: tools/setup kueue")
    home = cluster.home / "kueue"
    home.mkdir()
    host = _host(cluster)
    kueue = RealKueue(
        cluster=cluster,
        program=folder / "kueue",
        home=home,
        webhook_port=_free_port(host),
        health_port=_free_port(_LOOPBACK),
    )
    # The API server's own certificate is for its address, where Kueue listens too.
    keys = cluster.kube.kubeconfig.parent
    for suffix in ("crt", "key"):
        shutil.copyfile(keys / f"apiserver.{suffix}", home / f"tls.{suffix}")
    (home / "config.yaml").write_text(json.dumps(_config(kueue, host)))
    cluster.run("apply", "--server-side", "-f", str(folder / "kueue-crds"))
    cluster.run("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    cluster.run("create", "namespace", NAMESPACE)
    try:
        kueue.start()
        webhooks = yaml.safe_load_all((folder / "kueue-webhooks" / "manifests.yaml").read_text())
        url = f"https://{host}:{kueue.webhook_port}"
        ours = [_of_kueue_alone(part, url, cluster.kube.ca_file.read_bytes()) for part in webhooks if part]
        cluster.run("apply", "-f", "-", stdin=yaml.safe_dump_all(ours))
        yield kueue
    finally:
        kueue.kill()


def _config(kueue: RealKueue, host: str) -> dict[str, Any]:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"{_LOOPBACK}:{kueue.health_port}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": kueue.webhook_port, "host": host, "certDir": str(kueue.home)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["batch/job"]},
    }


def _of_kueue_alone(configuration: dict[str, Any], url: str, authority: bytes) -> dict[str, Any]:
    """Return a webhook configuration that concerns only Kueue's own kinds, and leads to an address."""
    mine = []
    for webhook in configuration["webhooks"]:
        if any("kueue.x-k8s.io" in rule["apiGroups"] for rule in webhook["rules"]):
            path = webhook["clientConfig"]["service"]["path"]
            client = {"url": f"{url}{path}", "caBundle": base64.b64encode(authority).decode()}
            mine.append({**webhook, "clientConfig": client})
    metadata = {**configuration["metadata"], "name": f"kueue-{configuration['metadata']['name']}"}
    return {**configuration, "metadata": metadata, "webhooks": mine}


def _host(cluster: RealCluster) -> str:
    return cluster.kube.server.removeprefix("https://").rpartition(":")[0]


def _path_of(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise HostError(f"{program} is missing, which runs Kueue in a mount namespace of its own")
    return path


def _free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def _is_open(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((address, port)) == 0


def _is_ok(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(_LOOPBACK, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
