"""What a cluster is given so that our kinds live there."""

import json

import pytest

from paceline import __version__
from paceline.cluster.external_controllers import HOME, version_problem
from paceline.cluster.installation.crd_marks import is_newer, is_ours, marked, problems, version_of
from paceline.cluster.installation.installer import WHERE, manifests
from paceline.cluster.installation.manifests import definitions, installation
from paceline.cluster.installation.parts import ACCOUNT
from paceline.cluster.installation.values import check_values
from paceline.errors import Invalid

# What all annotations of an object may hold together; `kubectl apply` keeps the whole object in one.
MOST_BYTES = 256 * 1024


@pytest.mark.parametrize("definition", definitions(), ids=lambda definition: definition["metadata"]["name"])
def test_a_definition_is_small_enough_for_a_plain_apply(definition):
    assert len(json.dumps(definition)) < MOST_BYTES * 0.9


def installed(**values):
    return list(installation(check_values({"image": "image:1", **values})))


def kinds(**values):
    return {(part["kind"], part["metadata"].get("namespace", "")) for part in installed(**values)}


def deployment_of(name, **values):
    (deployment,) = [
        part for part in installed(**values) if (part["kind"], part["metadata"]["name"]) == ("Deployment", name)
    ]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return deployment, container


def test_controllers_of_all_namespaces_live_in_one_of_their_own():
    assert ("ClusterRole", "") in kinds()
    assert {namespace for _, namespace in kinds() if namespace} == {HOME}
    restricted = manifests(check_values({"image": "image:1", "crds": {"install": False}}), "mine")[0]
    assert restricted["kind"] == "Namespace"
    assert restricted["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_controllers_of_some_namespaces_ask_for_nothing_outside_of_them():
    mine = kinds(namespaces=["team-a", "team-b"])
    assert {namespace for kind, namespace in mine if kind in ("Role", "RoleBinding")} == {"team-a", "team-b", HOME}
    # Nodes and the classes of queues are in no namespace.
    assert {kind for kind, namespace in mine if not namespace} == {"ClusterRole", "ClusterRoleBinding"}
    _, container = deployment_of(ACCOUNT, namespaces=["team-a", "team-b"])
    assert "--namespace=team-a,team-b" in container["command"]


def test_a_deployment_runs_two_of_them_as_nobody_in_particular():
    deployment, container = deployment_of(ACCOUNT)
    pod = deployment["spec"]["template"]["spec"]
    assert (deployment["spec"]["replicas"], pod["serviceAccountName"], container["image"]) == (2, ACCOUNT, "image:1")
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]


def test_the_image_of_podtools_is_the_controllers_own_unless_told_otherwise():
    assert "--podtools-image=image:1" in deployment_of(ACCOUNT)[1]["command"]
    command = deployment_of(ACCOUNT, podtools={"image": "other:2", "pullSecrets": ["a", "b"]})[1]["command"]
    assert {"--podtools-image=other:2", "--podtools-pull-secrets=a,b"} <= set(command)


def test_the_console_has_no_token_and_no_permissions():
    deployment, _ = deployment_of("paceline-console")
    pod = deployment["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    subjects = [subject for part in installed() for subject in part.get("subjects", ())]
    assert {subject["name"] for subject in subjects} == {ACCOUNT}
    assert ("Deployment", "paceline-console") not in {
        (part["kind"], part["metadata"]["name"]) for part in installed(console={"enabled": False})
    }


def open_ports(**values):
    policies = [part["spec"] for part in installed(**values) if part["kind"] == "NetworkPolicy"]
    controllers = [spec for spec in policies if "controller" in spec["podSelector"]["matchLabels"].values()]
    return [port["port"] for spec in controllers for rule in spec["ingress"] for port in rule["ports"]]


def test_the_port_of_the_webhook_is_open_only_if_there_is_one():
    served = {"webhook": {"bindAddress": "0.0.0.0:9443"}}
    assert open_ports() == ["http"]
    assert open_ports(**served) == ["http", 9443]
    assert open_ports(**served, networkPolicy=False) == []


def test_every_manifest_can_be_applied():
    everything = manifests(
        check_values({"image": "i:1", "metrics": {"serviceMonitor": True}, "namespaces": ["a"]}), HOME
    )
    for part in (*everything, *installed()):
        assert WHERE[part["kind"]].namespaced == ("namespace" in part["metadata"])


def test_values_are_checked():
    for values, path in (
        ({}, "values.image"),
        ({"image": "i:1", "cosole": {}}, "values.cosole"),
        ({"image": "i:1", "controller": {"replicas": 0}}, "values.controller.replicas"),
        ({"image": "i:1", "namespaces": ["Team A"]}, "values.namespaces[0]"),
    ):
        with pytest.raises(Invalid, match=path.replace("[", r"\[")):
            check_values(values)


def test_definitions_have_the_marks_of_owner_and_version():
    assert all(is_ours(definition) and version_of(definition) == __version__ for definition in definitions())


def test_definitions_of_others_and_newer_ones_are_not_replaced():
    ours = definitions()[0]
    foreign = {**ours, "metadata": {"name": "jobs.example"}}
    newer = marked(ours)
    newer["metadata"]["annotations"]["paceline.dev/version"] = "99.0.0"

    assert list(problems((ours,))) == []
    assert [sentence for sentence in problems((ours, foreign)) if "jobs.example" in sentence]
    assert [sentence for sentence in problems((newer,)) if "99.0.0, which is newer" in sentence]


@pytest.mark.parametrize(
    ("version", "other", "newer"),
    [("0.2.0", "0.1.0", True), ("0.10.0", "0.9.0", True), ("0.1.0", "0.1.0", False), ("0.1.0", "1.0.0", False)],
)
def test_versions_are_compared_by_their_numbers(version, other, newer):
    assert is_newer(version, other) is newer


@pytest.mark.parametrize("version", ["v1.28.15", "v1.20.0", "v1.28.4-eks-1234"])
def test_an_old_kubernetes_is_refused_with_the_reason(version):
    assert "needs 1.29 or newer" in version_problem(version)


@pytest.mark.parametrize("version", ["v1.29.0", "v1.34.4", "v2.0.0", "v1.31.2-gke.1", ""])
def test_a_kubernetes_that_is_new_enough_is_accepted(version):
    assert version_problem(version) == ""
