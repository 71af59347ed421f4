"""What several packages ask about a pod."""

import pytest

from paceline.apimachinery.pods import (
    claims_of,
    container_named,
    container_statuses_of,
    containers_of,
    is_ready,
    is_terminal,
    port_number,
    sidecars_of,
    target_port,
)

POD = {
    "metadata": {"name": "p"},
    "spec": {
        "initContainers": [{"name": "fetch"}, {"name": "proxy", "restartPolicy": "Always"}],
        "containers": [{"name": "main"}],
    },
}


def test_init_containers_come_first():
    assert [container["name"] for container in containers_of(POD)] == ["fetch", "proxy", "main"]


def test_a_container_is_found_by_its_name_whichever_sort_it_is():
    assert container_named(POD, "main") == {"name": "main"}
    assert container_named(POD, "fetch") == {"name": "fetch"}
    assert container_named(POD, "other") is None


@pytest.mark.parametrize(
    "spec", [None, "text", {}, {"containers": "text"}, {"containers": None, "initContainers": [1]}]
)
def test_a_spec_that_was_not_validated_yet_has_no_containers(spec):
    assert containers_of({"spec": spec}) == ()


def test_only_init_containers_that_always_restart_are_sidecars():
    assert sidecars_of(POD) == ("proxy",)
    assert sidecars_of({"metadata": {}}) == ()


def test_statuses_of_init_containers_come_first():
    status = {"containerStatuses": [{"name": "main"}], "initContainerStatuses": [{"name": "fetch"}]}
    assert container_statuses_of({"status": status}) == ({"name": "fetch"}, {"name": "main"})
    assert container_statuses_of({}) == ()


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        (None, False),
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "False"}], False),
        ([{"type": "ContainersReady", "status": "True"}], False),
        ([{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}], True),
    ],
)
def test_a_pod_is_ready_by_its_condition(conditions, ready):
    assert is_ready({"status": {"conditions": conditions}}) is ready


@pytest.mark.parametrize(
    ("phase", "terminal"),
    [(None, False), ("Pending", False), ("Running", False), ("Failed", True), ("Succeeded", True)],
)
def test_a_pod_is_terminal_by_its_phase(phase, terminal):
    assert is_terminal({"status": {"phase": phase}}) is terminal
    assert not is_terminal({})


@pytest.mark.parametrize(("port", "number"), [(80, 80), ("80", 80), ("web", 8080), ("none", None)])
def test_a_port_is_given_by_number_or_name(port, number):
    assert port_number(port, [{"name": "main"}, {"ports": [{"name": "web", "containerPort": 8080}]}]) == number


DNS = [
    {"name": "dns", "containerPort": 53, "protocol": "UDP"},
    {"name": "dns", "containerPort": 5353},
]


@pytest.mark.parametrize(
    ("service_port", "number"),
    [
        ({"port": 80}, 80),
        ({"port": 80, "targetPort": 8080}, 8080),
        ({"port": 53, "targetPort": "dns"}, 5353),
        ({"port": 53, "targetPort": "dns", "protocol": "UDP"}, 53),
        ({"port": 53, "targetPort": "dns", "protocol": "SCTP"}, None),
    ],
)
def test_a_service_port_leads_to_the_container_port_of_its_name_and_protocol(service_port, number):
    assert target_port(service_port, {"spec": {"containers": [{"ports": DNS}]}}) == number


def test_claims_are_referred_to_or_created_with_the_pod():
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "other", "emptyDir": {}},
    ]
    claims = claims_of({"metadata": {"name": "p"}, "spec": {"volumes": volumes}})
    assert [(claim.name, claim.volume, claim.is_ephemeral) for claim in claims] == [
        ("shared", "data", False),
        ("p-scratch", "scratch", True),
    ]
    assert list(claims_of({})) == []
