"""A real cluster with a registry and Paceline installed in it, and the ways to take its control plane away.

In     the image that `make image` has pushed, and names of jobs.
Out    what kubectl shows; leaders that are killed and frozen; an API server that is killed and started again.
Never  asserts that a controller does its work: the tests do.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from paceline.testing.embedded import wait_until
from paceline.testing.real.cluster import REGISTRY, RealCluster
from tests.cluster.lab import OWNER, Helm

ROOT = Path(__file__).parents[2]
IMAGE = f"{REGISTRY}/paceline:test"
HOME = ("--namespace", "paceline-system")
# A kubelet waits longer before each further start of a container that ends again and again.
MANY_RESTARTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A real cluster with a registry that has our image."""

    node: RealCluster
    helm: Helm

    def read(self, *args: str) -> Any:
        return json.loads(self.node.run("get", *args, "-o", "json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        self.node.run("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))


def build(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run `make image` with a store of its own."""
    env = {**os.environ, "BUILDAH_ROOT": str(folder / "store"), "CONSOLE": "no", **settings}
    return subprocess.run((ROOT / "tools" / "image",), env=env, capture_output=True, text=True, check=False)


def job(index: int) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox:1.36",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "3600"],
    }
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": f"job-{index}"},
        "spec": {
            "replicaSpecs": [{"type": "worker", "replicas": 1, "template": template}],
            "successRules": [{"worker": [0]}],
            "failureRules": [{"worker": [0]}],
        },
    }


def phase(place: Place, name: str) -> str:
    return str((place.read("genericjob", name).get("status") or {}).get("phase"))


def running_pods(place: Place) -> dict[str, tuple[str, int]]:
    """Return the pods of jobs that run: uid and restarts by name."""
    pods = place.read("pods", "-l", "tensorstack.dev/owner-kind=GenericJob")["items"]
    return {
        item["metadata"]["name"]: (
            item["metadata"]["uid"],
            sum(status["restartCount"] for status in item["status"]["containerStatuses"]),
        )
        for item in pods
        if item["status"]["phase"] == "Running"
    }


def ready(place: Place) -> int:
    """Return how many controllers of the present version are ready."""
    status = place.read("deployment", "paceline-controller", *HOME)["status"]
    is_current = status.get("updatedReplicas") == status.get("replicas") == 2
    return int(status.get("readyReplicas") or 0) if is_current else 0


def holder(place: Place) -> str:
    """Return the pod of the controller that leads."""
    lease = place.read("lease", "paceline-controller", *HOME)
    return str(lease["spec"].get("holderIdentity") or "").rpartition("_")[0]


def signal_container(place: Place, pod_name: str, number: signal.Signals) -> None:
    """Send a signal to all processes of the container of a pod."""
    (state,) = place.read("pod", pod_name, *HOME)["status"]["containerStatuses"]
    container = state["containerID"].rpartition("/")[2]
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and container in (entry / "cgroup").read_text():
                os.kill(int(entry.name), number)


def send(place: Place, names: list[str]) -> None:
    """Create jobs that stay, once both controllers are ready and one of them leads."""
    for pod in place.read("pods", "-l", "app.kubernetes.io/component=controller", *HOME)["items"]:
        if any(status["restartCount"] >= MANY_RESTARTS for status in pod["status"].get("containerStatuses") or ()):
            place.node.run("delete", "pod", pod["metadata"]["name"], *HOME, "--wait")
    wait_until("both controllers are ready", lambda: ready(place) == 2, seconds=120)
    wait_until("a controller leads", lambda: holder(place))
    place.apply(*({**job(0), "metadata": {"name": name}} for name in names))


def await_running(place: Place, names: list[str]) -> None:
    wait_until("all jobs run", lambda: {phase(place, name) for name in names} == {"Running"}, seconds=240)


def lose_leader(place: Place, number: signal.Signals, names: list[str]) -> float:
    """Send jobs and take the leader away at once; return after how many seconds another one led.

    By then it has started the jobs, and both are ready again.
    """
    send(place, names)
    leader = holder(place)
    signal_container(place, leader, number)
    begun = time.monotonic()
    try:
        wait_until("another one leads", lambda: holder(place) not in ("", leader), seconds=120)
        seconds = time.monotonic() - begun
        await_running(place, names)
    finally:
        signal_container(place, leader, signal.SIGCONT)
    wait_until("both controllers are ready", lambda: ready(place) == 2, seconds=120)
    return seconds


def lose_api_server(place: Place, names: list[str]) -> None:
    """Send jobs and kill the API server and its database at once; return when they are back and the jobs run."""
    send(place, names)
    place.node.kube.kill()
    place.node.kube.start()
    await_running(place, names)


def check_undisturbed(place: Place, names: list[str]) -> None:
    """Check that every job has one pod and no restart, delete the jobs, and check that nothing of them is left."""
    owned = ("-l", f"{OWNER} in ({','.join(names)})")
    pods = place.read("pods", *owned)["items"]
    assert sorted(pod["metadata"]["labels"][OWNER] for pod in pods) == sorted(names)
    assert {status["restartCount"] for pod in pods for status in pod["status"]["containerStatuses"]} == {0}
    jobs = place.read("genericjobs", *names)["items"]
    assert {(job["status"].get("attempt", 0), job["status"].get("backoffCount", 0)) for job in jobs} == {(0, 0)}
    place.node.run("delete", "genericjob", *names)
    wait_until("nothing of them is left", lambda: not place.read("pods,services", *owned)["items"], seconds=600)
