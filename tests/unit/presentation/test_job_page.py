"""The page of a job: cause, timeline, replicas, logs and events."""

from datetime import UTC, datetime

import pytest

from paceline.kinds.registry import stem_of
from paceline.presentation.attempts import is_about
from paceline.presentation.job_page import MAX_EVENTS, job_page

NOW = datetime(2030, 1, 31, 13, tzinfo=UTC)


def at(minute, second=0):
    return f"2030-01-31T12:{minute:02}:{second:02}Z"


def job(phase="Running", *, spec=None, annotations=None, **status):
    template = {"spec": {"containers": [{"name": "pytorch", "image": "python:3.11", "command": ["true"]}]}}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "PyTorchTrainingJob",
        "metadata": {
            "name": "mnist",
            "namespace": "default",
            "uid": "u-1",
            "creationTimestamp": at(0),
            "annotations": annotations or {},
        },
        "spec": {
            "runPolicy": {"backoffLimit": 2},
            "replicaSpecs": [{"type": "worker", "replicas": 2, "restartPolicy": "OnFailure", "template": template}],
            **(spec or {}),
        },
        "status": {"phase": phase, "startTime": at(0), **status},
    }


STEM = stem_of(job())


def name(index, attempt=0):
    return f"{STEM}-worker-{index}" + (f"-r{attempt}" if attempt else "")


def pod(index, attempt=0, *, state, phase="Running", minute=0):
    labels = {"replica-type": "worker", "replica-index": str(index), "paceline.dev/attempt": str(attempt)}
    return {
        "metadata": {
            "name": name(index, attempt),
            "uid": f"p-{index}-{attempt}",
            "labels": labels,
            "creationTimestamp": at(minute),
        },
        "spec": {"nodeName": "vm", "containers": [{"name": "pytorch"}], "initContainers": [{"name": "paceline-clone"}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "pytorch", "restartCount": 0, "state": state}]},
    }


def ended(code, start, end):
    return {"terminated": {"exitCode": code, "startedAt": start, "finishedAt": end, "reason": "Error"}}


def event(reason, about, when, *, message="", field=""):
    kind, uid = ("PyTorchTrainingJob", "u-1") if about == "mnist" else ("Pod", "gone")
    involved = {"kind": kind, "name": about, "uid": uid, "fieldPath": field}
    return {
        "metadata": {"uid": f"{reason}-{about}-{when}", "resourceVersion": "1"},
        "reason": reason,
        "involvedObject": involved,
        "message": message,
        "firstTimestamp": when,
        "lastTimestamp": when,
    }


def story(index, attempt=0, *, minute):
    """Return the events of a pod that ran for a minute and was stopped."""
    about = name(index, attempt)
    return [
        event("Scheduled", about, at(minute), message=f"Successfully assigned default/{about} to vm"),
        event("Started", about, at(minute, 10), field="spec.containers{pytorch}"),
        event("Killing", about, at(minute + 1), field="spec.containers{pytorch}"),
    ]


def record(index, attempt, phase, code=None):
    containers = [{"name": "pytorch", "state": "Terminated", "exitCode": code}] if code is not None else []
    return {"replica": f"worker-{index}", "attempt": attempt, "phase": phase, "containers": containers, "restarts": 0}


def failed_job():
    message = f"failure rule {{worker: [1]}} is met: pod {name(1, 1)} failed with exit code 1"
    return job(
        "Failed",
        completionTime=at(5),
        attempt=1,
        replicaRecords=[record(0, 1, "Deleted"), {**record(1, 1, "Failed", 1), "restarts": 2}],
        conditions=[
            {
                "type": "Failed",
                "status": "True",
                "reason": "Failed",
                "message": message,
                "lastTransitionTime": at(5),
            }
        ],
        failure={
            "pod": name(1, 1),
            "replica": "worker-1",
            "container": "pytorch",
            "exitCode": 1,
            "reason": "Error",
            "message": "",
            "lastLines": ["Traceback (most recent call last):", "ModuleNotFoundError: No module named 'torchvision'"],
        },
    )


def test_the_cause_of_a_failed_job_names_replica_container_exit_code_and_last_lines():
    cause = job_page(failed_job(), [], [], NOW)["cause"]

    assert cause["kind"] == "Failed"
    assert (cause["replica"], cause["container"], cause["exitCode"]) == ("worker-1", "pytorch", 1)
    assert cause["lastLines"][-1] == "ModuleNotFoundError: No module named 'torchvision'"
    assert cause["advice"] == {"code": "ModuleNotFound", "subject": "torchvision"}
    assert cause["time"] == at(5)


def test_restarts_left_are_counted_against_the_limit_of_the_job():
    assert job_page(failed_job(), [], [], NOW)["restarts"] == {"used": 2, "limit": 2, "left": 0}


def test_a_kind_with_limits_per_role_counts_those_of_the_role_that_failed():
    template = {"spec": {"containers": [{"name": "w", "image": "python:3.11", "command": ["true"]}]}}
    generic = failed_job() | {"kind": "GenericJob"}
    policy = {"policy": "OnFailure", "limit": 5}
    generic["spec"] = {
        "replicaSpecs": [{"type": "worker", "replicas": 2, "restartPolicy": policy, "template": template}],
        "successRules": [{"worker": [0, 1]}],
        "failureRules": [{"worker": [0]}, {"worker": [1]}],
    }

    assert job_page(generic, [], [], NOW)["restarts"] == {"used": 2, "limit": 5, "left": 3}


def test_a_job_without_troubles_has_no_cause():
    assert job_page(job(), [], [], NOW)["cause"] is None
    assert job_page(job("Succeeded"), [], [], NOW)["cause"] is None


def test_a_waiting_job_names_the_resources_that_lack():
    waiting = (
        "pod x (and 3 more): 0/1 nodes are available: 1 Insufficient memory (32Gi asked, 23Gi of 24Gi free), "
        "1 Insufficient nvidia.com/gpu (4 asked, 2 of 2 free); it can never run here"
    )
    running = {"type": "Running", "status": "False", "reason": "Unschedulable", "lastTransitionTime": at(0)}

    cause = job_page(job("Pending", waiting=waiting, conditions=[running]), [], [], NOW)["cause"]

    assert (cause["kind"], cause["reason"], cause["neverRuns"]) == ("Waiting", "Unschedulable", True)
    assert cause["shortages"] == [
        {"resource": "memory", "asked": "32Gi", "free": "23Gi", "total": "24Gi"},
        {"resource": "nvidia.com/gpu", "asked": "4", "free": "2", "total": "2"},
    ]


def test_a_running_job_that_was_restarted_shows_its_last_failure():
    shown = failed_job()
    shown["status"] |= {"phase": "Running", "completionTime": None}

    cause = job_page(shown, [], [], NOW)["cause"]

    assert (cause["kind"], cause["exitCode"]) == ("Restarted", 1)


def test_a_rejected_job_shows_the_fault_that_its_author_must_correct():
    initialized = {"type": "Initialized", "status": "False", "reason": "Invalid", "lastTransitionTime": at(0)}

    cause = job_page(job("Pending", waiting="spec.x: no", conditions=[initialized]), [], [], NOW)["cause"]

    assert (cause["kind"], cause["advice"]["code"], cause["message"]) == ("Rejected", "Invalid", "spec.x: no")


def test_the_timeline_has_attempts_of_pods_that_are_gone_from_their_events():
    pods = [
        pod(1, 0, state=ended(1, at(0, 10), at(1)), phase="Failed"),
        pod(1, 1, state=ended(1, at(2, 10), at(5)), phase="Failed", minute=2),
    ]
    events = [*story(0, 0, minute=0), *story(0, 1, minute=2)]

    first, second = job_page(failed_job(), pods, events, NOW)["timeline"]

    assert [(span["attempt"], span["state"], span["start"], span["end"]) for span in first["spans"]] == [
        (0, "Waiting", at(0), at(0, 10)),
        (0, "Stopped", at(0, 10), at(1)),
        (1, "Waiting", at(2), at(2, 10)),
        (1, "Stopped", at(2, 10), at(3)),
    ]
    assert first["isLeader"]
    assert first["spans"][1]["node"] == "vm"
    assert [(span["attempt"], span["state"], span["exitCode"]) for span in second["spans"]] == [
        (0, "Waiting", None),
        (0, "Failed", 1),
        (1, "Waiting", None),
        (1, "Failed", 1),
    ]


def test_a_running_attempt_has_no_end():
    [row] = job_page(job(), [pod(0, state={"running": {"startedAt": at(0, 5)}})], [], NOW)["timeline"]

    assert row["spans"][-1]["state"] == "Running"
    assert row["spans"][-1]["end"] is None


def test_a_restart_inside_a_pod_is_a_span_of_its_own():
    restarted = pod(0, state={"running": {"startedAt": at(2)}})
    restarted["status"]["containerStatuses"][0] |= {"restartCount": 1, "lastState": ended(3, at(0), at(1))}

    [row] = job_page(job(), [restarted], [], NOW)["timeline"]

    assert [(span["state"], span["exitCode"]) for span in row["spans"]] == [("Failed", 3), ("Running", None)]


def test_a_gone_attempt_without_an_end_lasts_until_the_next_one():
    events = [*story(0, 0, minute=0)[:2], *story(0, 1, minute=4)]

    [row] = job_page(job(), [], events, NOW)["timeline"]

    assert row["spans"][1]["end"] == at(4)


def test_the_pods_of_uploads_are_no_replicas():
    events = [event("Started", f"{STEM}-flush-worker-0", at(0), field="spec.containers{x}")]

    assert job_page(job(), [], events, NOW)["timeline"] == []


def test_the_replica_table_has_all_attempts_and_marks_the_current_ones():
    pods = [
        pod(1, 0, state=ended(1, at(0), at(1)), phase="Failed"),
        pod(1, 1, state={"running": {"startedAt": at(2)}}),
    ]

    rows = job_page(job(), pods, story(0, minute=0), NOW)["replicas"]

    assert [(row["replica"], row["attempt"], row["isCurrent"], row["exists"]) for row in rows] == [
        ("worker-0", 0, True, False),
        ("worker-1", 0, False, True),
        ("worker-1", 1, True, True),
    ]


def test_the_log_sources_are_the_commands_and_stages_of_every_attempt():
    pods = [pod(1, 1, state=ended(1, at(2), at(5)), phase="Failed")]

    sources = job_page(failed_job(), pods, story(0, minute=0), NOW)["logs"]

    assert [(source["replica"], source["container"], source["isStage"]) for source in sources] == [
        ("worker-0", "pytorch", False),
        ("worker-1", "pytorch", False),
        ("worker-1", "paceline-clone", True),
    ]
    assert [source["isFailed"] for source in sources] == [False, True, False]


@pytest.mark.parametrize(
    ("recorded", "is_mine"),
    [
        (event("Failed", "mnist", at(0)), True),
        (event("Killing", name(0), at(0)), True),
        (event("Killing", "mnist-00000-worker-0", at(0)), False),
        ({"involvedObject": {"kind": "PyTorchTrainingJob", "name": "mnist", "uid": "an earlier job"}}, False),
    ],
)
def test_events_of_an_earlier_job_of_the_same_name_are_left_out(recorded, is_mine):
    assert is_about(recorded, job()) is is_mine


def test_the_newest_events_are_shown_in_order_and_all_are_counted():
    events = [event("E", "mnist", at(index // 60, index % 60)) for index in range(MAX_EVENTS + 5)]

    page = job_page(job(), [], reversed(events), NOW)

    assert (len(page["events"]), page["eventCount"]) == (MAX_EVENTS, MAX_EVENTS + 5)
    assert page["events"][0]["time"] == at(0, 5)


def test_who_asked_last_is_on_the_page():
    assert job_page(job(annotations={"paceline.dev/asked-by": "ann"}), [], [], NOW)["askedBy"] == "ann"


def test_facts_name_images_resources_and_hyperparameters():
    page = job_page(job(spec={"hyperparameters": {"values": {"lr": "0.1"}}}), [], [], NOW)

    assert page["facts"]["images"] == ["python:3.11"]
    assert page["facts"]["hyperparameters"] == {"lr": "0.1"}
    assert page["roles"][0]["restartPolicy"] == "OnFailure"


def test_a_job_with_a_malformed_spec_has_a_page():
    broken = job() | {"spec": {}, "status": {}}

    page = job_page(broken, [], [], NOW)

    assert (page["phase"], page["cause"]["advice"]["code"]) == ("Pending", "Invalid")
