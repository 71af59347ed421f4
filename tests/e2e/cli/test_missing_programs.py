"""A program that is missing is said where the user looks: which one, and how to get it."""

import json
import shutil
from pathlib import Path

import pytest

from paceline.testing.embedded import embedded, wait_until
from tests.e2e.support.manifests import generic, pytorch, text


@pytest.fixture
def path_without_bubblewrap(tmp_path: Path) -> str:
    """A PATH with everything the machine has but bwrap."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for source in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(source).glob("*"):
            if program.name != "bwrap" and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


def test_without_bubblewrap_the_job_waits_and_says_what_to_install(
    path_without_bubblewrap: str, tmp_path: Path
) -> None:
    with embedded(env={"PATH": path_without_bubblewrap}) as cluster:
        job = tmp_path / "job.yaml"
        job.write_text(text(generic("walled", command=["true"])))
        assert cluster.paceline("submit", str(job)).code == 0

        waited = cluster.kubectl("wait", "--for=jsonpath={.status.waiting}", "gj/walled", "--timeout=30s")
        assert waited.code == 0, waited.err
        status = json.loads(cluster.kubectl("get", "gj", "walled", "-o", "json").out)["status"]
        assert status["phase"] == "Pending"
        assert "bubblewrap" in status["waiting"]
        assert "install" in status["waiting"]
        wait_until("it is told", lambda: "bubblewrap" in cluster.kubectl("get", "events").out)


@pytest.mark.slow
def test_without_torchrun_the_job_fails_and_says_where_to_get_it(tmp_path: Path) -> None:
    if shutil.which("torchrun"):
        pytest.fail("this machine's own PATH has torchrun; the test needs one that has not")
    with embedded() as cluster:
        job = pytorch("spun", command=["python"], args=["-c", "print(1)"], workers=1)
        job["spec"]["torchrunConfig"] = {"enabled": True, "procPerNode": "1"}
        path = tmp_path / "job.yaml"
        path.write_text(text(job))

        ran = cluster.paceline("run", str(path))

        assert ran.code == 1
        assert "torchrun" in ran.out + ran.err
        status = json.loads(cluster.kubectl("get", "pj", "spun", "-o", "json").out)["status"]
        told = [each["message"] for each in status["conditions"] if each["type"] == "ReplicaFailure"]
        assert "torchrun" in told[0]
        assert "image" in told[0]
        wait_until("it is told", lambda: "torchrun" in cluster.kubectl("get", "events").out)


def test_an_image_that_maps_to_nothing_is_said_not_guessed(tmp_path: Path) -> None:
    with embedded() as cluster:
        job = generic("foreign", command=["true"])
        job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["image"] = "acme/secret:7"
        path = tmp_path / "job.yaml"
        path.write_text(text(job))
        assert cluster.paceline("submit", str(path)).code == 0

        waited = cluster.kubectl("wait", "--for=jsonpath={.status.waiting}", "gj/foreign", "--timeout=30s")
        assert waited.code == 0, waited.err
        status = json.loads(cluster.kubectl("get", "gj", "foreign", "-o", "json").out)["status"]
        assert "--image 'acme/secret:7=" in status["waiting"]
