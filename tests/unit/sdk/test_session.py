"""Submitting, finding and ending jobs through a session."""

import threading

import pytest
from tests.unit.sdk.conftest import CLAIMS, EVENTS, JOBS, PODS

from paceline.cli.commands.cluster.down import stop_all
from paceline.errors import AlreadyExists, BadRequest, HostError, Invalid, MethodNotAllowed, NotFound
from paceline.sdk.job import JobRef
from paceline.sdk.submission.manifest import read_text
from paceline.sdk.submission.submit import Document

CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
YAML = b"""
apiVersion: batch.tensorstack.dev/v1beta1
kind: PyTorchTrainingJob
metadata: {name: digits}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
"""


def documents():
    return read_text(YAML, "job.yaml")


def test_claims_are_made_before_the_jobs_that_need_them(stage, session):
    made = session.create(documents())

    assert [str(each) for each in made] == ["persistentvolumeclaim/data created", "pytorchtrainingjob/digits created"]
    assert [path for _, path, _ in stage.history] == [CLAIMS, JOBS]
    assert made[1].job.uid == "uid-of-digits"
    assert stage.objects[JOBS, "digits"]["metadata"]["namespace"] == "default"


def test_a_claim_that_exists_is_used(stage, session):
    stage.put(CLAIMS, {"metadata": {"name": "data", "namespace": "default"}})

    assert str(session.create(documents())[0]) == "persistentvolumeclaim/data exists"


def test_a_job_that_exists_is_not_touched_and_nothing_else_stays(stage, session, job_object):
    stage.put(JOBS, job_object())

    with pytest.raises(AlreadyExists, match=r"job.yaml:2: pytorchtrainingjob/digits already exists"):
        session.create(documents())
    assert set(stage.objects) == {(JOBS, "digits")}


def test_a_refused_job_leaves_nothing_behind(stage, session):
    stage.refused.add("digits")

    with pytest.raises(Invalid) as refusal:
        session.create(documents())

    assert refusal.value.what == "job.yaml:2: pytorchtrainingjob/digits"
    assert [(fault.path, fault.value, fault.hint) for fault in refusal.value.faults] == [
        ("spec.replicas", 0, "must be at least 1")
    ]
    assert stage.objects == {}
    assert stage.deleted[0][1]["preconditions"] == {"uid": "uid-of-data"}


def test_what_was_there_before_stays_after_a_refusal(stage, session):
    stage.refused.add("digits")
    stage.put(CLAIMS, {"metadata": {"name": "data", "namespace": "default"}})

    with pytest.raises(Invalid):
        session.create(documents())
    assert set(stage.objects) == {(CLAIMS, "data")}


def test_an_unknown_kind_is_noticed_before_anything_is_made(stage, session):
    odd = Document(object={"apiVersion": "v1", "kind": "Podd", "metadata": {"name": "x"}}, place="job.yaml:9")

    with pytest.raises(Invalid) as refusal:
        session.create((*documents(), odd))
    assert refusal.value.what == "job.yaml:9"
    assert stage.objects == {}


def test_submit_takes_a_file_or_a_dict(session, tmp_path):
    (tmp_path / "job.yaml").write_bytes(YAML)
    assert str(session.submit(tmp_path / "job.yaml")) == "pytorchtrainingjob/digits"

    manifest = {"apiVersion": "batch.tensorstack.dev/v1beta1", "kind": "PyTorchTrainingJob", "metadata": {"name": "b"}}
    assert session.submit(manifest).name == "b"


def test_submit_is_about_one_job(session):
    with pytest.raises(BadRequest, match="0 jobs were created"):
        session.submit(CLAIM)
    with pytest.raises(BadRequest, match="kind is missing"):
        session.submit({"apiVersion": "v1"})


def test_a_job_is_found_by_name_or_kind_and_name(stage, session, job_object):
    stage.put(JOBS, job_object())

    assert session.job("digits") == session.job("pj/digits")


def test_a_wrong_name_suggests_a_close_one(stage, session, job_object):
    stage.put(JOBS, job_object())

    with pytest.raises(NotFound, match=r"did you mean digits\?"):
        session.job("digitz")
    with pytest.raises(NotFound, match=r"did you mean pytorchtrainingjob/digits\?"):
        session.job("pj/digitz")
    with pytest.raises(NotFound, match=r"did you mean digits\?"):
        session.job("DIGITS")
    with pytest.raises(NotFound, match="to list all jobs"):
        session.job("other")


def test_only_jobs_are_jobs(session):
    with pytest.raises(Invalid, match="is not a kind of job"):
        session.job("pods/x")


def test_a_handle_knows_when_another_job_took_the_name(stage, session, job_object):
    stage.put(JOBS, job_object())
    ref = session.job("digits")
    stage.put(JOBS, job_object(uid="uid-2"))

    with pytest.raises(NotFound, match="another job has its name"):
        ref.status()


def test_delete_means_this_very_job(stage, session, job_object):
    stage.put(JOBS, job_object())
    session.job("digits").delete()

    assert stage.deleted[0][1]["preconditions"] == {"uid": "uid-1"}
    assert stage.objects == {}


def test_an_elastic_job_is_scaled_by_one_field_and_no_other_job_is(stage, session, job_object):
    elastic = job_object(phase="Running")
    stage.put(JOBS, {**elastic, "spec": {**elastic["spec"], "elastic": {"enabled": True}}})
    stage.put(JOBS, job_object(name="fixed", uid="uid-2", phase="Running"))

    session.job("digits").scale(3)
    with pytest.raises(MethodNotAllowed, match="is not elastic"):
        session.job("fixed").scale(3)

    assert stage.patched == [{"spec": {"elastic": {"expectedReplicas": 3}}}]


def test_a_check_finds_what_would_be_rejected_and_creates_nothing(stage, session, job_object):
    stage.refused.add("digits")
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {}}
    job = {**job_object(), "apiVersion": "batch.tensorstack.dev/v1beta1", "kind": "PyTorchTrainingJob"}
    documents = tuple(Document(object=obj, place="job.yaml:1") for obj in (claim, job))

    (error,) = session.check(documents)

    assert "job.yaml:1: pytorchtrainingjob/digits: spec.replicas: 0 is not allowed; must be at least 1" in str(error)
    assert stage.objects == {}


def test_a_check_allows_a_claim_of_the_same_file_and_a_name_that_exists(stage, session, job_object):
    stage.put(JOBS, job_object())
    job = {**job_object(), "apiVersion": "batch.tensorstack.dev/v1beta1", "kind": "PyTorchTrainingJob"}

    assert session.check((Document(object=job, place="job.yaml:1"),)) == ()


def test_pause_and_resume_change_one_field(stage, session, job_object):
    stage.put(JOBS, job_object(phase="Running"))
    ref = session.job("digits")
    ref.pause()
    ref.resume()

    assert [each["spec"]["runMode"]["pause"]["enabled"] for each in stage.patched] == [True, False]


def test_every_action_names_the_person_where_the_cluster_knows_one(stage, session, job_object):
    stage.user = "ada"
    stage.put(JOBS, job_object(phase="Running"))
    ref = session.job("digits")
    for act in (ref.pause, ref.resume, ref.restart):
        act()
    copy = session.rerun(ref)

    names = [change["metadata"]["annotations"]["paceline.dev/asked-by"] for change in stage.patched]
    assert names == ["ada"] * 3
    assert copy.read()["metadata"]["annotations"]["paceline.dev/asked-by"] == "ada"


def test_what_has_ended_cannot_be_paused(stage, session, job_object):
    stage.put(JOBS, job_object(phase="Failed"))

    with pytest.raises(MethodNotAllowed, match="has ended"):
        session.job("digits").pause()
    assert stage.patched == []


def test_a_job_is_quiet_when_paused_and_its_pods_have_ended(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object(phase="Paused"))
    stage.put(PODS, pod_object(phase="Running"))
    ref = session.job("digits")

    with pytest.raises(TimeoutError):
        ref.wait_idle(timeout=0.1)
    stage.drop(PODS, "digits-1a2b3-worker-0")
    ref.wait_idle(timeout=10)


def test_a_job_that_is_refused_is_quiet_since_nothing_runs(stage, session, job_object):
    wrong = {
        "type": "Initialized",
        "status": "False",
        "reason": "Invalid",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    stage.put(JOBS, job_object(phase="Pending", conditions=[wrong], waiting="Flink is not supported"))

    session.job("digits").wait_stopped(margin=5)


def told(reason, message, uid="uid-1"):
    return {"metadata": {"name": reason.lower()}, "reason": reason, "message": message, "involvedObject": {"uid": uid}}


def running(stage, job, pod):
    """A job that is told to stop, and runs on."""
    stage.put(JOBS, job)
    stage.put(PODS, {**pod, "spec": {"terminationGracePeriodSeconds": 0}})


UNSTOPPED = {
    "since nobody can read its status": ({"attempt": "many"}, (), "malformed: invalid literal"),
    "since nobody can read it, as was told": (
        {},
        (told("Unreadable", "it lacks 'x'"),),
        "stop in time: it lacks 'x'; ",
    ),
    "for a reason it gives": ({"waiting": "the node is away"}, (), "stop in time: the node is away; "),
    "and nobody knows why": ({}, (told("Unreadable", "no", uid="uid-2"),), "did not stop in time; "),
}


@pytest.mark.parametrize("case", UNSTOPPED.values(), ids=UNSTOPPED)
def test_a_job_that_does_not_stop(stage, session, job_object, pod_object, case):
    status, events, why = case
    running(stage, job_object(phase="Running", **status), pod_object(phase="Running"))
    for event in events:
        stage.put(EVENTS, event)

    with pytest.raises(HostError) as said:
        session.job("digits").wait_stopped(margin=0.1)
    assert why in str(said.value)
    assert str(said.value).startswith("pytorchtrainingjob/digits did not stop in time")
    assert "remove it and its pods with `paceline delete pytorchtrainingjob/digits`" in str(said.value)


def test_a_job_whose_results_are_being_copied_is_waited_for(stage, session, job_object, pod_object):
    ending = {"phase": "Succeeded", "reason": "Succeeded", "message": "done", "time": "2030-01-01T00:00:00Z"}
    running(stage, job_object(phase="Running", ending=ending), pod_object(phase="Running"))
    over = threading.Timer(0.5, stage.put, (JOBS, job_object(phase="Succeeded")))
    over.start()

    session.job("digits").wait_stopped(margin=0.1)
    over.join()


def test_a_job_that_ends_at_the_last_moment_has_stopped(stage, session, job_object, pod_object, monkeypatch):
    running(stage, job_object(phase="Running"), pod_object(phase="Running"))
    wait_quiet = JobRef.wait_idle

    def too_short(_job, _timeout):
        stage.put(JOBS, job_object(phase="Succeeded"))
        monkeypatch.setattr(JobRef, "wait_idle", wait_quiet)
        raise TimeoutError

    monkeypatch.setattr(JobRef, "wait_idle", too_short)

    session.job("digits").wait_stopped()


def test_all_that_does_not_stop_is_named_at_once_and_the_cluster_is_not_stopped(
    stage, session, job_object, pod_object, capsys
):
    running(stage, job_object(phase="Running"), pod_object(phase="Running"))
    stage.put(JOBS, job_object(name="other", uid="uid-2"))

    with pytest.raises(HostError) as said:
        stop_all(session, [session.job("digits"), session.job("other")], margin=0.1)
    lines = str(said.value).splitlines()
    assert [line.partition(" ")[0] for line in lines] == [
        "pytorchtrainingjob/digits",
        "pytorchtrainingjob/other",
        "the",
    ]
    assert all("running without the cluster with `paceline down --keep-jobs`" in line for line in lines[:2])
    assert lines[2] == "the cluster has not been stopped"
    assert len(stage.patched) == 2
    assert "stopping pytorchtrainingjob/other" in capsys.readouterr().err


def test_gone_is_gone_also_when_the_name_is_taken_again(stage, session, job_object):
    stage.put(JOBS, job_object())
    kind, old = session.kinds.named("pj"), stage.objects[JOBS, "digits"]
    stage.drop(JOBS, "digits")
    session.wait_gone(kind, old)

    stage.put(JOBS, job_object(uid="uid-2"))
    session.wait_gone(kind, old)


def test_what_does_not_go_is_not_waited_for_longer_than_was_said(stage, session, job_object):
    stage.put(JOBS, job_object())

    with pytest.raises(TimeoutError):
        session.wait_gone(session.kinds.named("pj"), stage.objects[JOBS, "digits"], timeout=0.1)


def test_a_watch_gives_what_is_there_and_then_every_change(stage, session, job_object):
    stage.put(JOBS, job_object())
    seen = []
    for event in session.watch(session.kinds.jobs()):
        seen.append((event.object["status"]["phase"], event.is_gone))
        if len(seen) == 1:
            stage.put(JOBS, job_object(phase="Running"))
            stage.drop(JOBS, "digits")
        if event.is_gone:
            break

    assert seen == [("Pending", False), ("Running", False), ("Running", True)]
