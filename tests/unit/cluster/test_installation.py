"""What a cluster is given so that our kinds live there."""

import json

import pytest

from paceline.cluster.external_controllers import HOME
from paceline.cluster.install_manifests import ACCOUNT, controller_manifests, definitions

# What all annotations of an object may hold together; `kubectl apply` keeps the whole object in one.
MOST_BYTES = 256 * 1024


@pytest.mark.parametrize("definition", definitions(), ids=lambda each: each["metadata"]["name"])
def test_a_definition_is_small_enough_for_a_plain_apply(definition):
    assert len(json.dumps(definition)) < MOST_BYTES * 0.9


def kinds(namespace):
    return [
        (each["kind"], each["metadata"].get("namespace", "")) for each in controller_manifests("image:1", namespace)
    ]


def test_controllers_of_all_namespaces_live_in_one_of_their_own():
    assert ("Namespace", "") in kinds("")
    assert {where for _, where in kinds("") if where} == {HOME}


def test_controllers_of_one_namespace_ask_for_nothing_outside_of_it():
    assert {where for _, where in kinds("team-a")} == {"team-a"}
    *_, deployment = controller_manifests("image:1", "team-a")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["paceline", "kube", "controller", "--namespace", "team-a"]


def test_a_deployment_runs_two_of_them_as_nobody_in_particular():
    *_, deployment = controller_manifests("image:1")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (deployment["spec"]["replicas"], pod["serviceAccountName"], container["image"]) == (2, ACCOUNT, "image:1")
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
