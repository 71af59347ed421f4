"""Jobs, TensorBoards and Notebooks with real frameworks: waited for, found and opened."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.api_caller import Door
from tests.e2e.support.shell_pods import show

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


def reaches(cluster: Embedded, kind: str, name: str, phase: str, *, seconds: float = SECONDS) -> dict[str, Any]:
    """Wait for a phase, and give the status that has it."""

    def look() -> dict[str, Any]:
        found = status(cluster, kind, name)
        return found if found.get("phase") == phase else {}

    try:
        return wait_until(f"{kind}/{name} is {phase}", look, seconds)
    except AssertionError as error:
        raise AssertionError(json.dumps(status(cluster, kind, name))) from error


def condition(found: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(each for each in found["conditions"] if each["type"] == kind)


def folder_of(cluster: Embedded, claim: str) -> Path:
    """Give where the files of a claim lie on this machine."""
    volume = wait_until("the claim is bound", lambda: show(cluster, "pvc", claim)["spec"].get("volumeName"))
    return Path(show(cluster, "pv", str(volume))["spec"]["hostPath"]["path"])


def filled(cluster: Embedded, claim: str, *files: Path) -> Path:
    """Put files into a claim, where whoever runs in a pod may write too; give where they lie on this machine."""
    folder = folder_of(cluster, claim)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    for path in files:
        shutil.copy(path, folder)
    return folder


def curve(cluster: Embedded, url: str, curve: str, steps: int, *, seconds: float = SECONDS) -> list[int]:
    """Wait until a TensorBoard shows so many steps of a curve, named RUN:TAG, and give all that it shows."""
    door = Door(cluster)
    run, _, tag = curve.partition(":")

    def look() -> list[int]:
        with door.ask("GET", f"{url}data/plugin/scalars/scalars?tag={tag}&run={run}") as answer:
            shown = [point[1] for point in json.loads(answer.read())] if answer.status == 200 else []
        return shown if len(shown) >= steps else []

    return wait_until(f"{steps} steps of {curve} are shown at {url}", look, seconds)
