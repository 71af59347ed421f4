"""Every example is in the index, says what it teaches and how long it takes, is valid, and is run by a test.

In     examples/, its README, and the tests.
Out    examples that nobody finds, understands or runs.
Never  runs them: tests/e2e does.
"""

import re
from pathlib import Path

import pytest
import yaml

from paceline.cli.main import main

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
INDEX = (EXAMPLES / "README.md").read_text()
FOLDERS = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
FILES = sorted(EXAMPLES.glob("*/*.yaml"))
SCRIPTS = sorted(EXAMPLES.glob("*/*.py"))
TESTS = {path: path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)}


def name(path):
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_folder_is_in_the_index_with_its_time_and_command(folder):
    files = [path for path in FILES if path.parent == folder and path.name != "claim.yaml"]
    rows = [line for line in INDEX.splitlines() if line.startswith("| [")]

    for path in files:
        (row,) = (row for row in rows if f"]({name(path)})" in row)
        _, _, teaches, takes, command, _ = (cell.strip() for cell in row.split("|"))
        assert teaches
        assert takes
        assert f"examples/{name(path)}`" in command


def test_the_index_names_nothing_else():
    linked = set(re.findall(r"\]\((\d\d-[^)]+\.yaml)\)", INDEX))

    assert linked == {name(path) for path in FILES if path.name != "claim.yaml"}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_begins_with_what_it_teaches_and_how_long_it_takes(path):
    header = re.match(r"(#.*\n)+", path.read_text())

    assert header, "no comment at the top"
    assert re.search(r"^# Teaches: \S", header[0], re.MULTILINE)
    assert re.search(r"^# Takes: \S", header[0], re.MULTILINE)


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_a_script_begins_with_what_it_does(path):
    assert path.read_text().startswith('"""')


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_is_valid(path, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    kinds = [document["kind"] for document in yaml.safe_load_all(path.read_text())]

    assert main(["check", str(path)]) == 0
    printed = capsys.readouterr()
    for kind in kinds:
        # Claims are objects of Kubernetes, which only a cluster can validate.
        said = printed.err if kind == "PersistentVolumeClaim" else printed.out
        assert kind in said


@pytest.mark.parametrize("path", [path for path in FILES if path.name != "claim.yaml"], ids=name)
def test_a_file_is_named_by_a_test_that_runs_its_folder(path):
    """A folder may be named in a module of tests/e2e/support, and its files in the tests that use it.

    Claims are applied by tests/e2e/frameworks/test_example_kinds.py, all of them.
    """
    users = {module for module, text in TESTS.items() if f'"{path.parent.name}"' in text and "e2e" in module.parts}
    importers = {
        module
        for module, text in TESTS.items()
        for user in users
        if re.search(rf"^from tests\.e2e\.support\.{user.stem} import", text, re.MULTILINE)
    }

    assert any(f'"{path.name}"' in TESTS[module] for module in users | importers)
