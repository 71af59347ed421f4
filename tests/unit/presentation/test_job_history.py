"""What a list of past jobs says about each."""

import pytest

from paceline.presentation.job_history import history_row

RULE = "failure rule {worker: [1]} is met: pod mnist-1f409-worker-1 failed with exit code 1"
FAILURE = {
    "replica": "worker-1",
    "pod": "mnist-1f409-worker-1",
    "exitCode": 1,
    "reason": "Error",
    "lastLines": ["loading", "ModuleNotFoundError: No module named 'torchvision'"],
}


def record(**status):
    spec = {"uid": "u", "created": "2030-01-01T00:00:00Z", "job": {"kind": "PyTorchTrainingJob", "name": "mnist"}}
    return {"metadata": {"name": "mnist-1", "namespace": "default"}, "spec": spec, "status": status}


def test_a_failed_job_says_the_replica_and_its_error():
    row = history_row(record(phase="Failed", reason=RULE, failure=FAILURE))

    assert row["reason"] == "worker-1: exit code 1: ModuleNotFoundError: No module named 'torchvision'"


@pytest.mark.parametrize("failure", [None, {"exitCode": 1}])
def test_without_a_replica_the_rule_stands(failure):
    assert history_row(record(phase="Failed", reason=RULE, failure=failure))["reason"] == RULE


def test_a_job_that_succeeded_after_a_failure_says_how_it_ended():
    assert history_row(record(phase="Succeeded", reason="worker-0 succeeded", failure=FAILURE))["reason"] == (
        "worker-0 succeeded"
    )


def test_a_job_without_an_outcome_is_not_said_to_run() -> None:
    row = history_row(record())

    assert (row["phase"], row["isOver"]) == ("NotFinished", False)
