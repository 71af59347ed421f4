"""Reasons of conditions and events come from a closed list, which explains each of them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.model import reasons

ROOT = Path(__file__).parents[3]
SRC = ROOT / "src" / "paceline"
# Packages that write conditions and events; reasons of the API server are those of HTTP answers (errors.py).
WRITERS = ("plan", "controllers")
FILES = sorted(path for package in WRITERS for path in (SRC / package).rglob("*.py"))
# The API server itself records only who has deleted an object.
SERVER_FILES = (SRC / "apiserver" / "handlers" / "delete.py",)
NODE_FILES = sorted((SRC / "node").rglob("*.py"))
# What runs in pods imports nothing, and an answer of exec is no event.
NO_EVENTS = ("remotecommand.py", "shim.py")


def reasons_in(path: Path) -> Iterator[ast.expr]:
    """Every value that is given as a reason: by keyword, in a dict, or to the event recorder."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "reason")
            if isinstance(node.func, ast.Attribute) and node.func.attr == "record" and len(node.args) > 1:
                yield node.args[1]
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "reason")


def literals_in(value: ast.expr) -> Iterator[str]:
    """The texts that a value may be, without the keys and arguments in it."""
    match value:
        case ast.Constant(value=str(text)) if text:
            yield text
        case ast.IfExp():
            yield from literals_in(value.body)
            yield from literals_in(value.orelse)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_controllers_take_reasons_from_the_list(path):
    given = [text for value in reasons_in(path) for text in literals_in(value)]

    # A flushed output counts as a container that Kubernetes would call Completed.
    assert [text for text in given if text != "Completed"] == []


def test_every_reason_of_the_list_is_used():
    text = "\n".join(path.read_text() for path in (*FILES, *SERVER_FILES))
    names = [name for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)]

    assert len(names) > 40
    assert [name for name in names if not re.search(rf"\breasons\.{name}\b", text)] == []


@pytest.mark.parametrize("path", NODE_FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_the_node_gives_reasons_of_its_list(path):
    given = {text for value in reasons_in(path) for text in literals_in(value)} if path.name not in NO_EVENTS else set()

    assert given - set(reasons.NODE) - {"PodInitializing", "ContainerCreating"} == set()


def test_every_reason_has_a_meaning():
    named = {value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)}

    assert named == reasons.ALL
    assert [text for text in (*reasons.MEANINGS.values(), *reasons.NODE.values()) if not text.endswith(".")] == []
