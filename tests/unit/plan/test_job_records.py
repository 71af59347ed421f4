"""What is written down of a job, and which records are removed."""

from datetime import UTC, datetime, timedelta

from paceline.model.retention import RecordPolicy
from paceline.plan.job_records import (
    KnownRecord,
    last_events,
    leader_log,
    lost_outcome,
    outcome_of,
    record_manifest,
    slim_event,
    to_remove,
)

NOW = datetime(2030, 1, 31, tzinfo=UTC)


def job(**status):
    metadata = {
        "name": "demo",
        "namespace": "team",
        "uid": "0123456789abcdef",
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "labels": {"paceline.dev/app": "mnist", "own": "x"},
        "annotations": {"paceline.dev/asked-by": "ada"},
    }
    spec = {"hyperparameters": {"values": {"lr": 0.01}}}
    return {"apiVersion": "b/v1", "kind": "MPIJob", "metadata": metadata, "spec": spec, "status": status}


def test_a_record_has_no_owner_and_is_named_after_job_and_uid():
    record = record_manifest("paceline.dev/v1beta1", job())

    assert record["metadata"]["name"] == "demo-01234567"
    assert "ownerReferences" not in record["metadata"]
    # With the label of an application, it would be taken for the record of a revision.
    assert record["metadata"]["labels"] == {"paceline.dev/job-uid": "0123456789abcdef"}
    assert record["metadata"]["annotations"] == {"paceline.dev/asked-by": "ada"}
    assert (record["spec"]["app"], record["spec"]["hyperparameters"]) == ("mnist", {"lr": "0.01"})
    assert record["spec"]["job"]["labels"]["own"] == "x"


def test_an_ended_job_has_its_own_outcome():
    condition = {"type": "Failed", "status": "True", "message": "worker-0 failed"}
    failed = job(phase="Failed", failure={"pod": "p"}, conditions=[condition], source={"commit": "abc"})

    outcome = outcome_of(failed, (), {"loss": "0.5"}, gone_at=None)

    assert outcome == {
        "phase": "Failed",
        "failure": {"pod": "p"},
        "commit": "abc",
        "reason": "worker-0 failed",
        "metrics": {"loss": "0.5"},
    }


def test_a_job_that_went_before_its_end_was_deleted():
    outcome = outcome_of(job(phase="Running"), (), {}, gone_at=NOW)

    assert outcome == {"phase": "Deleted", "lastPhase": "Running", "deletionTime": "2030-01-31T00:00:00Z"}
    assert lost_outcome((), NOW) == {"phase": "Deleted", "deletionTime": "2030-01-31T00:00:00Z"}


def test_of_many_events_the_last_fifty_are_kept_and_long_messages_are_cut():
    about = {"kind": "Pod", "name": "p", "uid": "u"}
    events = [
        slim_event({"involvedObject": about, "lastTimestamp": f"2030-01-01T00:{n:02}:00Z", "message": "x" * 999})
        for n in range(60)
    ]

    retained = last_events(reversed(events))

    assert (len(retained), retained[0]["time"], retained[-1]["time"]) == (
        50,
        "2030-01-01T00:10:00Z",
        "2030-01-01T00:59:00Z",
    )
    assert len(retained[0]["message"]) == 300
    assert "uid" not in retained[0]


def test_the_leaders_log_is_that_of_its_first_container():
    rows = [{"name": "p0", "uid": "u", "containers": [{"name": "main"}, {"name": "side"}]}]

    tasks = [{"type": "ps", "replicas": []}, {"type": "worker", "replicas": rows}]

    assert leader_log(job(tasks=tasks)) == ("p0", "main")
    assert leader_log(job()) is None


def known(days, *, is_complete=True):
    created = NOW - timedelta(days=days)
    return KnownRecord(namespace="n", name=str(days), job_uid=str(days), created=created, is_complete=is_complete)


def test_the_oldest_records_go_first_and_those_of_jobs_that_run_stay():
    records = [known(1), known(100), known(50), known(200, is_complete=False)]

    assert [record.name for record in to_remove(records, RecordPolicy(), NOW)] == ["100"]
    assert [record.name for record in to_remove(records, RecordPolicy(jobs=1), NOW)] == ["100", "50"]
    assert to_remove(records, RecordPolicy(age=timedelta.max), NOW) == []
