"""The image and the chart on a real cluster: built, pulled, installed, upgraded under running jobs, uninstalled."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from paceline.sdk.submission.source_archive import pack
from paceline.testing.embedded import wait_until
from paceline.testing.real.cluster import REGISTRY, RealCluster, real_cluster
from paceline.testing.real.registry import real_registry
from tests.kubes import assets_or_skip

ROOT = Path(__file__).parents[2]
CHART = str(ROOT / "charts" / "paceline")
pytestmark = pytest.mark.timeout(1200)

IMAGE = f"{REGISTRY}/paceline:test"
MOST_BYTES = 150_000_000
JOBS = 50
HOME = ("--namespace", "paceline-system")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A real cluster with a registry that has our image."""

    node: RealCluster
    helm_env: dict[str, str]

    def helm(self, *args: str) -> str:
        program = shutil.which("helm") or "helm"
        ran = subprocess.run((program, *args), env=self.helm_env, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def read(self, *args: str) -> Any:
        return json.loads(self.node.run("get", *args, "-o", "json"))


def build(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run `make image` with a store of its own."""
    env = {**os.environ, "BUILDAH_ROOT": str(folder / "store"), "CONSOLE": "no", **settings}
    return subprocess.run((ROOT / "tools" / "image",), env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if os.geteuid() != 0 or shutil.which("helm") is None:
        pytest.skip("a real node needs root, and this test helm: put the folder that `tools/setup helm` prints on PATH")
    for name in ("node", "registry"):
        subprocess.run((ROOT / "tools" / "setup", name), check=True, capture_output=True)
    base = subprocess.run((ROOT / "tools" / "setup", "base"), check=True, capture_output=True, text=True).stdout.strip()
    folder = tmp_path_factory.mktemp("install")
    with real_cluster(assets_or_skip()) as node, real_registry(REGISTRY):
        built = build(folder, BASE=f"oci-archive:{base}", PUSH=IMAGE, TLS="no")
        assert built.returncode == 0, built.stderr
        assert built.stdout.strip() == IMAGE
        homes = {f"HELM_{name}_HOME": str(folder / name) for name in ("CACHE", "CONFIG", "DATA")}
        yield Place(node=node, helm_env={**os.environ, **homes, "KUBECONFIG": str(node.kube.kubeconfig)})


def compressed_bytes() -> int:
    """What a node pulls: the sizes of the layers in the image's manifest."""
    url = f"http://{REGISTRY}/v2/paceline/manifests/test"
    accept = "Accept: application/vnd.oci.image.manifest.v1+json"
    curl = shutil.which("curl") or "curl"
    told = subprocess.run(
        (curl, "--silent", "--noproxy", "*", "--header", accept, url), capture_output=True, check=True
    )
    return sum(layer["size"] for layer in json.loads(told.stdout)["layers"])


def pod(name: str, *command: str, **security: Any) -> dict[str, Any]:
    container = {"name": "main", "image": IMAGE, "command": list(command)}
    spec = {"restartPolicy": "Never", "containers": [container], "securityContext": {"runAsNonRoot": True, **security}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_the_image_is_small_and_its_programs_run_as_nobody(place: Place) -> None:
    assert compressed_bytes() < MOST_BYTES
    script = (
        "id -u; paceline --version; git --version; uv --version; python -m paceline.podtools --help; command -v cc gcc"
    )
    manifest = pod("programs", "sh", "-c", script)
    place.node.run("apply", "-f", "-", stdin=json.dumps(manifest))
    wait_until("the pod ends", lambda: place.read("pod", "programs")["status"]["phase"] in ("Succeeded", "Failed"))
    told = place.node.run("logs", "programs").splitlines()

    assert told[0] == "65532"
    assert [line.split()[0] for line in told[1:4]] == ["paceline", "git", "uv"]
    assert told[4].startswith("usage: python -m paceline.podtools")
    assert not [line for line in told if line.endswith(("/cc", "/gcc"))]


def test_what_is_missing_is_named_in_one_line(place: Place, tmp_path: Path) -> None:
    del place
    no_base = build(tmp_path, BASE=f"{REGISTRY}/nothing:1")
    assert no_base.returncode != 0
    assert no_base.stderr.startswith(
        f"image: the base image {REGISTRY}/nothing:1 cannot be had (BASE=IMAGE names another): "
    )
    assert len(no_base.stderr.splitlines()) == 1


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


def packed_job(folder: Path) -> list[dict[str, Any]]:
    """Return a job whose code is an archive, which a container of our own image unpacks, and the archive."""
    (folder / "words.txt").write_text("unpacked")
    packed = pack(str(folder))
    manifest = job(0)
    manifest["metadata"]["name"] = "packed"
    manifest["spec"]["source"] = {"archive": {"digest": packed.digest, "configMap": "code"}, "requirements": ""}
    container = manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]
    container["command"] = ["cat", "words.txt"]
    return [packed.config_map("code", {}), manifest]


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
    status = place.read("deployment", "paceline-controller", *HOME)["status"]
    pods = place.read("pods", *HOME, "-l", "app.kubernetes.io/component=controller")["items"]
    restarts = sum(state["restartCount"] for pod in pods for state in pod["status"].get("containerStatuses", ()))
    is_current = status.get("updatedReplicas") == status.get("replicas") == 2 and not restarts
    return int(status.get("readyReplicas") or 0) if is_current else 0


def test_it_is_installed_upgraded_under_running_jobs_and_uninstalled(place: Place, tmp_path: Path) -> None:
    options = (*HOME, "--set", f"image={IMAGE},webhook.bindAddress=0.0.0.0:9443")
    begun = time.monotonic()
    place.helm("install", "paceline", CHART, "--create-namespace", *options)
    wait_until("both controllers are ready", lambda: ready(place) == 2, seconds=300)
    sys.stdout.write(f"ready {time.monotonic() - begun:.1f} s after helm install\n")
    pods = place.read("pods", "-l", "app.kubernetes.io/component=controller", *HOME)["items"]
    assert [item["spec"]["securityContext"]["runAsUser"] for item in pods] == [65532] * 2

    code = tmp_path / "code"
    code.mkdir()
    place.node.run("apply", "-f", "-", stdin=yaml.safe_dump_all(packed_job(code)))
    wait_until("the packed job ends", lambda: phase(place, "packed") in ("Succeeded", "Failed"), seconds=300)
    assert place.node.run("logs", "-l", "tensorstack.dev/owner-name=packed", "-c", "main") == "unpacked"
    place.node.run("delete", "genericjob", "packed")

    manifests = yaml.safe_dump_all(job(index) for index in range(JOBS))
    place.node.run("apply", "-f", "-", stdin=manifests)
    wait_until("all jobs run", lambda: len(running_pods(place)) == JOBS, seconds=600)
    before = running_pods(place)

    place.helm("upgrade", "paceline", CHART, *options, "--set", "controller.priorityClassName=system-cluster-critical")
    wait_until("the new controllers are ready", lambda: ready(place) == 2, seconds=300)
    place.node.run("delete", "genericjob", "job-0")
    wait_until("they work", lambda: len(running_pods(place)) == JOBS - 1, seconds=120)
    assert running_pods(place) == {name: pod for name, pod in before.items() if not name.startswith("job-0-")}

    place.helm("uninstall", "paceline", *HOME)
    wait_until("the controllers are gone", lambda: not place.read("pods", *HOME)["items"], seconds=120)
    assert len(place.read("genericjobs")["items"]) == JOBS - 1
    assert set(running_pods(place).values()) == {pod for name, pod in before.items() if not name.startswith("job-0-")}
