"""TensorBoards and Notebooks: waited for, found and opened."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.running import show

# They start with hundreds of modules to read, on whatever machine this is.
SECONDS = 90.0


def environment(name: str) -> str:
    """Give the folder of an environment that `make test` has made."""
    found = os.environ.get(f"PACELINE_{name.upper()}")
    if not found:
        pytest.skip(f"no {name}: type `make test`, or PACELINE_{name.upper()}=$(tools/setup {name}) pytest …")
    return found


def status(cluster: Embedded, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = show(cluster, kind, name).get("status") or {}
    return found


def reaches(cluster: Embedded, kind: str, name: str, phase: str) -> dict[str, Any]:
    """Wait for a phase, and give the status that has it."""

    def look() -> dict[str, Any]:
        found = status(cluster, kind, name)
        return found if found.get("phase") == phase else {}

    try:
        return wait_until(f"{kind}/{name} is {phase}", look, SECONDS)
    except AssertionError as error:
        raise AssertionError(json.dumps(status(cluster, kind, name))) from error


def condition(found: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(each for each in found["conditions"] if each["type"] == kind)


def folder_of(cluster: Embedded, claim: str) -> Path:
    """Give where the files of a claim lie on this machine."""
    volume = wait_until("the claim is bound", lambda: show(cluster, "pvc", claim)["spec"].get("volumeName"))
    return Path(show(cluster, "pv", str(volume))["spec"]["hostPath"]["path"])
