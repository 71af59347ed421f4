"""The example of XGBoost trains for real: three processes, each with a third of the flowers, grow the same trees."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded
from tests.e2e.support.frameworks import environment, filled, status

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "examples" / "06-xgboost"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded("--image", f"t9kpublic/xgboost*={environment('xgboost')}") as running:
        yield running


def test_irises_are_told_apart_together(cluster: Embedded) -> None:
    made = cluster.kubectl("create", "-f", str(EXAMPLES / "claim.yaml"))
    assert made.code == 0, made.err
    claim = filled(cluster, "iris", EXAMPLES / "iris.py")
    ran = cluster.paceline("run", str(EXAMPLES / "job.yaml"))

    assert ran.code == 0, ran.out + ran.err
    losses = [float(loss) for loss in re.findall(r"^round \d+/10  loss ([\d.]+)$", ran.out, re.MULTILINE)]
    assert len(losses) == 10
    assert losses == sorted(losses, reverse=True)
    said = cluster.paceline("logs", "iris", "--all").out
    found = re.findall(r"rank (\d) of 3: accuracy ([\d.]+) with model (\w+)", said)
    assert {rank for rank, _, _ in found} == {"0", "1", "2"}
    assert len({model for _, _, model in found}) == 1
    # One flower in three is right by chance.
    assert float(found[0][1]) > 0.9
    assert json.loads((claim / "iris.json").read_text())["learner"]["learner_model_param"]["num_class"] == "3"
    assert status(cluster, "xj", "iris")["tasks"][0]["type"] == "master"
