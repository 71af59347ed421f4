"""The image and the chart on a real cluster: built, pulled, installed, upgraded under running jobs, uninstalled."""

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from paceline.podtools.object_store import BucketConfig, open_bucket
from paceline.sdk.submission.source_archive import pack
from paceline.testing.embedded import wait_until
from paceline.testing.git_server import git_server
from paceline.testing.real.cluster import JOINED, REGISTRY, real_cluster
from paceline.testing.real.registry import real_registry
from paceline.testing.s3_server import KEY, KEY_ID, S3Server, s3_server
from tests.cluster.lab import Helm, helm_or_skip
from tests.cluster.manifests import RESTRICTED, generic
from tests.cluster.place import (
    HOME,
    IMAGE,
    ROOT,
    Place,
    build,
    check_undisturbed,
    job,
    lose_api_server,
    lose_leader,
    phase,
    ready,
    running_pods,
)
from tests.e2e.node.test_images import wheel
from tests.kubes import assets_or_skip

CHART = str(ROOT / "charts" / "paceline")
pytestmark = pytest.mark.timeout(1200)

MOST_BYTES = 150_000_000
JOBS = 50
# Within which another controller leads, on a machine with nothing else to do; and on a busy one.
LEADER_SECONDS, LEADER_SECONDS_BUSY = 17.0, 120.0
OPTIONS = (*HOME, "--set", f"image={IMAGE},webhook.bindAddress=0.0.0.0:9443")
SOAK = (pytest.mark.soak, pytest.mark.timeout(7200))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    helm_or_skip()
    for name in ("node", "registry", "moto"):
        subprocess.run((ROOT / "tools" / "setup", name), check=True, capture_output=True)
    base = subprocess.run((ROOT / "tools" / "setup", "base"), check=True, capture_output=True, text=True).stdout.strip()
    folder = tmp_path_factory.mktemp("install")
    with real_cluster(assets_or_skip()) as node, real_registry(REGISTRY):
        built = build(folder, BASE=f"oci-archive:{base}", PUSH=IMAGE, TLS="no")
        assert built.returncode == 0, built.stderr
        assert built.stdout.strip() == IMAGE
        yield Place(node=node, helm=Helm(folder=folder, kubeconfig=node.kube.kubeconfig))


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


@pytest.fixture
def installed(place: Place) -> Place:
    """The same cluster with both controllers ready; one test uninstalls them."""
    begun = time.monotonic()
    if "paceline" in place.helm.run("list", "--short", *HOME).split():
        return place
    place.helm.run("install", "paceline", CHART, "--create-namespace", *OPTIONS)
    wait_until("both controllers are ready", lambda: ready(place) == 2, seconds=300)
    sys.stdout.write(f"ready {time.monotonic() - begun:.1f} s after helm install\n")
    return place


def test_the_installed_controllers_run_a_job_with_the_image_they_have(installed: Place, tmp_path: Path) -> None:
    pods = installed.read("pods", "-l", "app.kubernetes.io/component=controller", *HOME)["items"]
    assert [item["spec"]["securityContext"]["runAsUser"] for item in pods] == [65532] * 2

    installed.apply(*packed_job(tmp_path))
    wait_until("the packed job ends", lambda: phase(installed, "packed") in ("Succeeded", "Failed"), seconds=300)
    assert installed.node.run("logs", "-l", "tensorstack.dev/owner-name=packed", "-c", "main") == "unpacked"
    installed.node.run("delete", "genericjob", "packed")


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[str]:
    """A repository whose code needs a package of an index; both are on the machine that the nodes are on."""
    wheel(tmp_path / "tinything", "tinything", "def say():\n    print('tiny and well')\n")
    pages = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer((JOINED, 0), pages) as index, git_server(tmp_path / "git", host=JOINED) as server:
        thread = threading.Thread(target=index.serve_forever)
        thread.start()
        requirements = f"--index-url http://{JOINED}:{index.server_address[1]}/\ntinything==1.0\n"
        train = "import tinything\ntinything.say()\n"
        server.commit("code", {"train.py": train, "requirements.txt": requirements}, tag="v1")
        try:
            yield server.url("code")
        finally:
            index.shutdown()
            thread.join()


def test_code_and_packages_come_to_pods_of_a_restricted_namespace_with_a_quota(
    installed: Place, repository: str
) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    hard = {f"{part}.{name}": "64Gi" for part in ("requests", "limits") for name in ("cpu", "memory")}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all", "namespace": "strict"}}
    installed.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": labels}},
        {**quota, "spec": {"hard": hard}},
    )
    container = {"image": IMAGE, "command": ["python", "train.py"], "securityContext": RESTRICTED}
    source = {"git": {"url": repository, "revision": "v1"}}
    fed = generic("fed", "", pod={"container": container}, source=source)
    fed["metadata"]["namespace"] = "strict"
    installed.apply(fed)

    def ended() -> dict[str, Any] | None:
        status = installed.read("genericjob", "fed", "-n", "strict").get("status") or {}
        return status if status.get("phase") in ("Succeeded", "Failed") else None

    status = wait_until("the job ends", ended, seconds=300)

    assert status["phase"] == "Succeeded", status
    # Not by the label of the job, which the pod that found the commit has, too.
    pods = [replica["name"] for replica in status["tasks"][0]["replicas"]]
    assert [installed.node.run("logs", "-n", "strict", name, "-c", "main") for name in pods] == ["tiny and well\n"] * 2


@pytest.fixture
def store() -> Iterator[S3Server]:
    """An S3 server with a bucket, on the machine that the nodes are on."""
    with s3_server(host=JOINED) as server:
        server.make_bucket("lab")
        yield server


# A claim of this cluster is a folder that belongs to root, and `fsGroup` does not change that.
@pytest.mark.parametrize(("medium", "user"), [("Claim", 0), ("Pod", 65532)], ids=["claim", "pod"])
def test_data_comes_from_a_bucket_and_results_go_to_it(
    installed: Place, store: S3Server, medium: str, user: int
) -> None:
    keys = {"accessKeyId": KEY_ID, "accessKeySecret": KEY}
    data, runs = (
        open_bucket(BucketConfig(url=f"s3://lab/{folder}", endpoint=store.address, secret=keys))
        for folder in ("data", "runs")
    )
    data.put("rows.csv", b"one row")
    name = f"bucket-{medium.lower()}"
    command = ["sh", "-c", 'mkdir /output/model; echo "$HOSTNAME read $(cat /input/rows.csv)" >/output/model/report']
    copied = generic(
        name,
        "",
        pod={"container": {"image": IMAGE, "command": command, "securityContext": {"runAsUser": user}}},
        input={"bucket": {"url": "s3://lab/data", "endpoint": store.address, "secret": name}},
        output={
            "bucket": {"url": "s3://lab/runs", "endpoint": store.address, "secret": name},
            "staging": {"medium": medium},
        },
    )
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": keys}
    installed.apply(secret, copied)

    wait_until("the job ends", lambda: phase(installed, name) in ("Succeeded", "Failed"), seconds=300)

    status = installed.read("genericjob", name)["status"]
    assert status["phase"] == "Succeeded", status
    pods = [replica["name"] for replica in status["tasks"][0]["replicas"]]
    reports = [runs.get(f"{name}/worker-{index}/model/report") for index in range(2)]
    assert reports == [f"{pod} read one row\n".encode() for pod in pods]
    installed.node.run("delete", "genericjob", name)


def sent(word: str, rounds: int, jobs: int) -> list[list[str]]:
    """Return the names of the jobs of each round."""
    return [[f"{word}-{index}-{number}" for number in range(jobs)] for index in range(rounds)]


@pytest.mark.parametrize(
    ("number", "rounds", "jobs", "seconds"),
    [
        pytest.param(signal.SIGKILL, 3, 6, LEADER_SECONDS_BUSY, id="killed"),
        pytest.param(signal.SIGSTOP, 2, 6, LEADER_SECONDS_BUSY, id="frozen"),
        pytest.param(signal.SIGKILL, 50, 4, LEADER_SECONDS, id="killed-often", marks=SOAK),
        pytest.param(signal.SIGSTOP, 10, 20, LEADER_SECONDS, id="frozen-often", marks=SOAK),
    ],
)
def test_leaders_that_are_gone_are_replaced_and_nothing_happens_twice(
    installed: Place, number: signal.Signals, rounds: int, jobs: int, seconds: float
) -> None:
    names = sent(number.name.lower(), rounds, jobs)

    durations = [lose_leader(installed, number, round_names) for round_names in names]

    sys.stdout.write(f"{number.name}: another one leads after {max(durations):.1f} s at most\n")
    assert max(durations) <= seconds
    check_undisturbed(installed, [name for round_names in names for name in round_names])


@pytest.mark.parametrize(
    ("rounds", "jobs"), [pytest.param(2, 6, id="twice"), pytest.param(10, 20, id="often", marks=SOAK)]
)
def test_an_api_server_that_is_killed_with_its_database_finds_all_jobs_again(
    installed: Place, rounds: int, jobs: int
) -> None:
    names = sent("killed-server", rounds, jobs)

    for round_names in names:
        lose_api_server(installed, round_names)

    check_undisturbed(installed, [name for round_names in names for name in round_names])


def test_it_is_upgraded_under_running_jobs_and_uninstalled(installed: Place) -> None:
    wait_until("no other pods run", lambda: not running_pods(installed), seconds=120)
    installed.apply(*(job(index) for index in range(JOBS)))
    wait_until("all jobs run", lambda: len(running_pods(installed)) == JOBS, seconds=600)
    before = running_pods(installed)

    changed = ("--set", "controller.priorityClassName=system-cluster-critical")
    installed.helm.run("upgrade", "paceline", CHART, *OPTIONS, *changed)
    wait_until("the new controllers are ready", lambda: ready(installed) == 2, seconds=300)
    installed.node.run("delete", "genericjob", "job-0")
    wait_until("they work", lambda: len(running_pods(installed)) == JOBS - 1, seconds=120)
    remaining = {name: pod for name, pod in before.items() if not name.startswith("job-0-")}
    assert running_pods(installed) == remaining

    installed.helm.run("uninstall", "paceline", *HOME)
    wait_until("the controllers are gone", lambda: not installed.read("pods", *HOME)["items"], seconds=120)
    assert len(installed.read("genericjobs")["items"]) == JOBS - 1
    assert running_pods(installed) == remaining
    installed.node.run("delete", "genericjobs", "--all")
