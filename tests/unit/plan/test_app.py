"""Which revision of an application is current, and what becomes of the others."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from paceline.model.app_status import AppPhase, AppStatus, RecordStatus
from paceline.model.job_status import Condition, ConditionType, Failure, JobStatus, Phase
from paceline.model.log_metrics import metrics_in
from paceline.plan.app.decide import AppSeen, Recorded, RevisionJob, decide, refused

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MADE = RecordStatus(phase=AppPhase.RUNNING, is_made=True)
DONE = RecordStatus(phase=AppPhase.SUCCEEDED, is_made=True, metrics={})


def record(revision, digest=None, status=MADE):
    job = f"mnist-{revision}"
    return Recorded(name=job, revision=revision, digest=digest or f"spec {revision}", job=job, status=status)


def job(revision, phase=Phase.RUNNING, *, alive=0, **more):
    status = JobStatus(phase=phase, aggregate={"running": alive})
    name = f"mnist-{revision}"
    return RevisionJob(kind="GenericJob", name=name, uid=f"uid {revision}", revision=revision, status=status, **more)


def seen(digest="spec 1", *, records=(), jobs=(), revision=0, **more):
    status = more.pop("status", AppStatus(revision=revision))
    return AppSeen(digest=digest, status=status, records=tuple(records), jobs=tuple(jobs), **more)


def planned(**world):
    return decide(seen(**world), NOW)


def test_a_new_application_is_written_down_before_its_job_is_made():
    plan = planned()

    assert (plan.status.revision, plan.makes_record, plan.makes_job) == (1, True, False)
    assert [told.reason for told in plan.events] == ["Revision"]


def test_what_is_written_down_gets_its_job():
    plan = planned(records=[record(1, status=RecordStatus())], revision=1)

    assert (plan.makes_record, plan.makes_job, plan.events, plan.notes) == (False, True, (), ())


def test_another_spec_is_the_next_revision_and_stops_the_one_before():
    running = job(1)
    plan = planned(digest="spec 2", records=[record(1)], jobs=[running], revision=1)

    assert (plan.status.revision, plan.makes_record, plan.pause) == (2, True, (running,))
    assert "mnist-1" in plan.status.waiting


WAYS = {
    "runs": (job(1, alive=1), False),
    "is told to stop": (job(1, is_paused=True, alive=1), False),
    "has stopped but for its last replica": (job(1, Phase.PAUSED, is_paused=True, alive=1), False),
    "has stopped": (job(1, Phase.PAUSED, is_paused=True), True),
    "has ended": (job(1, Phase.FAILED, alive=1), True),
    "is going": (job(1, is_deleting=True), True),
}


@pytest.mark.parametrize(("before", "begins"), WAYS.values(), ids=WAYS)
def test_a_revision_begins_when_the_one_before(before, begins):
    plan = planned(digest="spec 2", records=[record(1), record(2, status=RecordStatus())], jobs=[before], revision=2)

    assert plan.makes_job is begins


def test_the_moment_and_the_job_of_an_application_are_those_of_its_current_revision():
    before = AppStatus(revision=1, updated=NOW, job=("GenericJob", "mnist-1"))
    later = NOW + timedelta(hours=1)
    same = decide(seen(records=[record(1, status=DONE)], status=before), later).status
    changed = decide(seen(digest="spec 2", records=[record(1)], jobs=[job(1)], status=before), later).status

    assert (same.updated, same.job) == (NOW, ("GenericJob", "mnist-1")), "also when its job is gone"
    assert (changed.updated, changed.job) == (later, None)


def test_a_job_that_is_going_is_left_alone():
    going = job(1, is_deleting=True)
    plan = planned(digest="spec 2", records=[record(1), record(2)], jobs=[going], revision=2)

    assert (plan.pause, plan.delete) == ((), ())


def test_what_was_known_of_a_revision_stays_known():
    known = MADE.but(commit="c0ffee", cluster="{}")
    (note,) = planned(records=[record(1, status=known)], jobs=[job(1, Phase.SUCCEEDED)], revision=1).notes

    assert (note.status.commit, note.status.cluster) == ("c0ffee", "{}")


def test_going_back_to_an_earlier_spec_is_a_new_revision():
    plan = planned(digest="spec 1", records=[record(1, status=DONE), record(2, status=DONE)], revision=2)

    assert plan.status.revision == 3


def test_a_spec_that_changed_before_anything_was_made_of_it_takes_no_number():
    plan = planned(digest="spec 1b", records=[], revision=1)

    assert (plan.status.revision, plan.makes_record) == (1, True)


def test_a_number_is_never_given_twice_although_the_record_went():
    plan = planned(digest="spec 3", records=[], revision=3)

    assert plan.status.revision == 3


def test_a_stopped_application_stops_its_job_and_makes_none():
    running = job(1)
    stopping = planned(records=[record(1)], jobs=[running], revision=1, is_suspended=True)
    unmade = planned(records=[record(1, status=RecordStatus())], revision=1, is_suspended=True)

    assert (stopping.pause, stopping.status.phase, stopping.status.is_stopped) == ((running,), AppPhase.STOPPED, True)
    assert (unmade.makes_job, unmade.status.phase) == (False, AppPhase.STOPPED)


def test_a_job_goes_on_only_when_the_application_had_stopped_it():
    held = job(1, Phase.PAUSED, is_paused=True)
    by_us = AppStatus(revision=1, is_stopped=True)
    going = planned(records=[record(1)], jobs=[held], status=by_us)
    by_others = planned(records=[record(1)], jobs=[held], revision=1)
    gone_on = planned(records=[record(1)], jobs=[job(1)], status=by_us)

    assert (going.resume, going.status.is_stopped) == ((held,), True), "remembered until it is seen to go on"
    assert by_others.resume == ()
    assert gone_on.status.is_stopped is False


def test_an_ended_training_is_never_begun_again_because_its_job_went():
    ended = planned(records=[record(1, status=DONE)], revision=1)
    cut_short = planned(records=[record(1, status=MADE)], revision=1)

    assert (ended.makes_job, ended.status.phase) == (False, AppPhase.SUCCEEDED)
    assert (cut_short.makes_job, cut_short.status.phase) == (False, AppPhase.DELETED)
    assert "rerun" in cut_short.status.waiting
    assert [note.status.phase for note in cut_short.notes] == [AppPhase.DELETED]


def test_what_became_of_a_job_is_written_on_its_record_once():
    failure = Failure(pod="p", exit_code=1, reason="Error", message="exit code 1", replica="worker-0")
    failed = job(1, Phase.FAILED)
    failed = replace(failed, status=failed.status.but(start_time=NOW, completion_time=NOW, failure=failure))
    plan = planned(records=[record(1)], jobs=[failed], revision=1, metrics={1: {"Cost": "0.5"}})
    (note,) = plan.notes
    again = planned(records=[record(1, status=note.status)], jobs=[failed], revision=1)

    assert note.status == RecordStatus(
        phase=AppPhase.FAILED,
        start_time=NOW,
        completion_time=NOW,
        message="worker-0 failed with exit code 1: exit code 1",
        metrics={"Cost": "0.5"},
        is_made=True,
    )
    assert again.notes == ()
    assert plan.status.history[0]["phase"] == "Failed"
    assert plan.status.message == note.status.message


def test_a_job_that_never_had_a_pod_says_why_it_failed():
    told = Condition(type=ConditionType.FAILED, status=True, reason="NoSource", message="no repository", since=NOW)
    failed = job(1, Phase.FAILED)
    failed = replace(failed, status=failed.status.but(conditions=(told,)))
    plan = planned(records=[record(1)], jobs=[failed], revision=1)
    bare = planned(records=[record(1)], jobs=[job(1, Phase.FAILED)], revision=1)

    assert (plan.status.message, bare.status.message) == ("no repository", "")
    assert "no repository" in plan.events[0].message
    assert planned(records=[record(1)], jobs=[job(1)], status=plan.status).status.message == ""


def test_last_words_are_asked_for_once_a_job_has_ended():
    ended = job(1, Phase.SUCCEEDED)

    assert planned(records=[record(1)], jobs=[job(1)], revision=1).read is None
    assert planned(records=[record(1)], jobs=[ended], revision=1).read == ended
    assert planned(records=[record(1, status=DONE)], jobs=[ended], revision=1).read is None


def test_the_oldest_jobs_beyond_the_limit_go_once_all_is_known_of_them():
    done = replace(DONE, metrics={})
    records = [record(number, status=done) for number in (1, 2, 3)]
    jobs = [job(number, Phase.SUCCEEDED) for number in (1, 2, 3)]
    plan = planned(digest="spec 3", records=records, jobs=jobs, revision=3, keeps=1)
    unread = [record(1, status=MADE), *records[1:]]
    careful = planned(digest="spec 3", records=unread, jobs=jobs, revision=3, keeps=1)

    assert [each.name for each in plan.delete] == ["mnist-1"]
    assert [each.name for each in careful.delete] == ["mnist-2"]
    assert planned(digest="spec 3", records=records, jobs=jobs, revision=3, keeps=2).delete == ()


def test_each_thing_is_told_once():
    first = planned(records=[record(1)], jobs=[job(1, Phase.SUCCEEDED)], revision=1)
    again = planned(records=[record(1)], jobs=[job(1, Phase.SUCCEEDED)], status=first.status)
    failed = planned(records=[record(1)], jobs=[job(1, Phase.FAILED)], revision=1)
    stopped = planned(records=[record(1)], jobs=[job(1)], revision=1, is_suspended=True)

    assert [told.reason for told in first.events] == ["Succeeded"]
    assert again.events == ()
    assert [(told.reason, told.is_warning) for told in failed.events] == [("Failed", True)]
    assert [told.reason for told in stopped.events] == ["Stopped"]


def test_why_the_cluster_took_none_of_it_stays_until_it_does():
    waits = refused(AppStatus(revision=1), "the claim is somebody else's")
    plan = planned(records=[record(1, status=RecordStatus())], status=waits)
    made = planned(records=[record(1)], jobs=[job(1)], status=waits)
    changed = planned(digest="spec 2", records=[record(1, status=RecordStatus())], status=waits)

    assert plan.status.waiting == "the claim is somebody else's"
    assert made.status.waiting == changed.status.waiting == ""


@pytest.mark.parametrize("phase", Phase)
def test_an_application_is_where_its_current_job_is(phase):
    plan = planned(records=[record(1)], jobs=[job(1, phase)], revision=1)
    after = AppStatus.from_wire(plan.status.to_wire())

    assert after == plan.status
    assert after.phase.is_final is phase.is_final


SAID = {
    "closing lines": (
        ["Test-Accuracy: 0.89", "Total Time: 1664.68s", "Final Cost: 0.5333", "done"],
        {"Test-Accuracy": "0.89", "Total Time": "1664.68s", "Final Cost": "0.5333"},
    ),
    "the last of several": (
        ["Epoch: 1,  Cost: 0.9", "Epoch: 2,  Cost: 0.8027,  AvgTime: 6.79ms"],
        {"Epoch": "2", "Cost": "0.8027", "AvgTime": "6.79ms"},
    ),
    "other spellings": (["loss=3e-05 val/acc = 91%"], {"loss": "3e-05", "val/acc": "91%"}),
    "no numbers": (["Listening at http://a:80", "state: ready", "ps-0: started at 10:00"], {}),
}


@pytest.mark.parametrize(("lines", "found"), SAID.values(), ids=SAID)
def test_what_a_trainer_counted_is_read_from_what_it_said(lines, found):
    assert metrics_in(lines) == found


def test_who_the_others_are_is_shown_once_it_is_known():
    running = job(1, cluster='{"worker": []}')
    plan = planned(records=[record(1)], jobs=[running], revision=1)
    (note,) = plan.notes
    again = planned(records=[record(1, status=note.status)], jobs=[running], revision=1)

    assert (plan.shows, note.status.cluster, again.shows) == (running, running.cluster, None)


def test_whoever_waits_for_gpus_is_told_how_to_train_without():
    short = job(1, Phase.PENDING)
    short = replace(short, status=short.status.but(waiting="Insufficient nvidia.com/gpu"))
    told = planned(records=[record(1)], jobs=[short], revision=1, without_gpu="paceline app upgrade mnist --set g=0")

    assert told.status.waiting == (
        "Insufficient nvidia.com/gpu; `paceline app upgrade mnist --set g=0` trains without GPUs"
    )
    assert planned(records=[record(1)], jobs=[short], revision=1).status.waiting == "Insufficient nvidia.com/gpu"
