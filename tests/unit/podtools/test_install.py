"""What a requirements file asks for is installed, by a real uv, and no older code is found in a cache."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from paceline.environments.cache import find_uv
from paceline.kinds.pod_injection import FIND_REQUIREMENTS
from paceline.podtools import requirements_cache as found
from paceline.podtools.install_tools import INSTALLERS

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def pod(tmp_path):
    """Lay out the folders that the installer finds in a pod; its own text says where they are."""
    uv = find_uv(os.environ)
    assert uv is not None, "there is no uv; type: tools/setup uv"
    for name in ("tools", "cache", "code"):
        (tmp_path / name).mkdir()
    shutil.copy(uv, tmp_path / "tools" / "uv")
    for file in INSTALLERS:
        (tmp_path / "tools" / file.name).write_text(moved(file.read_text(), tmp_path))
    return tmp_path


def moved(text, place):
    """Let a text speak of the folders of a test."""
    places = {"/paceline-cache": "cache", "/paceline": "tools", "/dev/termination-log": "said"}
    return re.sub("|".join(places), lambda found: str(place / places[found[0]]), text)


def wheel(file, text):
    """Write a package with one module."""
    name, version = file.name.split("-")[:2]
    about = f"{name}-{version}.dist-info"
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as held:
        held.writestr(f"{name}.py", text)
        held.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        held.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        held.writestr(f"{about}/RECORD", "")


def run(pod, requirements, **variables):
    """Install a file as a pod does."""
    file = pod / "code" / "requirements.txt"
    file.write_text(f"--no-index\n{requirements}\n")
    words = ["sh", "-c", moved(FIND_REQUIREMENTS, pod), "sh", "must", str(file)]
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **variables}
    return subprocess.run(words, cwd=pod / "code", env=env, capture_output=True, text=True, check=False)


def installed(pod, requirements):
    """Install a file, and give what is said of it."""
    done = run(pod, requirements)
    assert done.returncode == 0, done.stdout + done.stderr
    return (pod / "said").read_text()


def module(pod, name="inner"):
    return (pod / "tools" / "site" / f"{name}.py").read_text()


WRITTEN = ("./inner-1.0-py3-none-any.whl", "inner @ file://{code}/inner-1.0-py3-none-any.whl")


@pytest.mark.parametrize("written", WRITTEN, ids=["a path", "an address"])
def test_a_package_that_is_named_by_where_it_is_is_installed(pod, written):
    shutil.rmtree(pod / "cache")
    wheel(pod / "code" / "inner-1.0-py3-none-any.whl", "x = 1\n")

    assert installed(pod, written.format(code=pod / "code")).startswith("installed inner @ file:")
    assert module(pod) == "x = 1\n"


def test_a_package_that_is_part_of_the_code_is_never_an_older_one_from_the_cache(pod):
    for text in ("x = 1\n", "x = 2\n"):
        wheel(pod / "code" / "inner-1.0-py3-none-any.whl", text)
        installed(pod, "./inner-1.0-py3-none-any.whl")

        assert module(pod) == text


def test_a_step_that_is_begun_again_finds_what_it_did_before(pod):
    wheel(pod / "code" / "wheels" / "outer-1.0-py3-none-any.whl", "x = 1\n")

    assert installed(pod, "--find-links wheels\nouter") == "installed outer==1.0"
    assert installed(pod, "--find-links wheels\nouter") == "found outer==1.0 in the cache"
    assert module(pod, "outer") == "x = 1\n"


def hide_uv(pod):
    """Let uv fail, so that whoever asks it is seen."""
    uv = pod / "tools" / "uv"
    uv.unlink()
    uv.write_text("#!/bin/sh\nexit 7\n")
    uv.chmod(0o755)


EXACT = "--find-links wheels\nouter==1.0  # as tested\n"


def test_a_file_that_names_exact_versions_is_found_in_the_cache_without_asking_uv(pod):
    wheel(pod / "code" / "wheels" / "outer-1.0-py3-none-any.whl", "x = 1\n")
    assert installed(pod, EXACT) == "installed outer==1.0"
    hide_uv(pod)

    assert installed(pod, EXACT) == "found outer==1.0 in the cache"
    assert module(pod, "outer") == "x = 1\n"


def lose_packages(pod):
    shutil.rmtree(next((pod / "cache").glob("packages-*")))


def halve_note(pod):
    next((pod / "cache").glob("known-*")).write_text("packages")


def change_image(pod):
    (pod / "more" / "other-1.0.dist-info").mkdir(parents=True)
    return {"PYTHONPATH": str(pod / "more")}


CHANGES = {
    "the packages are gone": (lose_packages, EXACT),
    "half a note": (halve_note, EXACT),
    "the image has another package": (change_image, EXACT),
    "packages come from elsewhere": (lambda _: {"PIP_INDEX_URL": "https://example.org/simple"}, EXACT),
    "another version": (lambda _: {}, EXACT.replace("1.0", "2.0")),
}


@pytest.mark.parametrize(("change", "text"), CHANGES.values(), ids=CHANGES)
def test_what_is_not_known_for_certain_is_asked_of_uv(pod, change, text):
    wheel(pod / "code" / "wheels" / "outer-1.0-py3-none-any.whl", "x = 1\n")
    installed(pod, EXACT)
    variables = change(pod) or {}
    hide_uv(pod)

    assert run(pod, text, **variables).returncode == 7


INEXACT = (
    "outer",
    "outer>=1.0",
    "outer==1.*",
    "-r more.txt",
    "outer @ https://example.org/outer.whl",
    "./outer",
    "-e .",
)


@pytest.mark.parametrize("line", INEXACT)
def test_a_line_that_may_mean_something_else_tomorrow_is_not_exact(line):
    assert not found.is_exact(f"outer==1.0\n{line}\n")


def test_a_lock_file_is_exact():
    assert found.is_exact(
        "--index-url https://example.org/simple\nouter[all] == 1.0 ; python_version >= '3.9' \\\n"
        "    --hash=sha256:00 \\\n    --hash=sha256:11\n    # via inner\ninner==2.0.post1+cpu\n\n"
    )


def test_what_the_image_has_already_is_known_the_next_time_too(pod):
    everything = f"pytest=={pytest.__version__}"
    assert installed(pod, everything) == "the image has all that is required"
    hide_uv(pod)

    assert installed(pod, everything) == "the image has all that is required"
