"""`make image` says in one line what is missing, before it builds anything."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("push", "message"),
    [
        ("127.0.0.1:1/paceline:1", "image: the registry 127.0.0.1:1 does not answer: [Errno 111] Connection refused\n"),
        ("paceline:1", "image: PUSH=paceline:1 names no registry; write HOST/NAME:TAG\n"),
    ],
)
def test_a_registry_that_is_not_there_is_named_in_one_line(push, message):
    env = {**os.environ, "PUSH": push, "TLS": "no", "no_proxy": "127.0.0.1"}
    ran = subprocess.run((ROOT / "tools" / "image",), env=env, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", message)
