"""The events about what people asked for say who asked; without a name they say the same as ever."""

from dataclasses import replace

import pytest

from paceline.model import well_known_labels
from paceline.model.app_status import AppPhase, AppStatus
from paceline.model.job_status import ConditionType, Phase
from paceline.plan.app.decide import decide as decide_app
from paceline.plan.app.manifests import Owner, owned_job, record_manifest
from paceline.plan.interactive.decide import decide as decide_service
from paceline.plan.job.decide import decide
from tests.unit.plan import test_app, test_services
from tests.unit.plan.test_elastic import crew
from tests.unit.plan.worlds import NOW, after, seen, then

RUNNING = {"phase": Phase.RUNNING, "start_time": NOW}


def messages(plan):
    return {event.reason: event.message for event in plan.events}


def by(world, name="ada"):
    return replace(world, asked_by=name)


def paused(name):
    return decide(by(seen("Running", "Running", is_paused=True, **RUNNING), name), NOW)


def test_a_pause_says_who_asked_in_its_event_and_in_its_condition():
    plan = paused("ada")

    assert messages(plan)["Paused"].startswith("the job is paused by ada; set spec.runMode.pause.enabled")
    assert "paused by ada" in plan.status.condition(ConditionType.PAUSED).message
    assert messages(paused(""))["Paused"].startswith("the job is paused; set")


def test_a_pause_stays_that_of_whoever_asked_for_it():
    world = by(seen("Running", "Running", is_paused=True, **RUNNING))
    later = decide(by(then(world, paused("ada"), "Succeeded", "Running"), "bob"), after(1))

    assert later.events == ()
    assert "paused by ada" in later.status.condition(ConditionType.PAUSED).message


@pytest.mark.parametrize(
    ("name", "message"), [("bob", "the job is resumed by bob after a pause"), ("", "the job resumes after a pause")]
)
def test_a_resumed_job_says_who_resumed_it(name, message):
    world = seen("Running", "Running", is_paused=True, **RUNNING)
    plan = decide(by(then(world, paused("ada"), is_paused=False), name), after(60))

    assert messages(plan)["Resuming"] == message


def test_a_suspension_and_its_end_say_who_asked():
    world = seen("Running", "Running", is_suspended=True, **RUNNING)
    suspended = decide(by(world), NOW)
    free = decide(by(then(world, suspended, is_suspended=False)), after(60))

    assert messages(suspended)["Suspended"] == "the job is suspended by ada; set spec.suspend to false to let it run"
    assert messages(free)["Resuming"] == "the job is no longer suspended; resumed by ada"


def test_a_restart_says_who_requested_it_and_a_failure_names_nobody():
    requested = decide(by(seen("Running", "Running", restart_request="now", **RUNNING)), NOW)
    failed = decide(by(seen("Running", "Failed", **RUNNING)), NOW)

    assert messages(requested)["Restarting"] == "a restart was requested by ada; next attempt of all replicas"
    assert "ada" not in messages(failed)["Restarting"]


def test_a_new_size_and_a_new_job_say_who_asked():
    small = seen("Running", of=crew(1), **RUNNING)
    first = decide(by(small), NOW)
    grown = decide(by(replace(small, gang=crew(2), status=first.status)), after(1))

    assert messages(first)["Created"] == "job demo has 1 replicas, created by ada"
    assert messages(grown)["Resized"] == "2 replicas are expected, 1 before; scaled by ada"


def test_a_service_says_who_suspended_and_resumed_it():
    view = test_services.seen(*test_services.RUNNING, window=test_services.SUSPENDED, asked_by="ada")
    suspended = decide_service(view, NOW)
    free = decide_service(test_services.seen(status=suspended.status, asked_by="bob"), test_services.after(1))

    assert messages(suspended)["Suspended"].startswith("suspended by ada: spec.suspend is true")
    assert messages(free)["Resumed"] == "resumed by bob; its pod is created again"


def test_an_idle_service_is_suspended_in_nobodys_name():
    view = test_services.seen(*test_services.RUNNING, used=NOW, asked_by="ada")
    plan = decide_service(view, test_services.after(1000))

    assert messages(plan)["Suspended"].startswith("unused for ")


def test_an_application_says_who_changed_and_stopped_it():
    changed = decide_app(test_app.seen(asked_by="ada"), NOW)
    running = AppStatus(revision=1, phase=AppPhase.RUNNING)
    world = test_app.seen(records=[test_app.record(1)], jobs=[test_app.job(1)], status=running)
    stopped = decide_app(replace(world, is_suspended=True, asked_by="bob"), NOW)

    assert messages(changed)["Revision"] == "revision 1 is made of the spec as changed by ada"
    assert messages(stopped)["Stopped"] == "revision 1 is stopped by bob; spec.suspend is true"


def test_a_revision_and_its_job_keep_the_name_of_whoever_asked():
    owner = Owner(reference={"kind": "TrainingApp", "name": "mnist"}, namespace="default", stem="mnist", asked_by="ada")
    spec = {"revision": 2, "job": {"kind": "GenericJob", "name": "mnist-2", "spec": {}}}
    manifests = (record_manifest(owner, "v1", spec), owned_job(owner, "v1", spec))

    assert [obj["metadata"]["annotations"] for obj in manifests] == [{well_known_labels.ASKED_BY: "ada"}] * 2
    assert "annotations" not in record_manifest(replace(owner, asked_by=""), "v1", spec)["metadata"]
