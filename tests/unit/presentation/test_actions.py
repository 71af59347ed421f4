"""Which actions are possible now, why others are not, and which request does them."""

from datetime import UTC, datetime

import pytest
from tests.unit.kinds.manifests import pytorch

from paceline.errors import BadRequest, MethodNotAllowed
from paceline.kinds import registry
from paceline.presentation.actions import (
    APP_ACTIONS,
    JOB_ACTIONS,
    SERVICE_ACTIONS,
    Action,
    Choices,
    RefusalCode,
    Write,
    asked_by,
    plan_action,
)

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)


def job(phase="Running", *, annotations=None, deleting=False, **spec):
    manifest = pytorch(name="digits", **spec)
    manifest["metadata"] |= {"resourceVersion": "7", "annotations": annotations or {}}
    if deleting:
        manifest["metadata"]["deletionTimestamp"] = "2030-01-31T12:00:00Z"
    return {**manifest, "status": {"phase": phase}}


def paused(**spec):
    return job("Paused", runMode={"pause": {"enabled": True}}, **spec)


def service(phase="Running", *, suspend=False, **status):
    return {
        "apiVersion": "tensorstack.dev/v1beta1",
        "kind": "Notebook",
        "metadata": {"name": "desk", "namespace": "default", "uid": "uid-9", "resourceVersion": "3"},
        "spec": {"suspend": suspend},
        "status": {"phase": phase, **status},
    }


def app(phase="Running", **spec):
    return {
        "apiVersion": "paceline.dev/v1beta1",
        "kind": "TrainingApp",
        "metadata": {"name": "mnist", "namespace": "default", "uid": "uid-8", "resourceVersion": "3"},
        "spec": {"template": {"name": "t", "version": "1"}, **spec},
        "status": {"phase": phase, "revision": 4, "job": {"kind": "PyTorchTrainingJob", "name": "mnist-4"}},
    }


def plan(action, obj, **choices):
    return plan_action(action, obj, Choices(now=NOW, **choices))


def refusal(action, obj, **choices):
    reason = plan(action, obj, **choices).refusal
    return reason and reason.code


@pytest.mark.parametrize(
    ("action", "obj", "code"),
    [
        ("pause", job(), None),
        ("pause", paused(), RefusalCode.PAUSED),
        ("pause", job(runMode={"pause": {"enabled": True}}), RefusalCode.PAUSED),
        ("pause", job("Failed"), RefusalCode.ENDED),
        ("pause", job(deleting=True), RefusalCode.DELETING),
        ("stop", job("Pending"), None),
        ("stop", job("Succeeded"), RefusalCode.ENDED),
        ("resume", paused(), None),
        ("resume", job("Paused", runMode={"pause": {"enable": True}}), None),
        ("resume", job(), RefusalCode.NOT_PAUSED),
        ("resume", job("Succeeded"), RefusalCode.ENDED),
        ("restart", job(), None),
        ("restart", paused(), None),
        ("restart", job("Failed"), RefusalCode.ENDED),
        ("rerun", job("Failed"), None),
        ("rerun", job(deleting=True), None),
        ("debug", job("Failed"), None),
        ("debug", job(runMode={"debug": {"enabled": True}}), RefusalCode.DEBUGGED),
        ("delete", job("Failed"), None),
        ("delete", job(deleting=True), RefusalCode.DELETING),
        ("suspend", service(), None),
        ("suspend", service("Paused", suspend=True), RefusalCode.PAUSED),
        ("resume", service("Paused", suspend=True), None),
        ("resume", service("Paused"), None),
        ("resume", service(), RefusalCode.NOT_PAUSED),
        ("delete", service(), None),
        ("stop", app(), None),
        ("stop", app(suspend=True), RefusalCode.PAUSED),
        ("stop", app("Failed"), RefusalCode.ENDED),
        ("resume", app("Stopped", suspend=True), None),
        ("resume", app(), RefusalCode.NOT_PAUSED),
        ("rerun", app("Succeeded"), None),
        ("uninstall", app(), None),
    ],
)
def test_an_action_is_possible_or_has_a_reason_why_not(action, obj, code):
    assert refusal(action, obj) == code


@pytest.mark.parametrize(
    ("elastic", "replicas", "code"),
    [
        (None, 3, RefusalCode.NOT_ELASTIC),
        ({"enabled": True}, None, None),
        ({"enabled": True}, 3, None),
        ({"enabled": True, "minReplicas": 2, "maxReplicas": 4}, 4, None),
        ({"enabled": True, "minReplicas": 2, "maxReplicas": 4}, 1, RefusalCode.OUT_OF_BOUNDS),
        ({"enabled": True, "minReplicas": 2, "maxReplicas": 4}, 5, RefusalCode.OUT_OF_BOUNDS),
        ({"enabled": True, "expectedReplicas": 3}, 3, RefusalCode.SAME_SIZE),
    ],
)
def test_a_job_is_scaled_within_its_bounds(elastic, replicas, code):
    obj = job(**({"elastic": elastic} if elastic else {}))

    assert refusal("scale", obj, replicas=replicas) == code


def test_pausing_a_paused_job_again_is_harmless_and_pausing_an_ended_one_is_an_error():
    assert plan("pause", paused()).require("job") == {"spec": {"runMode": {"pause": {"enabled": True}}}}
    with pytest.raises(MethodNotAllowed, match=r"digits has ended \(Failed\); only an unfinished job can be paused"):
        plan("pause", job("Failed")).require("digits")


def test_a_resumed_job_is_not_paused_whatever_its_shape():
    old = job("Paused", runMode={"pause": {"enable": True}})
    body = plan("resume", old).body
    old["spec"]["runMode"]["pause"] |= body["spec"]["runMode"]["pause"]

    assert not registry.is_paused(old)


def test_a_restart_is_asked_for_once_per_state_and_ends_a_pause():
    running, resumed = plan("restart", job()).body, plan("restart", paused()).body

    assert running == {"metadata": {"annotations": {"paceline.dev/restart": "after-7"}}}
    assert resumed["spec"] == {"runMode": {"pause": {"enabled": False}}}


def test_a_copy_has_the_next_free_name_unless_one_is_chosen():
    obj = job("Failed")

    assert plan("rerun", obj, taken={"digits", "digits-2"}).body["metadata"]["name"] == "digits-3"
    assert plan("rerun", obj, name="again").body["metadata"]["name"] == "again"
    assert plan("debug", obj).body["metadata"]["name"] == "digits-debug"
    assert plan("debug", obj, taken={"digits-debug"}).body["metadata"]["name"] == "digits-debug-2"


def test_a_debug_copy_starts_no_program_and_is_a_valid_job():
    copy = plan("debug", job("Failed")).body

    assert copy["spec"]["runMode"]["debug"]["enabled"] is True
    assert registry.faults({**copy, "metadata": {**copy["metadata"], "uid": "u"}}) == ()


def test_only_this_very_object_is_deleted():
    deletion = plan("delete", job())

    assert (deletion.write, deletion.body["preconditions"]) == (Write.DELETE, {"uid": job()["metadata"]["uid"]})


def test_a_notebook_is_resumed_from_the_time_of_its_suspension():
    resumption = plan("resume", service("Paused", suspendedAt="2030-01-31T11:00:00.000000Z"))

    assert resumption.body["metadata"]["annotations"] == {"paceline.dev/opened-at": "2030-01-31T11:00:00.000000Z"}


def test_an_application_runs_again_also_when_it_is_stopped():
    assert plan("rerun", app(suspend=True, rerun=2)).body == {"spec": {"rerun": 3, "suspend": False}}


def test_a_kind_has_only_its_own_actions():
    with pytest.raises(BadRequest, match="Notebook has no action 'pause'; there are: suspend, resume, delete"):
        plan("pause", service())


def test_every_action_belongs_to_a_kind():
    assert {*JOB_ACTIONS, *SERVICE_ACTIONS, *APP_ACTIONS} == set(Action)


def test_the_request_names_the_person_and_keeps_other_annotations():
    assert asked_by(plan("restart", job()), "ada").body["metadata"]["annotations"] == {
        "paceline.dev/restart": "after-7",
        "paceline.dev/asked-by": "ada",
    }
    assert asked_by(plan("delete", job()), "ada") == plan("delete", job())
    assert asked_by(plan("pause", job()), "") == plan("pause", job())


def test_a_copy_was_not_asked_for_by_whoever_asked_for_the_original():
    copy = plan("rerun", job(annotations={"paceline.dev/asked-by": "ada"})).body

    assert "paceline.dev/asked-by" not in copy["metadata"]["annotations"]
