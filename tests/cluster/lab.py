"""A real cluster of two nodes with Paceline's controller beside it, and what a test asks of it.

In     manifests, and the names of jobs.
Out    phases, waiting reasons, pods and logs, as kubectl shows them to anybody.
Never  looks into the controller.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

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
SOURCES = Path(__file__).parents[2] / "src" / "paceline"
# Of all resources that a quota of the tests counts: more than the tests use.
HARD = {f"{part}.{name}": "64Gi" for part in ("requests", "limits") for name in ("cpu", "memory")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """The cluster, as an administrator uses it."""

    cluster: RealCluster

    def apply(self, *objects: Mapping[str, Any], namespace: str = "default") -> None:
        text = "\n---\n".join(json.dumps(item) for item in objects)
        self.cluster.run("apply", "--server-side", "-n", namespace, "-f", "-", stdin=text)

    def make_namespace(self, name: str, *, level: str = "", hard: Mapping[str, str] | None = None) -> str:
        """Create a namespace with a level of Pod Security and a quota, and return its name."""
        labels = {"pod-security.kubernetes.io/enforce": level} if level else {}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        if hard:
            quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all"}, "spec": {"hard": hard}}
            self.apply(quota, namespace=name)
        return name

    def load_environment(self, name: str) -> str:
        """Bring the image of an environment of `tools/setup` to every node, and return its name."""
        folder = os.environ.get(f"PACELINE_{name.upper()}")
        if not folder:
            pytest.skip(f"PACELINE_{name.upper()} is not set: it is the folder that `tools/setup {name}` prints")
        image = f"{name}:1"
        load_image(self.cluster, image, Path(folder))
        return image

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Helm:
    """A real Helm with folders of its own."""

    folder: Path
    kubeconfig: Path

    def run(self, *args: str) -> str:
        """Run a command, which must succeed, and return what it prints."""
        homes = {f"HELM_{name}_HOME": str(self.folder / name) for name in ("CACHE", "CONFIG", "DATA")}
        env = {**os.environ, **homes, "KUBECONFIG": str(self.kubeconfig)}
        ran = subprocess.run((helm_or_skip(), *args), env=env, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


def helm_or_skip() -> str:
    """Return the path of Helm."""
    program = shutil.which("helm")
    if program is None:
        pytest.skip("there is no helm: put the folder that `tools/setup helm` prints on PATH")
    return program


@contextmanager
def controller(cluster: RealCluster, kubeconfig: Path) -> Iterator[None]:
    """Run `paceline kube controller` with its own rights until the block ends; return once it leads."""
    log = cluster.home / "controller.log"
    flags = ("--kubeconfig", str(kubeconfig), "--podtools-image", IMAGE)
    command = (str(PACELINE), "kube", "controller", *flags)
    with running(command, log):
        wait_until("the controller leads", lambda: "leading" in log.read_text(), seconds=WAIT_SECONDS)
        yield


def load_image(cluster: RealCluster, name: str, environment: Path | None = None) -> None:
    """Bring an image to every node in which Python and the programs in the pods of jobs run."""
    archive = cluster.home / "image.tar"
    write_python_archive(archive, (f"docker.io/library/{name}",), environment, packages=(SOURCES,))
    cluster.load(archive)
    archive.unlink()
