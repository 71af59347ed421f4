"""The examples do what they say, with the real PyTorch."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded
from tests.e2e.support.frameworks import folder_of

EXAMPLES = Path(__file__).parents[3] / "examples"
# A model that guesses reads one digit in ten right; this one ends at 0.97 each time, by its fixed seed.
GOOD_ACCURACY = 0.95


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    environment = os.environ.get("PACELINE_PYTORCH")
    if not environment:
        pytest.skip("no PyTorch: type `make test`, or PACELINE_PYTORCH=$(tools/setup torch) pytest …")
    with embedded("--image", f"pytorch/pytorch*={environment}") as running:
        yield running


@pytest.fixture(scope="module")
def claim(cluster: Embedded) -> Path:
    """The folder behind the claim `digits`, with the training script in it."""
    created = cluster.paceline("submit", str(EXAMPLES / "01-digits" / "claim.yaml"))
    assert created.code == 0, created.err
    folder = folder_of(cluster, "digits")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(EXAMPLES / "01-digits" / "train.py", folder)
    return folder


@pytest.mark.parametrize(
    ("file", "output"),
    [("job.yaml", "digits"), pytest.param("torchrun.yaml", "digits-torchrun", marks=pytest.mark.slow)],
    ids=["two workers", "torchrun with two processes"],
)
def test_digits_are_learned_together(cluster: Embedded, claim: Path, file: str, output: str) -> None:
    ran = cluster.paceline("run", str(EXAMPLES / "01-digits" / file))

    assert ran.code == 0, ran.out + ran.err
    assert re.findall(r"^epoch (\d+)/12 ", ran.out, re.MULTILINE) == [str(epoch) for epoch in range(1, 13)]
    (accuracy,) = re.findall(rf"^accuracy ([\d.]+)  model /mnt/{output}/model.pt$", ran.out, re.MULTILINE)
    assert float(accuracy) > GOOD_ACCURACY
    made = {path.name.split(".")[0] for path in (claim / output).rglob("*") if path.is_file()}
    assert made == {"model", "checkpoint", "events"}


def test_hello_is_said_by_both(cluster: Embedded) -> None:
    ran = cluster.paceline("run", str(EXAMPLES / "02-hello" / "job.yaml"))

    assert ran.code == 0, ran.out + ran.err
    said = cluster.paceline("logs", "hello", "--all").out
    assert sorted(re.findall(r"hello from worker (\d) of 2", said)) == ["0", "1"]
