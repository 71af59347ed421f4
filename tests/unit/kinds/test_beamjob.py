"""BeamJob: checked and kept, and refused with a reason by whoever would run it."""

import pytest

from paceline.errors import Invalid
from paceline.kinds import registry
from tests.unit.kinds.manifests import beam, one_fault


def test_a_pipeline_is_kept():
    assert registry.faults(beam(runPolicy={"cleanUpCluster": True})) == ()


def test_a_pipeline_is_not_run_and_its_author_hears_why():
    with pytest.raises(Invalid, match=r"^Flink is not supported.*GenericJob with Beam's DirectRunner"):
        registry.expand(beam(), {})


FAULTS = {
    "a pipeline without a pod": (
        beam(jobTemplate={"spec": {"template": {}}}),
        "spec.jobTemplate.spec.template.spec: None is not allowed; the field is required",
    ),
    "no cluster": (
        beam(flinkClusterTemplate=None),
        "spec.flinkClusterTemplate: None is not allowed; must be an object",
    ),
    "a misspelled field": (
        beam(runPolicy={"cleanupCluster": True}),
        'spec.runPolicy.cleanupCluster: True is not allowed; unknown field, did you mean "cleanUpCluster"?',
    ),
}


@pytest.mark.parametrize(("job", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_job_is_refused_for(job, fault):
    assert one_fault(job).startswith(fault)
