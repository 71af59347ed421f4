"""What is remembered of a replica is typed and kept once; tables for readers are rendered from it, never read back."""

from pathlib import Path

import pytest

from paceline.errors import BadRequest
from paceline.model.gang import ReplicaId
from paceline.model.job_status import JobStatus
from paceline.model.replica_record import ContainerState, ReplicaPhase, ReplicaRecord

PLAN = Path(__file__).parents[3] / "src" / "paceline" / "plan" / "job"


def test_no_decision_reads_the_tables():
    assert [path.name for path in PLAN.rglob("*.py") if ".tasks" in path.read_text()] == []


def test_the_next_attempt_starts_from_nothing_but_what_counts():
    done = (ContainerState(name="main", state="Terminated", exit_code=1),)
    failed = ReplicaRecord(
        place=ReplicaId("worker", 0),
        attempt=1,
        restarts=2,
        uid="u",
        phase=ReplicaPhase.FAILED,
        containers=done,
        stages=done,
        reason="Evicted",
        message="full",
        oom_limit="1Gi",
    )

    assert failed.at(2) == ReplicaRecord(place=ReplicaId("worker", 0), attempt=2, restarts=2, oom_limit="1Gi")


UNREADABLE = {
    "no name": {"phase": "Running"},
    "a name without an index": {"replica": "worker", "phase": "Running"},
    "a phase that nobody knows": {"replica": "worker-0", "phase": "Dreaming"},
    "an attempt that is no number": {"replica": "worker-0", "phase": "Running", "attempt": "many"},
    "a container without a state": {"replica": "worker-0", "phase": "Failed", "containers": [{"name": "main"}]},
}


@pytest.mark.parametrize("record", UNREADABLE.values(), ids=UNREADABLE)
def test_a_record_that_is_malformed_is_refused(record):
    with pytest.raises(BadRequest):
        JobStatus.from_wire({"replicaRecords": [record]})
