"""Real PyTorch trainings lose a process, or change their size, and go on from their checkpoint."""

import re
from collections.abc import Iterator

import pytest

from paceline.testing.embedded import Embedded, embedded, wait_until
from tests.e2e.support.frameworks import environment
from tests.e2e.support.torch_gates import PATIENCE_SECONDS, STEPS, Training, begin, kill, losses

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded("--image", f"pytorch/pytorch*={environment('pytorch')}") as running:
        yield running


def resized(training: Training, size: int) -> None:
    wanted = f'{{"spec": {{"elastic": {{"expectedReplicas": {size}}}}}}}'
    assert training.cluster.kubectl("patch", "pj", training.name, "--type=merge", "-p", wanted).code == 0


def test_a_gang_that_lost_a_rank_between_two_checkpoints_goes_on_from_the_last(cluster: Embedded) -> None:
    with begin(cluster, "job.yaml", closed=(8,)) as training:
        first = training.reaches(8, processes=2)
        kill(training.pods()["worker-1"])
        second = training.reaches(8, processes=2, not_from=first)
        shown = cluster.paceline("describe", training.name).out
        training.open(8)
        over = training.ends()

    before, after = losses(training.log(first)), losses(training.log(second))
    assert (first[-9:], second[-12:]) == ("-worker-0", "-worker-0-r1")
    assert "2 processes go on from step 5\n" in training.log(second)
    assert (list(before), list(after)) == ([*range(1, 8)], [*range(6, STEPS + 1)])
    # The same steps, the same losses: the curve goes on as if nothing had been.
    assert (after[6], after[7]) == pytest.approx((before[6], before[7]), rel=1e-3)
    assert after[STEPS] < after[6] < before[1] / 2
    assert (over["attempt"], over["backoffCount"]) == (1, 1)
    assert "\nRestarts:  1 of at most 3\n" in shown
    assert f"\nLast failure:\n  {first[:-1]}1 ended with exit code 137 (SIGKILL)\n" in shown


def test_an_elastic_job_grows_loses_a_worker_and_shrinks_and_trains_on(cluster: Embedded) -> None:
    """X-12"""
    with begin(cluster, "elastic.yaml", closed=(6, 8, 11, 13)) as training:
        firsts = [training.reaches(6, processes=2)]
        assert training.status["elastic"] == {"currentReplicas": 2, "expectedReplicas": 2}

        resized(training, 3)
        firsts.append(training.reaches(6, processes=3))
        assert training.status["elastic"] == {"currentReplicas": 3, "expectedReplicas": 3}
        assert "\nSize:      3 of 3 expected replicas\n" in cluster.paceline("describe", training.name).out
        assert training.status["backoffCount"] == 0
        training.open(6)

        training.reaches(8, processes=3)
        kill(training.pods()["worker-1"])
        wait_until("it is tried again", lambda: training.status["backoffCount"] == 1, PATIENCE_SECONDS)
        training.open(8)
        training.reaches(11, processes=3)

        resized(training, 2)
        wait_until("one has left", lambda: "worker-2" not in training.pods(), PATIENCE_SECONDS)
        training.open(11)
        firsts.append(training.reaches(13, processes=2))
        assert training.status["elastic"] == {"currentReplicas": 2, "expectedReplicas": 2}
        training.open(13)
        over = training.ends()

    assert (over["attempt"], over["backoffCount"]) == (0, 1)
    said = "".join(training.log(pod) for pod in dict.fromkeys(firsts))
    rounds = re.findall(r"(\d) processes go on from step (\d+)", said)
    assert {("2", "0"), ("3", "5"), ("2", "10")} <= set(rounds), said
