"""Which fields of a job never change, and who says so: the embedded API server and the rules of the CRDs."""

from copy import deepcopy

import pytest

from paceline.apimachinery.builtin.registry import builtin_components
from paceline.kinds import registry
from paceline.kinds.schema import spec_schema
from tests.unit.kinds.manifests import generic, pytorch, replica

RESOURCES = {resource.kind: resource for resource in registry.resources()}
CRDS = {
    definition["spec"]["names"]["kind"]: definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for definition in registry.crds(builtin_components())
}


def changed(job, **spec):
    new = deepcopy(job)
    new["spec"] |= spec
    return [fault.path for fault in RESOURCES[job["kind"]].check_change(new, job)]


def test_what_may_change_at_any_time_is_not_reported():
    job = pytorch(elastic={"enabled": True, "minReplicas": 1, "maxReplicas": 4})
    elastic = {**job["spec"]["elastic"], "expectedReplicas": 3}
    pause = {"pause": {"enabled": True}}

    assert changed(job, suspend=True, runMode=pause, elastic=elastic, runPolicy={"ttlSecondsAfterFinished": 5}) == []


def test_a_change_is_reported_at_the_entry_of_its_replica_type():
    job = pytorch(replica(), replica(type="master"))
    first, second = job["spec"]["replicaSpecs"]

    assert changed(job, replicaSpecs=[{**first, "replicas": 7}, second]) == ["spec.replicaSpecs[0].replicas"]
    assert changed(job, replicaSpecs=[first, {**second, "restartPolicy": "Never"}]) == [
        "spec.replicaSpecs[1].restartPolicy"
    ]
    image = deepcopy(second)
    image["template"]["spec"]["containers"][0]["image"] = "other"
    assert changed(job, replicaSpecs=[first, image]) == ["spec.replicaSpecs[1].template"]


def test_types_that_are_added_or_in_another_order_are_a_change_of_the_list():
    job = pytorch(replica(), replica(type="master"))
    first, second = job["spec"]["replicaSpecs"]

    assert changed(job, replicaSpecs=[second, first]) == ["spec.replicaSpecs"]
    assert changed(job, replicaSpecs=[first]) == ["spec.replicaSpecs"]


def test_beside_a_mutable_field_each_field_is_compared():
    job = pytorch(runMode={"pause": {"enabled": True}}, runPolicy={"backoffLimit": 1})
    paths = changed(
        job,
        runMode={"debug": {"enabled": True}, "pause": {"resumeSpecs": [{"type": "worker"}]}},
        runPolicy={"backoffLimit": 2, "ttlSecondsAfterFinished": 1},
    )

    assert paths == ["spec.runMode.debug", "spec.runMode.pause.resumeSpecs", "spec.runPolicy.backoffLimit"]


@pytest.mark.parametrize("kind", registry.KINDS, ids=lambda kind: kind.kind)
def test_a_crd_freezes_every_field_that_is_not_mutable(kind):
    spec = CRDS[kind.kind]["properties"]["spec"]
    frozen = {rule["fieldPath"][1:] for rule in spec["x-kubernetes-validations"] if "oldSelf" in rule["rule"]}
    mutable = {path.split(".")[0] for path in kind.mutable}

    assert frozen.isdisjoint(kind.mutable)
    assert spec_schema(kind.spec)["properties"].keys() - mutable <= frozen
    for rule in spec["x-kubernetes-validations"]:
        if "oldSelf" in rule["rule"]:
            assert rule["message"].startswith("field is immutable; only spec.runMode.pause.enabled")


def test_a_field_of_several_types_is_compared_with_its_whole_entry():
    rules = CRDS["GenericJob"]["properties"]["spec"]["properties"]["replicaSpecs"]["items"]["x-kubernetes-validations"]
    (rule,) = [rule for rule in rules if rule["fieldPath"] == ".restartPolicy"]

    assert rule["rule"].startswith("self == oldSelf || ")
    job = generic()
    (entry,) = job["spec"]["replicaSpecs"]
    assert changed(job, replicaSpecs=[{**entry, "restartPolicy": {"policy": "Never"}}]) == [
        "spec.replicaSpecs[0].restartPolicy"
    ]
