"""Which pod is which member, who leads, who failed first, and whose log is meant."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from paceline.model.gang import ReplicaId
from paceline.presentation.job_summary import describe_exit_code
from paceline.presentation.replica_pods import (
    ReplicaPod,
    first_failed,
    last_attempts,
    latest,
    leader_id,
    no_log,
    previous_attempts,
    replica_pod,
    replica_pods,
)
from paceline.sdk.follow import ReplicaSelector

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def pod(role, index, attempt=0, *, phase="Running", ended=None, **more):
    return ReplicaPod(
        name=f"digits-1a2b3-{role}-{index}" + (f"-r{attempt}" if attempt else ""),
        place=ReplicaId(role, index),
        attempt=attempt,
        phase=phase,
        has_started=more.pop("has_started", phase != "Pending"),
        ended=ended,
        **more,
    )


def wire(role="worker", index="0", *, labels=None, **status):
    told = {"replica-type": role, "replica-index": index, **(labels or {})}
    return {"metadata": {"name": f"a-{role}-{index}", "labels": told}, "spec": {"nodeName": "here"}, "status": status}


def container(**state):
    return {"name": "main", "state": state, "restartCount": 0}


def test_a_pod_without_a_place_is_no_member():
    assert replica_pod({"metadata": {"name": "stray"}}) is None
    assert replica_pod(wire(index="x")) is None


def test_a_failed_pod_tells_code_reason_and_times():
    ended = {
        "exitCode": 137,
        "reason": "OOMKilled",
        "startedAt": "2030-01-01T11:00:00Z",
        "finishedAt": "2030-01-01T12:00:00Z",
    }
    found = replica_pod(
        wire(phase="Failed", containerStatuses=[container(terminated=ended)], labels={"job-role": "master"})
    )

    assert found is not None
    assert (found.exit_code, found.reason, found.ended, found.node) == (137, "OOMKilled", NOON, "here")
    assert found.is_leader
    assert found.is_final
    assert found.has_started


def test_the_first_bad_container_gives_the_exit_code():
    codes = [container(terminated={"exitCode": code}) for code in (0, 3, 4)]

    assert replica_pod(wire(phase="Failed", containerStatuses=codes)).exit_code == 3


WAITS = {
    "a pod nobody asked about says nothing": ({}, ("", "")),
    "the pod's own reason comes first": (
        {"reason": "Evicted", "message": "disk", "conditions": [{"type": "PodScheduled", "status": "False"}]},
        ("Evicted", "disk"),
    ),
    "then the scheduler's": (
        {
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "2 CPUs short"}
            ]
        },
        ("Unschedulable", "2 CPUs short"),
    ),
    "then the missing volume that our node reports": (
        {
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {
                    "type": "PodReadyToStartContainers",
                    "status": "False",
                    "reason": "FailedMount",
                    "message": "claim data does not exist",
                },
            ]
        },
        ("FailedMount", "claim data does not exist"),
    ),
    "then the container's": (
        {"containerStatuses": [container(waiting={"reason": "ImageUnknown", "message": "map it"})]},
        ("ImageUnknown", "map it"),
    ),
    "being made is no reason": ({"containerStatuses": [container(waiting={"reason": "ContainerCreating"})]}, ("", "")),
    "a good end is no reason": (
        {"containerStatuses": [container(terminated={"reason": "Completed", "exitCode": 0})]},
        ("", ""),
    ),
}


@pytest.mark.parametrize(("status", "why"), WAITS.values(), ids=WAITS)
def test_why_a_pod_waits(status, why):
    found = replica_pod(wire(**status))

    assert (found.reason, found.message) == why


def test_a_waiting_pod_has_no_log_and_a_running_one_has():
    assert not replica_pod(wire(containerStatuses=[container(waiting={})])).has_started
    assert replica_pod(wire(containerStatuses=[container(running={})])).has_started


def test_pods_are_ordered_by_place_then_try():
    pods = replica_pods(
        [wire(index="10"), wire(index="2"), wire(role="master"), wire(labels={"paceline.dev/attempt": "1"})]
    )

    assert [(str(each.place), each.attempt) for each in pods] == [
        ("master-0", 0),
        ("worker-0", 1),
        ("worker-2", 0),
        ("worker-10", 0),
    ]


def test_the_marked_member_leads_and_else_the_first():
    assert leader_id([pod("worker", 0), pod("chief", 0)]) == ReplicaId("chief", 0)
    assert leader_id([pod("chief", 0), pod("worker", 0, is_leader=True)]) == ReplicaId("worker", 0)
    assert leader_id([]) is None


def test_the_last_try_of_every_member_counts():
    pods = [pod("worker", 0), pod("worker", 0, 2), pod("worker", 0, 1), pod("worker", 1)]

    assert [each.attempt for each in latest(pods)] == [2, 0]


def test_a_try_that_has_not_started_has_no_log_yet():
    pods = [pod("worker", 0, phase="Failed"), pod("worker", 0, 1, phase="Pending")]

    assert [each.attempt for each in last_attempts(pods)] == [0]


def test_the_try_before_the_last_is_an_earlier_pod_or_the_same_pod_restarted():
    twice = [pod("worker", 0, phase="Failed"), pod("worker", 0, 1), pod("worker", 1)]
    assert [each.attempt for each in previous_attempts(twice)] == [0]

    in_place = [pod("worker", 0, restarts=2)]
    assert previous_attempts(in_place) == tuple(in_place)


def test_the_pod_that_failed_first_is_the_root_cause():
    later = pod("worker", 0, phase="Failed", ended=NOON + timedelta(seconds=1), exit_code=143)
    first = pod("worker", 1, phase="Failed", ended=NOON, exit_code=1)

    assert first_failed([later, first, pod("worker", 2)]) == first
    assert first_failed([pod("worker", 2)]) is None
    assert first_failed([replace(later, ended=None)]) == replace(later, ended=None)


CHOICES = {
    "nothing said means the leader": (ReplicaSelector(), ["chief-0"]),
    "all means all": (ReplicaSelector(is_all=True), ["chief-0", "worker-0", "worker-1"]),
    "a role means all of it": (ReplicaSelector(role="worker"), ["worker-0", "worker-1"]),
    "a role and a number mean one": (ReplicaSelector(role="worker", index=1), ["worker-1"]),
    "a number alone means the leader's role": (ReplicaSelector(index=0), ["chief-0"]),
    "who is not there is not chosen": (ReplicaSelector(role="ps"), []),
}


@pytest.mark.parametrize(("choice", "places"), CHOICES.values(), ids=CHOICES)
def test_whose_log_is_meant(choice, places):
    pods = [pod("chief", 0, is_leader=True), pod("worker", 0), pod("worker", 1)]

    assert sorted(map(str, choice.places(pods, leader_id(pods)))) == places


def test_no_pods_means_no_choice():
    assert ReplicaSelector(role="worker").places([], None) == frozenset()


EXITS = {
    0: "exit code 0",
    1: "exit code 1",
    137: "exit code 137 (SIGKILL)",
    139: "exit code 139 (SIGSEGV)",
    143: "exit code 143 (SIGTERM)",
    -9: "exit code -9 (SIGKILL)",
    None: "no exit code",
}


@pytest.mark.parametrize(("code", "words"), EXITS.items())
def test_an_exit_code_names_its_signal(code, words):
    assert describe_exit_code(code) == words


def test_why_there_is_no_log():
    waiting = pod("worker", 0, phase="Pending", reason="Unschedulable")

    assert "has no pods" in no_log("pj/a", [], [], is_previous=False)
    assert "it has: worker-0" in no_log("pj/a", [waiting], [], is_previous=False)
    assert "not started yet: Unschedulable" in no_log("pj/a", [waiting], [waiting], is_previous=False)
    failed = pod("worker", 0, phase="Failed", has_started=False)
    assert "failed before its command started" in no_log("pj/a", [failed], [failed], is_previous=False)
    assert "run only once" in no_log("pj/a", [waiting], [waiting], is_previous=True)


def test_h47_a_pod_whose_first_container_has_no_image_says_so():
    waits = {"waiting": {"reason": "ImagePullBackOff", "message": "image 'a:1' is mapped to no environment"}}
    found = replica_pod(
        wire(
            phase="Pending",
            initContainerStatuses=[{"name": "paceline-install", "state": waits}],
            containerStatuses=[{"name": "worker", "state": {"waiting": {"reason": "PodInitializing"}}}],
        )
    )

    assert (found.reason, found.message) == ("ImagePullBackOff", "image 'a:1' is mapped to no environment")


def test_how_a_sidecar_was_ended_says_nothing_about_its_pod():
    ended = {"terminated": {"exitCode": 143, "reason": "Error"}}
    found = replica_pod(
        wire(
            phase="Succeeded",
            initContainerStatuses=[{"name": "paceline-output", "state": ended}],
            containerStatuses=[{"name": "worker", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}],
        )
    )

    assert found.reason == ""
