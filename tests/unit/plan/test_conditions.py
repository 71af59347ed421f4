"""A job that breaks a rule of its kind is told so on itself."""

from paceline.model.job_status import ConditionType, JobStatus
from paceline.plan.job.conditions import refused
from paceline.plan.job.decide import decide
from tests.unit.plan.worlds import NOW, after, seen

SAID = "spec.replicaSpecs[0].replicas: 0 is not allowed; must be at least 1"


def test_a_refused_job_says_what_is_wrong_with_it():
    status = refused(JobStatus(), SAID, NOW)

    assert status.waiting == SAID
    assert not status.condition(ConditionType.INITIALIZED).status
    assert status.condition(ConditionType.INITIALIZED).message == SAID


def test_a_job_is_refused_once():
    first = JobStatus.from_wire(refused(JobStatus(), SAID, NOW).to_wire())

    assert refused(first, SAID, after(60)) == first


def test_a_job_that_was_mended_goes_its_way():
    plan = decide(seen(status=refused(JobStatus(), SAID, NOW)), after(60))

    assert len(plan.create) == 2
    assert plan.status.waiting == ""
