"""A user without any privilege gets the same pods, and is told what is not enforced."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
# Where privileges could matter most; `make unprivileged` asks for the whole list.
TOPICS = "phases or exits or init or stopping or env or volumes or limits"


@pytest.mark.timeout(300)
def test_pods_do_the_same_for_a_user_without_privileges() -> None:
    env = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")}
    command = ("tools/unprivileged", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", TOPICS)
    ran = subprocess.run(
        (*command, "tests/conformance"), cwd=ROOT, env=env, capture_output=True, text=True, timeout=290, check=False
    )

    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-1000:]
    assert " passed" in ran.stdout
