"""What an application, its records and its jobs tell; what nobody can read is said, our own bugs blame nobody."""

import pytest

from paceline.controllers.app.snapshot import look
from paceline.errors import BadRequest
from paceline.kinds import registry
from paceline.model.job_status import Phase
from tests.unit.kinds.manifests import generic, replica, tensorflow

APP = {
    "apiVersion": "paceline.dev/v1",
    "kind": "TrainingApp",
    "metadata": {"name": "mnist", "namespace": "d", "uid": "a", "generation": 1},
    "spec": {"job": {"kind": "GenericJob", "spec": generic()["spec"]}},
}


def job(made=None, **status):
    made = made or generic()
    head = {"name": "mnist-1", "namespace": "d", "uid": "u", "labels": {"paceline.dev/revision": "1"}}
    return {**made, "metadata": head, "status": status}


def record(**spec):
    told = {"revision": 1, "digest": "d", "job": {"name": "mnist-1"}, **spec}
    return {"metadata": {"name": "mnist-1", "namespace": "d"}, "spec": told}


def looked(app=APP, *, records=(), jobs=()):
    return look(app, records, jobs)


SPOILT = {
    "its status": lambda: looked({**APP, "status": {"revision": "first"}}),
    "a record": lambda: looked(records=[record(revision="first")]),
    "a job's status": lambda: looked(jobs=[job(attempt="many")]),
    "a job's number": lambda: looked(
        jobs=[{**job(), "metadata": {**job()["metadata"], "labels": {"paceline.dev/revision": "first"}}}]
    ),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_what_others_wrote_and_nobody_can_read_is_said(spoil):
    with pytest.raises(BadRequest, match="the object is malformed"):
        spoil()


def test_a_bug_in_a_kind_is_blamed_on_nobody_else(bug):
    with pytest.raises(type(bug)):
        looked(jobs=[job()])


def test_what_members_are_told_of_each_other_is_read_while_the_job_runs():
    made = tensorflow()
    ports = dict.fromkeys(registry.ports_of(job(made)), 4001)

    assert "4001" in looked(jobs=[job(made, phase="Running", ports=ports)]).jobs[0].cluster
    assert looked(jobs=[job(made, phase="Succeeded", ports=ports)]).jobs[0].cluster == ""


def test_a_job_with_faults_has_nobody_to_tell_and_is_no_bug():
    """Its own controller says what is wrong with it."""
    unnamed = tensorflow(replica("worker", 1))
    (seen,) = looked(jobs=[job(unnamed, phase="Pending", ports={"worker-0": 4001})]).jobs

    assert registry.faults(job(unnamed))
    assert (seen.cluster, seen.status.phase) == ("", Phase.PENDING)
