"""A status survives the wire: what one controller writes, the next one reads."""

from datetime import UTC, datetime

import pytest

from paceline.model.condition import Condition
from paceline.model.gang import ReplicaId
from paceline.model.job_status import ConditionType, Failure, JobStatus, Phase
from paceline.model.replica_record import ContainerState, ReplicaPhase, ReplicaRecord

NOW = datetime(2030, 1, 1, 12, 30, tzinfo=UTC)

ENDING = {"phase": "Succeeded", "reason": "Succeeded", "message": "done", "time": "2030-01-01T00:00:00.000000Z"}
FULL = JobStatus(
    phase=Phase.RUNNING,
    observed_generation=2,
    attempt=1,
    replicas=(
        ReplicaRecord(place=ReplicaId("worker", 0), uid="u0", phase=ReplicaPhase.RUNNING),
        ReplicaRecord(
            place=ReplicaId("worker", 1),
            attempt=2,
            restarts=3,
            uid="u1",
            phase=ReplicaPhase.FAILED,
            containers=(ContainerState(name="pytorch", state="Terminated", exit_code=137, reason="OOMKilled"),),
            stages=(ContainerState(name="paceline-output", state="Terminated", exit_code=0, message="2 files"),),
            reason="Evicted",
            message="the node was full",
            oom_limit="512Mi",
        ),
        ReplicaRecord(place=ReplicaId("worker", 2), attempt=1, is_scaled_down=True, has_output=True),
    ),
    start_after=NOW.replace(microsecond=250_000),
    start_time=NOW,
    running_time=NOW,
    completion_time=NOW,
    restart_granted="once",
    resumes=1,
    paused_seconds=60,
    ports={"master": 23500},
    conditions=(Condition(type=ConditionType.RUNNING, status=True, reason="-", message="fine", since=NOW),),
    waiting="for a node",
    failure=Failure(
        pod="demo-12345-worker-1",
        exit_code=137,
        reason="OOMKilled",
        message="killed",
        replica="worker-1",
        container="pytorch",
        last_lines=("epoch 1", "epoch 2"),
    ),
    tasks=({"type": "worker", "restartCount": 3, "replicas": []},),
    aggregate={"running": 2},
    elastic={"currentReplicas": 2, "expectedReplicas": 3},
    tensorboard={"action": "NOP", "ready": True},
    source={"commit": "0" * 40},
    errands={"resolve": 1},
    ending=ENDING,
)

RECORDS = [
    {"replica": "worker-0", "uid": "u0", "phase": "Running"},
    {
        "replica": "worker-1",
        "attempt": 2,
        "restarts": 3,
        "uid": "u1",
        "phase": "Failed",
        "containers": [{"name": "pytorch", "state": "Terminated", "exitCode": 137, "reason": "OOMKilled"}],
        "stages": [{"name": "paceline-output", "state": "Terminated", "exitCode": 0, "message": "2 files"}],
        "reason": "Evicted",
        "message": "the node was full",
        "oomLimit": "512Mi",
    },
    {"replica": "worker-2", "attempt": 1, "phase": "Creating", "scaledDown": True, "hasOutput": True},
]

STATUSES = {
    "a full one": FULL,
    "the first one": JobStatus(),
    "a failure without exit code": JobStatus(failure=Failure(pod="p", exit_code=None, reason="Evicted")),
    "a failure of which nothing could be read": JobStatus(
        failure=Failure(pod="p", exit_code=1, reason="Error", last_lines=())
    ),
    "an exit code of 0": JobStatus(failure=Failure(pod="p", exit_code=0, reason="DeadlineExceeded")),
}


@pytest.mark.parametrize("status", STATUSES.values(), ids=STATUSES)
def test_a_status_comes_back_as_it_was(status):
    assert JobStatus.from_wire(status.to_wire()) == status


def test_the_wire_form_is_t9ks_and_what_it_leaves_out():
    assert FULL.to_wire() == {
        "phase": "Running",
        "observedGeneration": 2,
        "attempt": 1,
        "replicaRecords": RECORDS,
        "backoffCount": 3,
        "startAfter": "2030-01-01T12:30:00.250000Z",
        "startTime": "2030-01-01T12:30:00Z",
        "runningTime": "2030-01-01T12:30:00Z",
        "completionTime": "2030-01-01T12:30:00Z",
        "restartGranted": "once",
        "resumes": 1,
        "pausedSeconds": 60,
        "ports": {"master": 23500},
        "conditions": [
            {
                "type": "Running",
                "status": "True",
                "reason": "-",
                "message": "fine",
                "lastTransitionTime": "2030-01-01T12:30:00Z",
            }
        ],
        "waiting": "for a node",
        "failure": {
            "pod": "demo-12345-worker-1",
            "replica": "worker-1",
            "container": "pytorch",
            "exitCode": 137,
            "reason": "OOMKilled",
            "message": "killed",
            "lastLines": ["epoch 1", "epoch 2"],
        },
        "tasks": [{"type": "worker", "restartCount": 3, "replicas": []}],
        "aggregate": {"running": 2},
        "elastic": {"currentReplicas": 2, "expectedReplicas": 3},
        "tensorboard": {"action": "NOP", "ready": True},
        "source": {"commit": "0" * 40},
        "errands": {"resolve": 1},
        "ending": ENDING,
    }


def test_restarts_are_counted_once_per_replica():
    assert (FULL.backoff_count, FULL.role_restarts) == (3, {"worker": 3})
    assert FULL.scaled_down == (ReplicaId("worker", 2),)


def test_what_is_empty_is_not_there():
    """`kubectl wait --for=jsonpath={.status.waiting}` asks whether the field is there."""
    assert JobStatus().to_wire() == {
        "phase": "Pending",
        "observedGeneration": 0,
        "attempt": 0,
        "backoffCount": 0,
        "conditions": [],
    }


def test_a_job_without_status_is_pending():
    assert JobStatus.from_wire({}) == JobStatus()


def test_a_phase_nobody_knows_is_unknown():
    assert JobStatus.from_wire({"phase": "Dreaming"}).phase is Phase.UNKNOWN


def test_conditions_of_others_are_passed_over():
    wire = FULL.to_wire()
    wire["conditions"].append({"type": "Admitted", "status": "True"})

    assert JobStatus.from_wire(wire) == FULL


def test_succeeded_and_failed_are_final_and_nothing_else_is():
    assert {phase for phase in Phase if phase.is_final} == {Phase.SUCCEEDED, Phase.FAILED}


def test_fields_of_an_older_version_are_passed_over():
    """A job on another Kubernetes may have a status that an unreleased version wrote."""
    old = {
        "phase": "Running",
        "attempt": 1,
        "memberAttempts": {"worker-1": 2},
        "releases": {"worker-2": 1},
        "left": ["worker-2"],
        "roleRestarts": {"worker": 3},
        "backoffCount": 3,
        "memoryKills": {"worker-1": "512Mi"},
        "tasks": [{"type": "worker", "restartCount": 3, "replicas": [{"name": "p", "uid": "u", "phase": "Running"}]}],
    }

    status = JobStatus.from_wire(old)

    assert (status.phase, status.attempt, status.replicas) == (Phase.RUNNING, 1, ())
    assert "left" not in status.to_wire()
