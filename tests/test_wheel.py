"""What wheel and sdist contain, by the rules of pyproject.toml, and that the command works from those files alone."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from paceline import __version__

ROOT = Path(__file__).parents[1]
PRODUCT = ROOT / "src" / "paceline"
# Where the web console lies in the wheel.
BUNDLE = "paceline/console/static/"
IMPORT_ALL = """
import importlib, pkgutil, sys, paceline
modules = [module.name for module in pkgutil.walk_packages(paceline.__path__, "paceline.")]
for name in modules:
    if not name.endswith("__main__"):
        importlib.import_module(name)
assert len(modules) > 300, len(modules)
print(paceline.__file__, *(name for name in sys.modules if name.startswith("paceline.testing")))
"""


@pytest.fixture(scope="module")
def files():
    """Every file that a wheel would contain, with the file it is made from."""
    return {file.distribution_path: Path(file.path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}


def test_the_wheel_has_every_module_but_those_for_tests(files):
    modules = {f"paceline/{path.relative_to(PRODUCT).as_posix()}" for path in PRODUCT.rglob("*.py")}
    testing = {name for name in modules if name.startswith("paceline/testing/")}

    assert testing
    assert {name for name in files if name.endswith(".py")} == modules - testing
    assert not [name for name in files if name.startswith("paceline/testing")]


def test_the_wheel_has_nothing_of_tests_and_simulators(files):
    """Whatever its name: nothing imports a test library, and no file is neither code nor data of the product."""
    text = {name: path.read_text() for name, path in files.items() if name.endswith(".py")}

    assert not [name for name, code in text.items() if re.search(r"(?m)^\s*(import|from) (pytest|hypothesis)\b", code)]
    assert not [name for name in files if re.search(r"(^|/)(tests?|testing|sim|conftest\.py)(/|$)|/test_", name)]
    others = {name for name in files if not name.startswith(BUNDLE)}
    assert {Path(name).suffix for name in others} == {".py", ".json", ".txt", ".typed", ".yaml"}
    assert all(name.startswith("paceline/console/examples/") for name in files if name.endswith(".yaml"))
    assert "paceline/py.typed" in files


def test_the_wheel_has_the_built_web_console_and_the_licences_of_what_is_in_it(files):
    bundle = {name.removeprefix(BUNDLE): path for name, path in files.items() if name.startswith(BUNDLE)}
    manifest = json.loads(bundle["manifest.json"].read_text())
    packed = {f"{name}.gz" for name, file in manifest["files"].items() if "gzip" in file}

    assert set(bundle) == {"index.html", "manifest.json", "licenses.txt", *manifest["files"], *packed}
    assert "SIL OPEN FONT LICENSE" in bundle["licenses.txt"].read_text()


def test_the_sdist_has_what_a_build_needs_and_no_more(files):
    names = {file.distribution_path for file in SdistBuilder(str(ROOT)).recurse_included_files()}
    product = {path.relative_to(ROOT).as_posix() for path in files.values()}

    assert product < names
    assert names - product <= {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore", "hatch_build.py"}


def test_a_wheel_from_the_sdist_is_the_wheel_to_the_byte_and_describes_itself(tmp_path):
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}

    def build(source, target, into):
        command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(tmp_path / into)]
        subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
        return next((tmp_path / into).iterdir())

    with tarfile.open(build(ROOT, "sdist", "sdist")) as sdist:
        sdist.extractall(tmp_path)
    wheels = [build(ROOT, "wheel", "a"), build(tmp_path / f"paceline-{__version__}", "wheel", "b")]
    info = f"paceline-{__version__}.dist-info"
    with zipfile.ZipFile(wheels[0]) as wheel:
        metadata = message_from_string(wheel.read(f"{info}/METADATA").decode())
        license_text = wheel.read(f"{info}/licenses/LICENSE").decode()

    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    assert (metadata["Name"], metadata["Version"]) == ("paceline", __version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert license_text == (ROOT / "LICENSE").read_text()
    assert any(requirement.startswith("uv>=") for requirement in metadata.get_all("Requires-Dist"))


def test_the_version_of_the_changelog_is_the_version_of_the_product():
    versions = re.findall(r"(?m)^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$", (ROOT / "CHANGELOG.md").read_text())

    assert versions[0] == __version__


def test_the_product_works_from_the_files_of_the_wheel(files, tmp_path):
    for name, path in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / name)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}

    def python(*arguments):
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    imported = python("-c", IMPORT_ALL)
    command = python("-c", "from paceline.cli.main import main; main()", "--help")

    assert (imported.returncode, imported.stdout) == (0, f"{tmp_path}/paceline/__init__.py\n"), imported.stderr
    assert command.returncode == 0, command.stderr
    assert "submit" in command.stdout
