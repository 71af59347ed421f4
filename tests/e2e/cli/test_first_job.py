"""docs/first-job.md works from the wheel, in an empty virtual environment outside of the repository, line by line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "first-job.md"
BLOCK = re.compile(r"(?ms)^```(sh|text)\n(.*?)^```$")
# What differs from run to run: the folder of the cluster, the random part of names, and numbers.
VARIABLE = (
    (re.compile(r"\S+/paceline\b"), "PACELINE_HOME"),
    (re.compile(r"\bdefault-results-[0-9a-f]+"), "default-results-0"),
    (re.compile(r"\b(pi|line)-[0-9a-f]{5}-"), r"\1-0-"),
    (re.compile(r"\d+(\.\d+)?"), "0"),
    (re.compile(r"\s+"), " "),
)
# Variables of the checkout's own environment and clusters.
FOREIGN = ("PYTHON", "VIRTUAL_ENV", "PACELINE_", "KUBE")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def blocks() -> list[tuple[str, str]]:
    """Every block of commands with the output that the page shows for it, which may be empty."""
    pairs: list[tuple[str, str]] = []
    for language, text in BLOCK.findall(PAGE.read_text()):
        if language == "sh":
            pairs.append((text, ""))
        else:
            pairs[-1] = (pairs[-1][0], text)
    return pairs


def plain(line: str) -> str:
    for pattern, replacement in VARIABLE:
        line = pattern.sub(replacement, line)
    return line.strip()


def missing(shown: str, printed: str) -> list[str]:
    """The lines that the page shows and the commands did not print. The page may leave lines out."""
    lines = {plain(line) for line in printed.splitlines()}
    return [line for line in shown.splitlines() if line.strip() not in {"", "…"} and plain(line) not in lines]


@pytest.fixture
def newcomer(tmp_path: Path) -> dict[str, str]:
    """The variables of a newcomer: the wheel's own command on the PATH, and nothing of the repository."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    # The interpreter that built environments belong to, so that PyTorch is not downloaded again.
    base = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([base, "-m", "venv", tmp_path / "venv"], check=True)
    pip = [tmp_path / "venv" / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(pip, check=True, cwd=tmp_path)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    cache = {name: value for name, value in os.environ.items() if name == "PACELINE_CACHE"}
    path = [folder for folder in os.environ["PATH"].split(":") if not folder.startswith(str(ROOT))]
    own = {"PATH": ":".join([str(tmp_path / "venv" / "bin"), *path]), "PACELINE_HOME": str(tmp_path / "paceline")}
    return kept | cache | own


def test_every_command_of_the_first_job_page_works_from_the_wheel(newcomer: dict[str, str], tmp_path: Path) -> None:
    def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-c", f"set -eu\n{script}"]
        return subprocess.run(command, cwd=folder, env=newcomer, text=True, capture_output=True, check=False)

    assert len(blocks()) > 5
    folder = tmp_path
    try:
        for commands, shown in blocks():
            ran = shell(f"{commands}\npwd >{tmp_path}/folder", folder)
            printed = ran.stdout + ran.stderr

            assert ran.returncode == 0, f"{commands}\n{printed}"
            assert missing(shown, printed) == [], f"{commands}\n{printed}"
            folder = Path((tmp_path / "folder").read_text().strip())
        status = shell("paceline cluster status || true", tmp_path)
        assert "not running" in status.stdout + status.stderr
    finally:
        shell("paceline down --stop-jobs", tmp_path)
