"""A real cluster of two nodes with Paceline's controller beside it, and what a test asks of it.

In     manifests, and the names of jobs.
Out    phases, waiting reasons, pods and logs, as kubectl shows them to anybody.
Never  looks into the controller.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import HostError
from paceline.testing.embedded import wait_until
from paceline.testing.real.cluster import RealCluster
from paceline.testing.real.kube import running
from paceline.testing.real.python_image import write_python_archive

IMAGE = "python:3.11"
ENDED = ("Succeeded", "Failed")
WAIT_SECONDS = 240.0
# "The job's own `waiting` names it within 30 s", on a quiet machine.
REASON_SECONDS = 90.0
OWNER = "tensorstack.dev/owner-name"
PACELINE = Path(sys.executable).with_name("paceline")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """The cluster, as an administrator uses it."""

    cluster: RealCluster

    def apply(self, *objects: Mapping[str, Any], namespace: str = "default") -> None:
        text = "\n---\n".join(json.dumps(item) for item in objects)
        self.cluster.run("apply", "--server-side", "-n", namespace, "-f", "-", stdin=text)

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        return json.loads(self.cluster.run("get", kind, name, "-n", namespace, "-o", "json"))

    def pods(self, job: str, namespace: str = "default") -> list[dict[str, Any]]:
        selected = self.cluster.run("get", "pods", "-n", namespace, "-l", f"{OWNER}={job}", "-o", "json")
        return json.loads(selected)["items"]

    def logs(self, job: str, namespace: str = "default") -> str:
        flags = ("--prefix", "--tail=-1", "--max-log-requests=20", "--ignore-errors")
        return self.cluster.run("logs", "-n", namespace, "-l", f"{OWNER}={job}", *flags)

    def phase(self, kind: str, name: str, namespace: str = "default") -> str:
        return str(self.get(kind, name, namespace).get("status", {}).get("phase", ""))

    def await_phase(self, kind: str, name: str, phase: str, namespace: str = "default") -> dict[str, Any]:
        """Return the object once it has the phase; a job that ends otherwise fails the test with its pods and logs."""

        def look() -> dict[str, Any] | None:
            obj = self.get(kind, name, namespace)
            now = obj.get("status", {}).get("phase")
            if now == phase:
                return obj
            assert now not in ENDED, f"{kind} {name} is {now}: {self.story(name, namespace)}\n{obj['status']}"
            return None

        try:
            return wait_until(f"{kind} {name} is {phase}", look, seconds=WAIT_SECONDS)
        except AssertionError as error:
            status = self.get(kind, name, namespace).get("status")
            raise AssertionError(f"{error}\n{self.story(name, namespace)}\n{status}") from None

    def await_reason(self, kind: str, name: str, *words: str, namespace: str = "default") -> str:
        """Return what the job waits for, once all words are in it."""
        texts = [""]

        def look() -> str:
            texts.append(json.dumps(self.get(kind, name, namespace).get("status", {}).get("waiting") or ""))
            return texts[-1] if all(word in texts[-1] for word in words) else ""

        try:
            return wait_until(f"{name} names {words}", look, seconds=REASON_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}; it says {texts[-1]}\n{self.story(name, namespace)}") from None

    def story(self, job: str, namespace: str) -> str:
        """Return what one wants to read when a job did not do what it should."""
        parts = []
        for command in (
            ("get", "pods", "-n", namespace, "-l", f"{OWNER}={job}", "-o", "wide"),
            ("get", "events", "-n", namespace, "--sort-by=.lastTimestamp"),
        ):
            try:
                parts.append(self.cluster.run(*command)[-3000:])
            except HostError as error:
                parts.append(str(error))
        try:
            parts.append(self.logs(job, namespace)[-3000:])
        except HostError as error:
            parts.append(str(error))
        return "\n".join(parts)

    def paceline(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run a command of ours before this cluster."""
        command = (str(PACELINE), *args, "--kubeconfig", str(self.cluster.kube.kubeconfig))
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_SECONDS)


@contextmanager
def controller(cluster: RealCluster, kubeconfig: Path) -> Iterator[None]:
    """Run `paceline kube controller` with its own rights until the block ends; return once it leads."""
    log = cluster.home / "controller.log"
    command = (str(PACELINE), "kube", "controller", "--kubeconfig", str(kubeconfig))
    with running(command, log):
        wait_until("the controller leads", lambda: "leading" in log.read_text(), seconds=WAIT_SECONDS)
        yield


def load_python(cluster: RealCluster) -> None:
    """Bring an image to every node in which Python runs, and TensorBoard if this machine has it."""
    archive = cluster.home / "python.tar"
    environment = os.environ.get("PACELINE_TENSORBOARD", "")
    write_python_archive(archive, (f"docker.io/library/{IMAGE}",), Path(environment) if environment else None)
    cluster.load(archive)
    archive.unlink()
