"""What a pod's status tells of its stages, and an errand's of its outcome."""

from datetime import UTC, datetime

import pytest

from paceline.apimachinery.pods import claims_of
from paceline.controllers.job.snapshot import (
    LogsRead,
    Reading,
    auxiliary_pod_snapshot,
    has_gang_scheduler,
    look,
    pod_snapshot,
    trimmed_pod,
)
from paceline.errors import BadRequest
from paceline.model import well_known_labels
from paceline.plan.job.snapshot import PodPhase
from tests.unit.kinds.manifests import gang_of, generic, replica, template

TIME = "2030-01-01T00:00:00Z"
OUTPUT = {"name": "paceline-output", "image": "i", "restartPolicy": "Always"}
CLONE = {"name": "paceline-clone", "image": "i"}


def pod(*inits, told=None, **status):
    who = {well_known_labels.REPLICA_TYPE: "worker", well_known_labels.REPLICA_INDEX: "0"}
    return {
        "metadata": {"name": "p", "namespace": "d", "uid": "u", "labels": who if told is None else told},
        "spec": {"containers": [], "initContainers": [CLONE, OUTPUT]},
        "status": {"phase": "Failed", "initContainerStatuses": list(inits), **status},
    }


def over(name, code, message=""):
    return {"name": name, "state": {"terminated": {"exitCode": code, "message": message}}}


def full_pod(*, labels):
    """Return a pod as a real cluster has it, of which every part that rules read is there."""
    inits = [over("paceline-clone", 1, "no such branch"), {**over("paceline-output", 137), "lastState": {}}]
    ended = {"exitCode": 1, "reason": "Error", "message": "oom", "startedAt": TIME, "finishedAt": TIME}
    waits = {"name": "beside", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no image"}}}
    described = pod(*inits, told=labels, containerStatuses=[{"name": "main", "state": {"terminated": ended}}, waits])
    described["metadata"] |= {
        "resourceVersion": "7",
        "deletionTimestamp": TIME,
        "deletionGracePeriodSeconds": 0,
        "managedFields": [{"manager": "kubelet"}],
        "annotations": {"much": "text"},
        "ownerReferences": [{"kind": "GenericJob", "name": "demo", "uid": "j", "controller": True}],
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "mine"}}, {"name": "scratch", "emptyDir": {}}]
    containers = [{"name": "main", "env": [{"name": "A", "value": "b"}]}]
    described["spec"] |= {"nodeName": "one", "containers": containers, "volumes": volumes}
    described["status"] |= {
        "podIP": "10.1.0.1",
        "conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "drained"},
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"},
        ],
    }
    return described


@pytest.mark.parametrize("status", [{}, {"reason": "Evicted", "message": "the node was low on memory"}], ids=str)
@pytest.mark.parametrize(
    ("labels", "snapshot"),
    [
        ({well_known_labels.REPLICA_TYPE: "worker", well_known_labels.REPLICA_INDEX: "3"}, pod_snapshot),
        ({well_known_labels.ERRAND: "resolve", well_known_labels.ATTEMPT: "2"}, auxiliary_pod_snapshot),
    ],
    ids=["member", "auxiliary"],
)
def test_a_trimmed_pod_says_all_that_rules_read_and_little_else(labels, snapshot, status):
    described = full_pod(labels=labels)
    described["status"] |= status

    trimmed = trimmed_pod(described)

    assert snapshot(trimmed) == snapshot(described) is not None
    assert trimmed["metadata"]["ownerReferences"] == described["metadata"]["ownerReferences"]
    assert trimmed_pod(trimmed) == trimmed
    assert list(claims_of(trimmed)) == list(claims_of(described)) != []
    for part, name in (("metadata", "managedFields"), ("metadata", "annotations"), ("spec", "containers")):
        assert name not in trimmed[part]


def test_a_pod_without_anything_can_be_trimmed():
    assert trimmed_pod({}) == {"metadata": {}, "spec": {}, "status": {}}


def test_a_stage_that_failed_decides_over_the_pod_with_its_own_words():
    seen = pod_snapshot(pod(over("paceline-clone", 1, "git: no such branch")))

    assert [(each.name, each.exit_code, each.message) for each in seen.containers] == [
        ("paceline-clone", 1, "git: no such branch")
    ]


def test_a_stage_that_went_well_and_a_sidecar_decide_nothing():
    seen = pod_snapshot(pod(over("paceline-clone", 0), over("paceline-output", 137)))

    assert seen.containers == ()
    assert [(each.name, each.exit_code) for each in seen.stages] == [("paceline-clone", 0), ("paceline-output", 137)]


@pytest.mark.parametrize(
    ("last", "state"), [({"terminated": {"exitCode": 0}}, "Terminated"), ({}, "Waiting")], ids=["again", "at first"]
)
def test_a_sidecar_that_waits_to_come_again_has_begun_and_has_not_ended_well(last, state):
    waits = {"name": "paceline-output", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": last}
    (stage,) = pod_snapshot(pod(waits)).stages

    assert (stage.state, stage.exit_code) == (state, None)


def test_init_containers_of_the_authors_own_are_no_stages():
    assert pod_snapshot(pod(over("mine", 0))).stages == ()


def test_h47_an_image_that_is_not_to_be_had_is_what_a_pod_waits_for():
    waits = {"reason": "ImagePullBackOff", "message": "image 'a:1' is mapped to no environment"}
    stage = {"name": "paceline-install", "state": {"waiting": waits}}

    seen = pod_snapshot(pod(stage, phase="Pending"))
    later = pod_snapshot(pod(stage, phase="Failed"))

    assert (seen.reason, seen.message) == ("ImagePullBackOff", "image 'a:1' is mapped to no environment")
    assert later.reason == ""


def errand(**status):
    return pod(told={well_known_labels.ERRAND: "resolve", well_known_labels.ATTEMPT: "2"}, **status)


def test_an_errand_says_how_it_ended():
    seen = auxiliary_pod_snapshot(errand(containerStatuses=[over("resolve", 1, "git: who are you?")]))

    assert (seen.name, seen.attempt, seen.phase, seen.message) == ("resolve", 2, PodPhase.FAILED, "git: who are you?")


def test_an_errand_that_never_ran_says_why():
    assert auxiliary_pod_snapshot(errand(reason="Evicted", message="no room")).message == "no room"


def test_other_pods_are_no_auxiliary_pods_and_those_that_are_deleted_have_an_end():
    going = errand()
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"

    assert auxiliary_pod_snapshot(pod()) is None
    assert auxiliary_pod_snapshot(going).ends_at == datetime(2030, 1, 1, tzinfo=UTC)
    assert pod_snapshot(errand()) is None


def looked(*pods, **status):
    job = generic(name="demo")
    job["metadata"] |= {"namespace": "d", "uid": "u", "generation": 1}
    job["status"] = status
    return look(job, Reading(job=job), pods, logs=LogsRead())


SPOILT = {
    "a status": lambda: looked(attempt="many"),
    "a pod's phase": lambda: looked(pod(phase="Dreaming")),
    "when a pod goes": lambda: looked(_leaving(pod())),
    "an errand's end": lambda: looked(
        pod(told={well_known_labels.ERRAND: "flush-worker-0"}, containerStatuses=["over"])
    ),
}


def _leaving(leaves):
    return {**leaves, "metadata": {**leaves["metadata"], "deletionTimestamp": "soon"}}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_what_others_wrote_and_nobody_can_read_is_said(spoil):
    with pytest.raises(BadRequest, match="the object is malformed"):
        spoil()


def test_a_bug_in_a_kind_is_blamed_on_nobody_else(bug):
    with pytest.raises(type(bug)):
        looked()


SCHEDULED = {
    "Kubernetes' own": ({}, {}, False),
    "Kueue": ({"kueue.x-k8s.io/queue-name": "team"}, {}, True),
    "another scheduler": ({}, {"schedulerName": "volcano"}, True),
    "Kubernetes' own by name": ({}, {"schedulerName": "default-scheduler"}, False),
}


@pytest.mark.parametrize(("labels", "spec", "is_gang"), SCHEDULED.values(), ids=SCHEDULED)
def test_x13_a_job_may_name_who_starts_all_its_pods_or_none(labels, spec, is_gang):
    pod_template = {"spec": {**template()["spec"], **spec}}
    job = generic(replica(template=pod_template))
    job["metadata"]["labels"] = labels

    assert has_gang_scheduler(job, gang_of(job)) is is_gang
