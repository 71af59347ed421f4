"""docs/architecture.md is a map: every file, folder, function and class that it names exists.

In     docs/architecture.md, paragraph by paragraph.
Out    the names that lead nowhere.
Never  judges the words between them.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "paceline"
FLOW = (ROOT / "docs" / "architecture.md").read_text()

# The drawing is for the eye; only prose is a promise.
PROSE = re.sub(r"```.*?```", "", FLOW, flags=re.DOTALL)
PARAGRAPHS = [part for part in re.split(r"\n\s*\n", PROSE) if "`" in part]


def quoted(text):
    return re.findall(r"`([^`\n]+)`", text)


def paths(text):
    """Quoted files and folders; a bare `plan/` is a package."""
    found = [name for name in quoted(text) if "/" in name]
    return [ROOT / name if name.startswith("src/") else SOURCE / name for name in found]


def functions(text):
    return [name.removesuffix("()") for name in quoted(text) if name.endswith("()")]


@cache
def defined_in(path):
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)}


def test_the_road_has_eight_stops_in_order():
    assert re.findall(r"^## (\d)\. ", FLOW, re.MULTILINE) == list("12345678")


def test_every_file_and_folder_exists():
    named = [path for paragraph in PARAGRAPHS for path in paths(paragraph)]
    assert len(named) >= 8

    wrong = [str(path.relative_to(ROOT)) for path in named if not path.exists()]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("stop", range(1, 9))
def test_every_stop_names_a_file(stop):
    section = re.split(r"^## ", FLOW, flags=re.MULTILINE)[stop]

    assert [path for path in paths(section) if path.suffix == ".py"]


def test_every_function_is_in_a_file_of_its_paragraph():
    wrong = [
        f"{name}() is in none of {[path.name for path in paths(paragraph)]}"
        for paragraph in PARAGRAPHS
        for name in functions(paragraph)
        if not any(name in defined_in(path) for path in paths(paragraph) if path.is_file())
    ]

    assert not wrong, "\n".join(wrong)


def test_every_class_exists():
    classes = {name for paragraph in PARAGRAPHS for name in quoted(paragraph) if re.fullmatch(r"[A-Z][a-z]\w+", name)}
    known = set().union(*(defined_in(path) for path in SOURCE.rglob("*.py")))

    assert classes - known == set()
