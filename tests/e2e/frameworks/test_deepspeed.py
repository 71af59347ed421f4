"""DeepSpeed and Colossal-AI train for real, over workers that have no sshd: all processes end with the same line."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded
from tests.e2e.support.frameworks import environment, filled

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "examples" / "07-launched"
LINE = r"rank (\d) of 2: y = ([\d.-]+) x \+ ([\d.-]+)"
SECONDS = 280.0
# An environment of some gigabytes may have to be built first.
BUILD_SECONDS = 1500.0


def ends_with_one_line(cluster: Embedded, file: str, *, seconds: float) -> None:
    """Run an example, and see that two processes have agreed upon a line near to the true one."""
    made = cluster.kubectl("apply", "-f", str(EXAMPLES / "claim.yaml"))
    assert made.code == 0, made.err
    filled(cluster, "launched", *EXAMPLES.glob("*.py"))
    ran = cluster.paceline("run", str(EXAMPLES / file), seconds=seconds)

    assert ran.code == 0, ran.out + ran.err
    found = {rank: (float(slope), float(start)) for rank, slope, start in re.findall(LINE, ran.out)}
    assert set(found) == {"0", "1"}
    assert found["0"] == found["1"]
    assert found["0"] == pytest.approx((3, -1), abs=0.2)


@pytest.fixture(scope="module")
def with_deepspeed() -> Iterator[Embedded]:
    with embedded("--image", f"deepspeed/deepspeed*={environment('deepspeed')}") as running:
        yield running


def test_deepspeed_trains_in_two_workers(with_deepspeed: Embedded) -> None:
    ends_with_one_line(with_deepspeed, "deepspeed.yaml", seconds=SECONDS)


@pytest.mark.soak
@pytest.mark.timeout(BUILD_SECONDS + 60)
def test_colossalai_trains_in_two_workers_in_an_environment_that_is_built_for_it(cluster: Embedded) -> None:
    ends_with_one_line(cluster, "colossalai.yaml", seconds=BUILD_SECONDS)
