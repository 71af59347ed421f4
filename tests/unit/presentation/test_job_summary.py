"""How a job is, in numbers and in one sentence."""

from datetime import UTC, datetime, timedelta

import pytest

from paceline.model.gang import ReplicaId
from paceline.model.job_status import JobStatus, Phase
from paceline.presentation.apps.app_summary import status_of as app_status_of
from paceline.presentation.job_summary import (
    claims_of,
    duration_of,
    is_running,
    phase_of,
    reason_of,
    replicas_of,
    status_of,
)
from paceline.presentation.replica_pods import ReplicaPod, waiting_of

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def job(phase="Pending", *, replicas=(2,), **status):
    specs = [{"type": f"r{n}", "replicas": count} for n, count in enumerate(replicas)]
    return {"spec": {"replicaSpecs": specs}, "status": {"phase": phase, **status}}


def condition(kind, *, status="True", message="", reason="Because"):
    told = {"type": kind, "status": status, "message": message, "reason": reason}
    return {**told, "lastTransitionTime": "2030-01-01T12:00:00Z"}


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_of_the_status_is_shown_as_it_is(phase):
    assert phase_of(job(phase.value)) is phase


REASONS = {
    "a running job needs no reason": (job("Running"), ""),
    "a succeeded job needs none either": (job("Succeeded", waiting="old news"), ""),
    "a waiting job says what for": (job(waiting="no room for 2 pods: 1 GPU short"), "no room for 2 pods: 1 GPU short"),
    "a failed job says what its condition says": (
        job("Failed", conditions=[condition("Failed", message="worker-1 ended with exit code 1")]),
        "worker-1 ended with exit code 1",
    ),
    "a failed pod is named with its code alone": (
        job(
            "Failed",
            conditions=[condition("Failed", message="failure rule holds: pod a-worker-1 failed with exit code 1")],
            failure={"pod": "a-worker-1", "exitCode": 1, "reason": "Error"},
        ),
        "a-worker-1: exit code 1",
    ),
    "what ended the job goes before an older failure": (
        job(
            "Failed",
            conditions=[condition("Failed", message="it ran longer than 60 s")],
            failure={"pod": "a-worker-1", "exitCode": 1, "reason": "Error"},
        ),
        "it ran longer than 60 s",
    ),
    "a program that could not be started is named": (
        job("Failed", failure={"pod": "a-worker-1", "exitCode": 127, "reason": "StartError", "message": "no torchrun"}),
        "a-worker-1: exit code 127, StartError: no torchrun",
    ),
    "without a message the pod and its code are named": (
        job("Failed", failure={"pod": "a-worker-1", "exitCode": 137, "reason": "OOMKilled"}),
        "a-worker-1: exit code 137 (SIGKILL), OOMKilled",
    ),
    "a limping job says who fails": (
        job("Running", conditions=[condition("ReplicaFailure", message="worker-1 failed, trying again")]),
        "worker-1 failed, trying again",
    ),
    "a mended job says nothing": (job("Running", conditions=[condition("ReplicaFailure", status="False")]), ""),
}


@pytest.mark.parametrize(("seen", "reason"), REASONS.values(), ids=REASONS)
def test_reason(seen, reason):
    assert reason_of(seen) == reason


REPLICAS = {
    "nobody has looked yet": (job(), (0, 2)),
    "all roles count": (job(replicas=(1, 3), aggregate={"running": 3, "pending": 1}), (3, 4)),
    "who has succeeded was ready": (job(aggregate={"running": 1, "succeeded": 1}), (2, 2)),
    "who failed is not": (job(aggregate={"failed": 2}), (0, 2)),
    "a spec without numbers means one each": ({"spec": {"replicaSpecs": [{"type": "a"}]}}, (0, 1)),
    "workers may be written on their own": ({"spec": {"worker": {"replicas": 2}}}, (0, 2)),
    "a launcher that nobody wrote counts": (job(aggregate={"running": 2, "succeeded": 1}), (3, 3)),
    "who was cleaned up counts too": (job(replicas=(1,), aggregate={"succeeded": 1, "deleted": 2}), (1, 3)),
    "a job without replicas still counts its pods": ({"spec": {}, "status": {"aggregate": {"running": 3}}}, (3, 3)),
}


@pytest.mark.parametrize(("seen", "counted"), REPLICAS.values(), ids=REPLICAS)
def test_replicas(seen, counted):
    assert replicas_of(seen) == counted


def test_a_phase_nobody_knows_is_unknown():
    assert phase_of(job("Dancing")) is Phase.UNKNOWN
    assert phase_of({}) is Phase.PENDING


@pytest.mark.parametrize(
    ("phase", "runs"),
    [
        ("Pending", True),
        ("Running", True),
        ("Resuming", True),
        ("Paused", False),
        ("Failed", False),
        ("Succeeded", False),
    ],
)
def test_only_jobs_with_processes_run(phase, runs):
    assert is_running(job(phase)) is runs


INVALID = condition("Initialized", status="False", reason="Invalid")


@pytest.mark.parametrize(
    ("status", "runs"),
    [
        ({"conditions": [INVALID]}, False),
        ({"conditions": [INVALID], "aggregate": {"creating": 2, "running": 0}}, False),
        ({"conditions": [INVALID], "aggregate": {"running": 1}}, True),
        ({"conditions": [condition("Initialized", status="False", reason="Refused")]}, True),
        ({"conditions": [condition("Initialized", status="False")]}, True),
    ],
)
def test_a_job_that_is_refused_will_not_run_but_what_runs_of_it_does(status, runs):
    assert is_running(job("Pending", **status)) is runs


DURATIONS = {
    "nothing before it began": (JobStatus(), None),
    "until now while it runs": (JobStatus(start_time=NOON - timedelta(minutes=5)), timedelta(minutes=5)),
    "until its end": (
        JobStatus(start_time=NOON - timedelta(hours=2), completion_time=NOON - timedelta(hours=1)),
        timedelta(hours=1),
    ),
    "pauses do not count": (JobStatus(start_time=NOON - timedelta(minutes=5), paused_seconds=60), timedelta(minutes=4)),
    "a clock that went back gives nothing negative": (JobStatus(start_time=NOON + timedelta(hours=1)), timedelta(0)),
}


@pytest.mark.parametrize(("status", "lasted"), DURATIONS.values(), ids=DURATIONS)
def test_duration(status, lasted):
    assert duration_of(status, NOON) == lasted


def test_the_first_pod_that_waits_says_why():
    pods = (
        ReplicaPod(name="a", place=ReplicaId("worker", 0), attempt=0, phase="Running", reason="Odd"),
        ReplicaPod(
            name="b", place=ReplicaId("worker", 1), attempt=0, phase="Pending", reason="ImageUnknown", message="map it"
        ),
    )

    assert waiting_of(pods) == "worker-1: ImageUnknown: map it"
    assert waiting_of(pods[:1]) == ""


def test_claims_are_named_once_with_where_they_are_mounted():
    template = {
        "spec": {
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "digits"}},
                {"name": "scratch", "emptyDir": {}},
            ],
            "containers": [
                {"volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "scratch", "mountPath": "/tmp"}]}
            ],
        }
    }
    seen = {"spec": {"replicaSpecs": [{"template": template}, {"template": template}]}}

    assert claims_of(seen) == (("digits", "/data"),)
    assert claims_of({"spec": {"worker": {"template": template}}}) == (("digits", "/data"),)
    assert claims_of({"spec": {"replicaSpecs": [{}]}}) == ()


def test_a_status_that_nobody_can_read_is_unknown_and_says_so():
    job = {"status": {"phase": "Running", "ports": "x"}}

    assert status_of(job).phase is Phase.UNKNOWN
    assert "malformed" in reason_of(job)


def test_an_application_whose_status_nobody_can_read_says_so():
    assert "malformed" in app_status_of({"status": {"revision": "many"}}).waiting
