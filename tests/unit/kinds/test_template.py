"""What would keep a pod from being made or from starting is said before it is tried."""

import pytest

from paceline.kinds import registry
from paceline.kinds.spec.pod_template import check_template
from tests.unit.kinds.manifests import pytorch, replica, said, template

DATA = {"name": "data", "persistentVolumeClaim": {"claimName": "digits"}}


def asks(**resources):
    return template(resources=resources)


def with_containers(*containers):
    return {"spec": {"containers": list(containers)}}


FAULTS = {
    "an empty template": ({}, "t.spec: None is not allowed; the field is required; it must be an object"),
    "no containers": ({"spec": {"containers": []}}, "t.spec.containers: [] is not allowed; must have at least 1 entry"),
    "a container without image": (
        with_containers({"name": "a"}),
        "t.spec.containers[0].image: None is not allowed; the field is required; it must be a string",
    ),
    "a command that is no list": (
        template(command="python train.py"),
        "t.spec.containers[0].command: 'python train.py' is not allowed; must be a list",
    ),
    "a number in the environment": (
        template(env=[{"name": "EPOCHS", "value": 3}]),
        "t.spec.containers[0].env[0].value: 3 is not allowed; must be a string",
    ),
    "two containers of one name": (
        with_containers({"name": "a", "image": "x"}, {"name": "a", "image": "x"}),
        "t.spec.containers[1].name: 'a' is not allowed; must be unique",
    ),
    "two volumes of one name": (
        template(volumes=[DATA, DATA]),
        "t.spec.volumes[1].name: 'data' is not allowed; must be unique",
    ),
    "a mount of a volume misspelled": (
        template(volumes=[DATA], volumeMounts=[{"name": "dta", "mountPath": "/mnt"}]),
        (
            "t.spec.containers[0].volumeMounts[0].name: 'dta' is not allowed; "
            'the pod has no volume of this name, did you mean "data"?'
        ),
    ),
    "a mount of no volume": (
        template(volumeMounts=[{"name": "data", "mountPath": "/mnt"}]),
        (
            "t.spec.containers[0].volumeMounts[0].name: 'data' is not allowed; "
            "the pod has no volume of this name; declare it under volumes"
        ),
    ),
    "a request above its limit": (
        asks(requests={"memory": "2Gi"}, limits={"memory": "1Gi"}),
        (
            "t.spec.containers[0].resources.requests.memory: '2Gi' is not allowed; "
            "must not exceed the limit, 1Gi; lower the request or raise the limit"
        ),
    ),
    "an amount that is none": (
        asks(limits={"memory": "2 GB"}),
        "t.spec.containers[0].resources.limits.memory: '2 GB' is not allowed; must be a number with an optional unit",
    ),
    "less than nothing": (
        asks(limits={"cpu": -1}),
        "t.spec.containers[0].resources.limits.cpu: -1 is not allowed; must be at least 0",
    ),
    "half a device": (
        asks(limits={"nvidia.com/gpu": "0.5"}),
        (
            "t.spec.containers[0].resources.limits.nvidia.com/gpu: '0.5' is not allowed; "
            "must be a whole number, because it counts devices"
        ),
    ),
    "devices in requests alone": (
        asks(requests={"nvidia.com/gpu": 1}),
        "t.spec.containers[0].resources.requests.nvidia.com/gpu: 1 is not allowed; set the device in limits",
    ),
    "fewer devices than the limit": (
        asks(requests={"nvidia.com/gpu": 1}, limits={"nvidia.com/gpu": 2}),
        (
            "t.spec.containers[0].resources.requests.nvidia.com/gpu: 1 is not allowed; "
            "the request of a device must equal its limit, 2"
        ),
    ),
}


@pytest.mark.parametrize(("written", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_template_is_refused_for(written, fault):
    (only,) = said(check_template(written, "t"))

    assert only.startswith(fault)


FINE = {
    "requests up to the limits": asks(requests={"cpu": 4, "memory": "1Gi"}, limits={"cpu": "4000m", "memory": "2Gi"}),
    "requests without limits": asks(requests={"cpu": 0.5}),
    "devices in limits alone": asks(limits={"nvidia.com/gpu": 1}),
    "devices in both": asks(limits={"nvidia.com/gpu": 1}, requests={"nvidia.com/gpu": "1"}),
    "resources that Kubernetes itself knows": asks(requests={"scheduling.kubernetes.io/foo": 1}),
    "a mount of a volume": template(volumes=[DATA], volumeMounts=[{"name": "data", "mountPath": "/mnt"}]),
    "fields that only the API server knows": template(livenessProbe={"exec": {"command": ["true"]}}),
    "labels": {**template(), "metadata": {"labels": {"a": "b"}}},
}


@pytest.mark.parametrize("written", FINE.values(), ids=FINE)
def test_a_template_may_have(written):
    assert check_template(written, "t") == ()


def test_init_containers_are_looked_at_too():
    written = template()
    written["spec"]["initContainers"] = [{"name": "a", "image": "x", "volumeMounts": [{"name": "b", "mountPath": "/"}]}]

    assert [fault.path for fault in check_template(written, "t")] == ["t.spec.initContainers[0].volumeMounts[0].name"]


def test_an_amount_that_is_none_is_said_once():
    faults = check_template(asks(requests={"cpu": "x"}, limits={"cpu": 1}), "t")

    assert [fault.path for fault in faults] == ["t.spec.containers[0].resources.requests.cpu"]


def test_the_path_is_that_of_the_whole_object():
    job = pytorch(replica(), replica("ps", template={"spec": {"containers": []}}))

    assert [fault.path for fault in registry.faults(job)] == ["spec.replicaSpecs[1].template.spec.containers"]
