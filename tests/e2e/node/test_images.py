"""Environments are built by the real uv: once, whole or not at all, and said so on the pod."""

import base64
import hashlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.environments.cache import find_uv
from paceline.testing.embedded import Embedded, embedded, paceline_command, wait_until
from tests.e2e.support.shell_pods import make_pod, run_pod, shell, show, told, waits_for

UV = find_uv(os.environ)


def wheel(folder: Path, name: str, text: str, version: str = "1.0") -> None:
    """Write a package of one module, so that nothing need be fetched from anywhere."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    contents = {
        f"{name}.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-say = {name}:say\n",
    }
    records = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data.encode()).digest()).rstrip(b'=').decode()},"
        for path, data in contents.items()
    ]
    contents[f"{info}/RECORD"] = "\n".join([*records, f"{info}/RECORD,,"]) + "\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, data in contents.items():
            archive.writestr(path, data)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cache of its own, a small wheel, and requirements that ask for it and for one that is nowhere."""
    if UV is None:
        pytest.skip("no uv: type `make test`, or tools/setup uv")
    root = tmp_path_factory.mktemp("images")
    wheel(root / "wheels", "tinything", "def say():\n    print('tiny and well')\n")
    wheel(root / "moving", "tinything", "def say():\n    print('as it was')\n")
    wants = {
        "tiny": ("tinything==1.0", "wheels"),
        "lost": ("nowherething==9.9", "wheels"),
        "open": ("tinything", "moving"),
    }
    for name, (package, folder) in wants.items():
        (root / f"{name}.txt").write_text(f"--no-index\n--find-links {root / folder}\n{package}\n")
    return root


def variables(place: Path, uv: Path | str = "") -> dict[str, str]:
    return {"PACELINE_CACHE": str(place / "cache"), "PACELINE_UV": str(uv or UV)}


@pytest.fixture(scope="module")
def cluster(place: Path) -> Iterator[Embedded]:
    rows = [f"acme/{name}={place / name}.txt" for name in ("tiny", "lost", "open")]
    with embedded(*(word for row in rows for word in ("--image", row)), env=variables(place)) as running:
        yield running


def container(image: str, script: str = "tinything-say", **fields: object) -> dict[str, object]:
    return {**shell(script), "image": image, **fields}


def test_an_environment_is_built_for_the_first_pod_that_asks_for_it(cluster: Embedded, place: Path) -> None:
    assert run_pod(cluster, "first", container("acme/tiny:1")) == ["tiny and well"]

    assert 'Pulling image "acme/tiny:1": building environment' in told(cluster, "first", "Pulling")
    (folder,) = (place / "cache" / "envs").glob("tiny-1.0-*")
    assert str(folder) in told(cluster, "first", "Pulled")
    image_id = show(cluster, "pod", "first")["status"]["containerStatuses"][0]["imageID"]
    assert image_id == f"paceline://{folder}"


def test_an_environment_that_cannot_be_built_is_said_with_the_last_words_of_uv(cluster: Embedded) -> None:
    make_pod(cluster, "lost", container("acme/lost"))

    said = waits_for(cluster, "lost", "ImagePullBackOff")
    assert "nowherething" in said
    assert "not found" in said
    asked = ("--field-selector", "involvedObject.name=lost,reason=Failed", "-o", "jsonpath={.items[*].message}")
    wait_until("it is told", lambda: "No solution found" in cluster.kubectl("get", "events", *asked).out)


def test_what_must_not_be_pulled_is_not_built(cluster: Embedded, place: Path) -> None:
    make_pod(cluster, "proud", container("acme/lost", imagePullPolicy="Never"))

    assert f"paceline env build {place / 'lost.txt'}" in waits_for(cluster, "proud", "ErrImageNeverPull")


def test_h36_always_has_newer_packages_looked_for_and_if_not_present_does_not(cluster: Embedded, place: Path) -> None:
    def said(name: str, policy: str) -> list[str]:
        return run_pod(cluster, name, container("acme/open:1", imagePullPolicy=policy))

    # Built by another process: the agent has not looked yet.
    assert cluster.paceline("env", "build", str(place / "open.txt")).code == 0
    wheel(place / "moving", "tinything", "def say():\n    print('as it is now')\n", version="2.0")

    assert said("calm", "IfNotPresent") == ["as it was"]
    assert said("eager", "Always") == ["as it is now"]
    assert said("after", "IfNotPresent") == ["as it is now"]
    assert "NotRenewed" not in cluster.kubectl("get", "events").out


def test_h36_without_an_index_always_uses_what_is_there_and_says_so(place: Path) -> None:
    wheel(place / "going", "tinything", "def say():\n    print('still here')\n")
    wanted = place / "gone.txt"
    wanted.write_text(f"--no-index\n--find-links {place / 'going'}\ntinything\n")
    with embedded("--image", f"acme/gone={wanted}", env=variables(place)) as cluster:
        assert cluster.paceline("env", "build", str(wanted)).code == 0
        shutil.rmtree(place / "going")

        assert run_pod(cluster, "offline", container("acme/gone")) == ["still here"]

        assert "the existing environment is used" in told(cluster, "offline", "NotRenewed")


def test_an_environment_in_use_is_not_removed(cluster: Embedded, place: Path) -> None:
    make_pod(cluster, "user", container("acme/tiny", "tinything-say; exec sleep 1000"))
    wait_until("the pod has spoken", lambda: cluster.kubectl("logs", "user").out)

    kept = cluster.paceline("env", "prune", "--all")
    # What other tests have built may go.
    assert (kept.code, "tiny-1.0-" in kept.out) == (0, False)
    listed = cluster.paceline("env", "list").out
    assert "acme/tiny" in listed
    assert "in use" in listed

    assert cluster.kubectl("delete", "pod", "user").code == 0
    gone = cluster.paceline("env", "prune", "--all")
    assert "removed tiny-1.0-" in gone.out
    assert not list((place / "cache" / "envs").glob("tiny-*"))


def test_without_uv_the_pod_says_where_it_was_expected(tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("six\n")
    env = {"PACELINE_CACHE": str(tmp_path / "cache"), "PACELINE_UV": str(tmp_path / "uv")}
    with embedded("--image", f"acme/six={wanted}", env=env) as cluster:
        made = Embedded(home=cluster.home)
        make_pod(made, "bare", container("acme/six"))

        said = waits_for(made, "bare", "ImagePullBackOff")
        assert "uv is not installed" in said
        assert f"PACELINE_UV={tmp_path}/uv is not a program" in said


def start_build(env: dict[str, str], what: Path) -> subprocess.Popen[str]:
    command = [paceline_command(), "env", "build", str(what)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env={**os.environ, **env}, text=True, **pipes)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Path]:
    """A uv that notes what it is asked, and installs nothing before it is let."""
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    wait = f"while ! [ -e {tmp_path}/let ]; do sleep 0.05; done"
    guard = f'[ "$1 $2" = "pip install" ] && {{ echo go >>{tmp_path}/asked; {wait}; }}'
    program.write_text(f'#!/bin/sh\n{guard}\nexec {UV} "$@"\n')
    program.chmod(0o755)
    yield tmp_path
    # Whatever became of the test, nobody waits any longer.
    (tmp_path / "let").touch()


def test_two_builds_of_the_same_at_once_are_one(place: Path, watched: Path) -> None:
    env = variables(watched, watched / "bin" / "uv")
    first = start_build(env, place / "tiny.txt")
    wait_until("the first build installs", (watched / "asked").exists)
    second = start_build(env, place / "tiny.txt")
    assert second.stderr is not None
    wait_until("the second waits", lambda: "waiting for another build" in second.stderr.readline())
    (watched / "let").touch()

    said = [each.communicate(timeout=60)[0] for each in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)
    assert said[0] == said[1]
    assert (watched / "asked").read_text() == "go\n"


def test_a_build_that_is_killed_leaves_nothing_that_is_used(place: Path, watched: Path) -> None:
    env = variables(watched, watched / "bin" / "uv")
    doomed = start_build(env, place / "tiny.txt")
    wait_until("the build installs", (watched / "asked").exists)
    doomed.kill()
    doomed.communicate(timeout=60)
    assert not list((watched / "cache" / "envs").glob("tiny-*"))

    # uv itself lives on for a while, and nobody begins beside it.
    again = start_build(env, place / "tiny.txt")
    assert again.stderr is not None
    wait_until("the next build waits", lambda: "waiting for another build" in again.stderr.readline())
    (watched / "let").touch()
    out, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert subprocess.run([Path(out.strip()) / "bin" / "tinything-say"], capture_output=True, check=True).stdout
    assert not list((watched / "cache" / "envs").glob(".*.new"))


def test_a_package_is_found_by_its_name_where_this_machine_looks_for_packages(place: Path) -> None:
    (place / "six.txt").write_text("six==1.17.0\n")
    built = start_build(variables(place), place / "six.txt")
    out, err = built.communicate(timeout=200)

    assert built.returncode == 0, err
    folder = Path(out.strip())
    assert folder.name.startswith("six-1.17.0-")
    assert "six==1.17.0" in (folder / "requirements.lock").read_text()
    asked = [folder / "bin" / "python", "-c", "import six; print(six.__version__)"]
    assert subprocess.run(asked, capture_output=True, check=True).stdout == b"1.17.0\n"
