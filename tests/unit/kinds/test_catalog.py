"""The list of kinds, and what the rest of the house asks of it."""

import pytest

from paceline.errors import Invalid
from paceline.kinds import registry
from paceline.kinds.kind_types import OWN_GROUP
from paceline.model.gang import ReplicaId
from tests.unit.kinds.manifests import PORTS, generic, one_fault, pytorch, replica, said, template

DATA = {"name": "data", "persistentVolumeClaim": {"claimName": "digits"}}
SCRATCH = {"name": "scratch", "emptyDir": {}}
KINDS = {kind.kind: kind for kind in registry.KINDS}


def test_names_are_t9ks():
    names = {kind.kind: (kind.plural, kind.short_names) for kind in registry.KINDS}

    assert names == {
        "PyTorchTrainingJob": ("pytorchtrainingjobs", ("pj",)),
        "GenericJob": ("genericjobs", ("gj",)),
        "TensorFlowTrainingJob": ("tensorflowtrainingjobs", ("tj",)),
        "XGBoostTrainingJob": ("xgboosttrainingjobs", ("xj",)),
        "MPIJob": ("mpijobs", ("mj",)),
        "DeepSpeedJob": ("deepspeedjobs", ("dj",)),
        "ColossalAIJob": ("colossalaijobs", ("caij",)),
        "BeamJob": ("beamjobs", ("bj",)),
        "TensorFlowJob": ("tensorflowjobs", ()),
        "DeepspeedJob": ("deepspeed-jobs", ()),
    }


def test_no_two_kinds_share_a_name():
    """A real server accepts the second of two definitions that do, and never serves it."""
    named = [{kind.plural, kind.singular or kind.kind.lower(), *kind.short_names} for kind in registry.KINDS]

    assert len(set().union(*named)) == sum(map(len, named))


def test_an_object_is_of_its_kind():
    assert registry.kind_of(pytorch()) is KINDS["PyTorchTrainingJob"]
    assert registry.kind_of({"apiVersion": "v1", "kind": "Pod"}) is None
    assert registry.kind_of({**pytorch(), "kind": "PyTorchJob"}) is None


def test_a_kind_nobody_knows_is_answered_with_the_nearest():
    assert one_fault({**pytorch(), "kind": "PyTorchJob"}).endswith('did you mean "PyTorchTrainingJob"?')


def test_an_object_of_another_group_is_no_job():
    assert one_fault({**pytorch(), "apiVersion": "kubeflow.org/v1"}) == (
        "apiVersion: 'kubeflow.org/v1' is not allowed; the apiVersion of a job is batch.tensorstack.dev/v1beta1"
    )


def test_reading_a_spec_that_does_not_fit_names_every_misfit():
    with pytest.raises(Invalid) as refused:
        registry.read(pytorch(replica(replicas=0), zz=1))

    assert [fault.path for fault in refused.value.faults] == ["spec.zz", "spec.replicaSpecs[0].replicas"]


def test_the_stem_is_the_name_and_five_digits_of_the_incarnation():
    """T9k: all replicas of one incarnation share it, the next one of the same name has another."""
    first, second = pytorch(), pytorch()
    second["metadata"]["uid"] = "another"
    site, gang = registry.expand(first, PORTS)

    assert site.stem == "demo-666ff"
    assert [site.pod(member.place) for member in gang.members] == ["demo-666ff-worker-0", "demo-666ff-worker-1"]
    assert registry.stem_of(second) != site.stem
    assert (site.job, site.namespace) == ("demo", "default")


NAMES = {
    "capitals and underscores": ("My_Job", 'did you mean "my-job"?'),
    "a dot": ("my.job", 'did you mean "my-job"?'),
    "a digit first, since the job's service has its name": ("2024-run", "start with a letter"),
    "too many characters": ("j" * 44, "must have at most 43 characters: its pod names are longer and limited to 63"),
    "far too many characters": ("j" * 64, "must be no more than 63 bytes"),
    "no name": (None, "set a name for the job"),
}


@pytest.mark.parametrize(("name", "hint"), NAMES.values(), ids=NAMES)
def test_a_name_is_refused_for(name, hint):
    fault = one_fault(pytorch(name=name))

    assert fault.startswith("metadata.name: ")
    assert hint in fault


def test_the_longest_name_leaves_room_for_every_pod_and_attempt():
    job = pytorch(replica(replicas=2), name="j" * 43)

    assert registry.faults(job) == ()
    assert len(registry.expand(job, PORTS)[0].pod(ReplicaId("worker", 1), 999)) == 63
    assert registry.faults(pytorch(replica(replicas=11), name="j" * 43)) != ()


def test_a_bad_name_and_a_bad_spec_are_named_together():
    assert [fault.path for fault in registry.faults(pytorch(name="My_Job", zz=1))] == ["spec.zz", "metadata.name"]
    assert [fault.path for fault in registry.faults(pytorch(replica(), replica(), name="My_Job"))] == [
        "spec.replicaSpecs[1]",
        "metadata.name",
    ]


def test_claims_are_found_where_they_are_mounted():
    job = generic(replica(template=template(volumes=[SCRATCH, DATA])), replica("ps"))

    assert registry.claims_of(job) == (
        ("spec.replicaSpecs[0].template.spec.volumes[1].persistentVolumeClaim.claimName", "digits"),
    )


def checked(job, *claims):
    (resource,) = [each for each in registry.resources() if each.kind == job["kind"]]
    asked = []

    def lookup(plural, namespace):
        asked.append((plural, namespace))
        return claims

    return said(resource.check(job, lookup) or registry.claim_faults(job, lookup)), asked


def test_a_claim_that_is_there_is_fine():
    assert checked(pytorch(replica(template=template(volumes=[DATA]))), "digits") == (
        [],
        [("persistentvolumeclaims", "default")],
    )


CLAIMS = {
    "misspelled": (("digitz", "other"), 'namespace default has no such claim, did you mean "digitz"?'),
    "unlike any": (("mnist",), "namespace default has no such claim (existing claims: mnist); create it first"),
    "the first": ((), "namespace default has no such claim (existing claims: none); create it first"),
}


@pytest.mark.parametrize(("claims", "hint"), CLAIMS.values(), ids=CLAIMS)
def test_a_missing_claim_is_named(claims, hint):
    faults, _ = checked(pytorch(replica(template=template(volumes=[DATA]))), *claims)

    path = "spec.replicaSpecs[0].template.spec.volumes[0].persistentVolumeClaim.claimName"
    assert faults == [f"{path}: 'digits' is not allowed; {hint}"]


def test_a_server_accepts_a_missing_claim_with_a_warning():
    job = pytorch(replica(template=template(volumes=[DATA])))
    (resource,) = [candidate for candidate in registry.resources() if candidate.kind == job["kind"]]

    assert resource.check(job, lambda _plural, _namespace: ()) == ()
    (warning,) = resource.warn(job, lambda _plural, _namespace: ())
    assert warning.endswith("create it first; it waits until the claim exists")
    assert resource.warn(job, lambda _plural, _namespace: ("digits",)) == ()
    assert resource.warn(job, None) == ()


def test_a_job_without_claims_asks_nobody():
    assert checked(pytorch()) == ([], [])


def test_the_server_hears_of_every_fault():
    faults, _ = checked(pytorch(replica(replicas=0)))

    assert faults == ["spec.replicaSpecs[0].replicas: 0 is not allowed; must be at least 1"]


SERVED = registry.resources()


@pytest.mark.parametrize("resource", [each for each in SERVED if each.group == OWN_GROUP], ids=lambda each: each.kind)
def test_a_kind_of_our_own_is_whole(resource):
    assert resource.api_version == "paceline.dev/v1beta1"
    assert resource.has_status
    assert {"Revision", "Phase", "Age"} <= {column.name for column in resource.columns if not column.priority}
    assert resource.schema_name == f"dev.paceline.v1beta1.{resource.kind}"


@pytest.mark.parametrize("resource", [each for each in SERVED if each.group != OWN_GROUP], ids=lambda each: each.kind)
def test_a_served_kind_is_whole(resource):
    is_job = resource.group == "batch.tensorstack.dev"

    assert resource.api_version == ("batch.tensorstack.dev/v1beta1" if is_job else "tensorstack.dev/v1beta1")
    assert resource.has_status
    opened = [] if is_job else ["URL", "Address"] if resource.kind == "TensorBoard" else ["URL"]
    assert [column.name for column in resource.columns if not column.priority] == ["Phase", *opened, "Age"]
    assert (
        not is_job
        or "runMode.pause.enabled"
        in registry.kind_of({"apiVersion": registry.API_VERSION, "kind": resource.kind}).mutable
    )
    prefix = "dev.tensorstack.batch" if is_job else "dev.tensorstack"
    assert resource.schema_name == f"{prefix}.v1beta1.{resource.kind}"
