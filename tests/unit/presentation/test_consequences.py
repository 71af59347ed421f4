"""What an action says beforehand, as data that both languages put into words."""

from datetime import UTC, datetime

import pytest
from tests.unit.kinds.manifests import pytorch, replica, template
from tests.unit.presentation.test_actions import app, job, service

from paceline.presentation.actions import Choices, plan_action
from paceline.presentation.apps.app_change import AppChange
from paceline.presentation.consequences import ConsequenceCode, consequences_of, consequences_of_change, preview

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)


def wire(action, obj, **choices):
    plan = plan_action(action, obj, Choices(now=NOW, **choices))
    return {entry["code"]: entry for entry in (consequence.to_wire() for consequence in consequences_of(plan, obj))}


def running(**status):
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "mnist"}}
    pod_template = template(volumes=[claim], volumeMounts=[{"name": "data", "mountPath": "/data"}])
    pod_template["spec"]["terminationGracePeriodSeconds"] = 90
    obj = pytorch(replica(template=pod_template), name="digits", runPolicy={"backoffLimit": 3})
    obj["metadata"]["resourceVersion"] = "7"
    return {**obj, "status": {"phase": "Running", "attempt": 1, "aggregate": {"running": 1, "pending": 1}, **status}}


@pytest.mark.parametrize("action", ["pause", "stop"])
def test_a_pause_says_how_many_replicas_stop_and_that_files_stay(action):
    consequences = wire(action, running())

    assert consequences["ReplicasStop"] == {"code": "ReplicasStop", "replicas": 2, "graceSeconds": 90}
    assert consequences["FilesStay"]["claims"] == ["mnist"]
    assert "JobStays" in consequences


def test_a_restart_uses_up_no_restart_and_says_how_many_are_left():
    records = [{"replica": "worker-0", "phase": "Running", "attempt": 1, "restarts": 2}]
    consequences = wire("restart", running(replicaRecords=records))

    assert consequences["RestartNotCounted"] == {"code": "RestartNotCounted", "restartsLeft": 1, "limit": 3}
    assert consequences["NewAttempt"]["attempt"] == 2


def test_a_deletion_says_what_goes_with_the_job():
    obj = running(tensorboard={"dependent": {"name": "digits-tb"}})
    obj["metadata"]["ownerReferences"] = [{"kind": "TrainingApp", "name": "mnist", "uid": "u", "controller": True}]
    consequences = wire("delete", obj)

    assert consequences["TensorBoardGoes"]["name"] == "digits-tb"
    assert consequences["ApplicationNotes"]["name"] == "mnist"
    assert {"JobGoes", "FilesStay", "ReplicasStop"} <= set(consequences)


def test_of_an_ended_job_nothing_stops():
    assert "NothingRuns" in wire("delete", job("Failed"))


def test_a_copy_says_its_name():
    assert wire("rerun", job("Failed"))["NewJob"]["name"] == "digits-2"
    assert "ProgramNotStarted" in wire("debug", job("Failed"))


def test_a_resize_says_whether_all_replicas_restart():
    elastic = {"enabled": True, "minReplicas": 1, "maxReplicas": 4}
    torchrun = {"torchrunConfig": {"enabled": True}}
    one_by_one = wire("scale", job(elastic=elastic, **torchrun), replicas=3)

    assert one_by_one["SizeChanges"] == {"code": "SizeChanges", "from": 2, "to": 3, "minReplicas": 1, "maxReplicas": 4}
    assert "AllRestart" not in one_by_one
    assert "AllRestart" in wire("scale", job(elastic=elastic), replicas=3)


def test_a_service_and_an_application_say_what_stops():
    pod = {"reference": {"name": "desk-1-0", "uid": "u"}, "phase": "Running"}

    assert "PodStops" in wire("suspend", service(pod=pod))
    assert "NothingRuns" in wire("suspend", service())
    assert "PodStarts" in wire("resume", service("Paused", suspend=True))
    assert wire("rerun", app())["NewRevision"] == {"code": "NewRevision", "revision": 5, "stops": "mnist-4"}
    assert wire("rerun", app("Failed"))["NewRevision"]["stops"] == ""
    assert wire("uninstall", app())["ApplicationGoes"]["stops"] == "mnist-4"
    assert wire("stop", app())["TrainingStops"]["job"] == "mnist-4"
    assert wire("resume", app(suspend=True))["TrainingResumes"]["job"] == "mnist-4"


def test_a_preview_of_what_is_not_possible_says_why_and_of_what_request():
    shown = preview(plan_action("pause", job("Failed"), Choices(now=NOW)), job("Failed"))

    assert shown["possible"] is False
    assert shown["reason"]["code"] == "Ended"
    assert shown["reason"]["phase"] == "Failed"
    assert (shown["write"], shown["action"]) == ("patch", "pause")


def test_every_code_is_used():
    objects = {
        **dict.fromkeys(("pause", "restart", "rerun", "debug", "resume"), running()),
        "delete": running(tensorboard={"dependent": {"name": "x"}}),
    }
    owned = running()
    owned["metadata"]["ownerReferences"] = [{"kind": "TrainingApp", "name": "a", "uid": "u", "controller": True}]
    codes = {code for action, obj in objects.items() for code in wire(action, obj)}
    codes |= {*wire("delete", owned), *wire("scale", job(elastic={"enabled": True}), replicas=3)}
    codes |= {*wire("delete", service(pod={"reference": {"name": "x"}})), *wire("suspend", service())}
    codes |= set(wire("resume", service("Paused")))
    codes |= {code for action in ("stop", "resume", "rerun", "uninstall") for code in wire(action, app())}
    upgrade = AppChange(revision=2, job_name="a-2", stops="a-1", is_suspended=True, values={}, job={})
    codes |= {consequence.code for consequence in consequences_of_change(upgrade)}

    assert codes == set(ConsequenceCode)
