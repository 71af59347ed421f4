"""What the wheel contains, by the rules of pyproject.toml, and that the command works from those files alone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[1]
PRODUCT = ROOT / "src" / "paceline"
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
