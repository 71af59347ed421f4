"""Real PyTorch trainings that tests hold at a step: nothing is left to how fast a machine is."""

import contextlib
import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import paceline
from paceline.sdk.job import JobRef
from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.frameworks import folder_of
from tests.e2e.support.manifests import claim, text

EXAMPLE = Path(__file__).parents[3] / "examples" / "04-recovery"
GATE = Path(__file__).parents[1] / "jobs" / "torch_gate.py"
# A change of size starts Python and PyTorch again in all workers, on whatever machine this is.
PATIENCE_SECONDS = 300.0
STEPS = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """An example's job on a claim of its own, which passes gates."""

    cluster: Embedded
    job: JobRef
    folder: Path

    @property
    def name(self) -> str:
        return self.job.name

    def open(self, step: int) -> None:
        (self.folder / "gates" / str(step)).unlink()

    def reaches(self, step: int, *, processes: int, not_from: str = "") -> str:
        """Wait until so many train together and are before a step; give the pod of their first."""

        def look() -> str:
            path = self.folder / "gates" / "at.json"
            now = json.loads(path.read_text()) if path.exists() else {}
            is_there = (now.get("step"), now.get("processes")) == (step, processes)
            return str(now["pod"]) if is_there and now["pod"] != not_from else ""

        try:
            return wait_until(f"{processes} processes are before step {step}", look, PATIENCE_SECONDS)
        except AssertionError as error:
            raise AssertionError(self.story()) from error

    def pods(self) -> dict[str, str]:
        """Give the running pods by replica."""
        return {str(each.place): each.name for each in self.job.pods() if each.phase == "Running"}

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.job.read().get("status") or {})

    def ends(self) -> dict[str, Any]:
        """Wait until the job has succeeded."""
        phase = self.job.wait(2 * PATIENCE_SECONDS).phase
        assert phase == "Succeeded", self.story()
        return self.status

    def log(self, pod: str) -> str:
        """Give what a pod wrote, also if it has gone."""
        return self.cluster.paceline("logs", pod).out

    def story(self) -> str:
        """Give all there is to know when it went wrong."""
        return self.cluster.paceline("describe", self.name).out + self.cluster.paceline("logs", self.name, "--all").out


def begin(cluster: Embedded, file: str, *, closed: tuple[int, ...]) -> contextlib.AbstractContextManager[Training]:
    """Submit a job of the example that is barred at some steps."""
    return submitted(cluster, example(file), script=GATE, closed=closed)


def example(file: str) -> dict[str, Any]:
    return dict(yaml.safe_load((EXAMPLE / file).read_text()))


@contextlib.contextmanager
def submitted(
    cluster: Embedded, job: dict[str, Any], *, script: Path, closed: tuple[int, ...] = ()
) -> Iterator[Training]:
    """Let a script of the tests run the example's, both on a claim of the job's own."""
    name, pod = job["metadata"]["name"], job["spec"]["replicaSpecs"][0]["template"]["spec"]
    pod["volumes"][0]["persistentVolumeClaim"]["claimName"] = name
    main = pod["containers"][0]
    assert main["args"][0] == "train.py"
    main["args"] = [script.name, *main["args"][1:], "--steps", str(STEPS)]
    main["env"] = [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    folder = claimed(cluster, claim(name))
    gates = folder / "gates"
    gates.mkdir(parents=True)
    for step in closed:
        (gates / str(step)).touch()
    for each in (EXAMPLE / "train.py", script):
        shutil.copy(each, folder)
    with paceline.connect(cluster.home) as session:
        yield Training(cluster=cluster, job=session.submit(job), folder=folder)


def claimed(cluster: Embedded, made: dict[str, Any]) -> Path:
    """Make a claim, and give the folder behind it."""
    said = cluster.paceline("submit", "-", stdin=text(made))
    assert said.code == 0, said.err
    folder = folder_of(cluster, made["metadata"]["name"])
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def losses(log: str) -> dict[int, float]:
    """Give what the example said of its steps."""
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+)/\d+  loss ([\d.]+)$", log, re.MULTILINE)}


def kill(pod: str) -> None:
    """Kill the programs of a pod with signal 9, as a machine without memory would: torchrun and what it started."""
    mine = [
        int(each.parent.name)
        for each in Path("/proc").glob("[0-9]*/environ")
        if f"POD_NAME={pod}".encode() in _read(each).split(b"\0")
        and GATE.name.encode() in _read(each.with_name("cmdline")).split(b"\0")
    ]
    assert mine
    for pid in mine:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
