"""What a requirements file asks for is installed, by a real uv, and no older code is found in a cache."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from paceline.assembly.uv import cache_folder, find_uv
from paceline.porter import install

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def pod(tmp_path):
    """Lay out the folders that the installer finds in a pod; its own text says where they are."""
    uv = find_uv(cache_folder(os.environ), os.environ.get("PATH"))
    assert uv is not None, "there is no uv; type: tools/setup uv"
    for name in ("tools", "cache", "code"):
        (tmp_path / name).mkdir()
    shutil.copy(uv, tmp_path / "tools" / "uv")
    text = Path(install.__file__).read_text()
    for there, here in (("/paceline-cache", "cache"), ("/paceline", "tools"), ("/dev/termination-log", "said")):
        text = text.replace(f'"{there}"', f'"{tmp_path / here}"')
    (tmp_path / "install.py").write_text(text)
    return tmp_path


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


def installed(pod, requirements):
    """Install a file as a pod does, and give what is said of it."""
    file = pod / "code" / "requirements.txt"
    file.write_text(f"--no-index\n{requirements}\n")
    words = [sys.executable, str(pod / "install.py"), str(file)]
    done = subprocess.run(words, cwd=pod / "code", capture_output=True, text=True, check=False)
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
