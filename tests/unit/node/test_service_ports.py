"""Which ports of the machine lead to which services, and whom a caller is led to."""

import pytest

from paceline.node.network.service_ports import assign_ports, backend_order, backends_of, is_source_allowed

HERE = "192.0.2.9"


def service(name, *ports, kind="LoadBalancer", made=1, told="", **spec):
    """A service whose ports are (own number, high number) or whole ports."""
    listed = [port if isinstance(port, dict) else {"port": port[0], "nodePort": port[1]} for port in ports]
    ways = {"ingress": [{"ip": told, "ipMode": "VIP"}]} if told else {}
    return {
        "metadata": {"name": name, "namespace": "team", "creationTimestamp": f"2030-01-0{made}T00:00:00Z"},
        "spec": {"type": kind, "selector": {"app": "web"}, "ports": listed, **spec},
        "status": {"loadBalancer": ways},
    }


def ports_of(layout):
    return {port: f"{entrance.service[1]}:{entrance.number}" for port, entrance in layout.ports.items()}


LAYOUTS = {
    "a high port": ([service("a", (80, 30_000), kind="NodePort")], {30_000: "a:80"}, {}),
    "its own numbers too": (
        [service("a", (80, 30_000), (81, 30_001))],
        {30_000: "a:80", 30_001: "a:81", 80: "a:80", 81: "a:81"},
        {},
    ),
    "no high ports, as its author wants": ([service("a", {"port": 80})], {80: "a:80"}, {}),
    "from inside only": ([service("a", {"port": 80}, kind="ClusterIP")], {}, {}),
    "another name": ([service("a", {"port": 80}, kind="ExternalName")], {}, {}),
    "nobody it could lead to": ([service("a", (80, 30_000), selector=None)], {}, {}),
    "balanced by others": ([service("a", (80, 30_000), loadBalancerClass="x/y")], {30_000: "a:80"}, {}),
    "the older one has the port": (
        [service("new", (80, 30_000), made=2), service("old", (80, 30_001))],
        {30_000: "new:80", 30_001: "old:80", 80: "old:80"},
        {"new": "port 80 of 192.0.2.9 is used by service team/old; this service gets it when that one is deleted"},
    ),
    "who was told to have the port keeps it": (
        [service("new", (80, 30_000), made=2, told=HERE), service("old", (80, 30_001))],
        {30_000: "new:80", 30_001: "old:80", 80: "new:80"},
        {"old": "port 80 of 192.0.2.9 is used by service team/new; this service gets it when that one is deleted"},
    ),
    "who was told of another address has no more right": (
        [service("new", (80, 30_000), made=2, told="192.0.2.1"), service("old", (80, 30_001))],
        {30_000: "new:80", 30_001: "old:80", 80: "old:80"},
        {"new": "port 80 of 192.0.2.9 is used by service team/old; this service gets it when that one is deleted"},
    ),
    "all of its numbers or none": (
        [service("a", (80, 30_000)), service("b", (79, 30_001), (80, 30_002), made=2)],
        {30_000: "a:80", 80: "a:80", 30_001: "b:79", 30_002: "b:80"},
        {"b": "port 80 of 192.0.2.9 is used by service team/a; this service gets it when that one is deleted"},
    ),
    "a high port before a number of one's own": (
        [service("a", (30_001, 30_000)), service("b", (80, 30_001), kind="NodePort", made=2)],
        {30_000: "a:30001", 30_001: "b:80"},
        {"a": "port 30001 of 192.0.2.9 is used by service team/b; this service gets it when that one is deleted"},
    ),
    "not TCP": (
        [service("a", {"port": 53, "nodePort": 30_000, "protocol": "UDP", "name": "dns"}, (80, 30_001))],
        {30_001: "a:80"},
        {"a": "port 53/UDP is not supported: only TCP is"},
    ),
    "not TCP at a high port": (
        [service("a", {"port": 53, "nodePort": 30_000, "protocol": "UDP"}, kind="NodePort")],
        {},
        {"a": "port 53/UDP is not supported: only TCP is"},
    ),
}


@pytest.mark.parametrize(("services", "ports", "refused"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_service_has(services, ports, refused):
    layout = assign_ports(services, HERE)

    assert ports_of(layout) == ports
    assert {key[1]: why for key, why in layout.refused.items()} == refused


def test_what_listens_does_not_depend_on_the_order_in_which_services_are_heard_of():
    services = [service(name, (80, 30_000 + index), made=3 - index) for index, name in enumerate("abc")]

    assert assign_ports(services, HERE) == assign_ports(services[::-1], HERE)
    assert ports_of(assign_ports(services, HERE))[80] == "c:80"


def pod(name, *, phase="Running", ready="True", namespace="team", app="web", **metadata):
    named = [{"name": "http", "containerPort": 6006}]
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app, "more": "yes"}, **metadata},
        "spec": {"containers": [{"name": "main", "ports": named}]},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
    }


PODS = {
    "one that is ready": (pod("p"), True),
    "one that is not ready": (pod("p", ready="False"), False),
    "one that has not begun": (pod("p", phase="Pending"), False),
    "one that has ended": (pod("p", phase="Succeeded"), False),
    "one that is going": (pod("p", deletionTimestamp="2030-01-01T00:00:00Z"), False),
    "one of another application": (pod("p", app="other"), False),
    "one of another namespace": (pod("p", namespace="other"), False),
}


@pytest.mark.parametrize(("there", "is_led_to"), PODS.values(), ids=PODS)
def test_a_caller_is_led_to(there, is_led_to):
    found = backends_of(service("a", {"port": 80, "targetPort": 8080}), 80, [there])

    assert found == (((there, 8080),) if is_led_to else ())


def test_pods_that_are_not_ready_are_led_to_if_the_author_wants_it():
    found = service("a", {"port": 80}, publishNotReadyAddresses=True)

    assert [name["metadata"]["name"] for name, _ in backends_of(found, 80, [pod("p", ready="False")])] == ["p"]


TARGETS = {"http": 6006, "other": None, 8080: 8080, None: 80}


@pytest.mark.parametrize(("target", "number"), TARGETS.items())
def test_the_port_of_a_pod_is(target, number):
    port = {"port": 80, **({"targetPort": target} if target else {})}

    found = backends_of(service("a", port), 80, [pod("p")])

    assert [each for _, each in found] == ([number] if number else [])
    assert backends_of(service("a", port), 81, [pod("p")]) == ()


def test_callers_are_spread_and_each_has_a_second_choice():
    found = tuple((pod(name), 80) for name in "abc")
    names = [
        [each["metadata"]["name"] for each, _ in backend_order(service("a"), "::1", found, dice)] for dice in (0, 0.99)
    ]

    assert names == [["a", "b", "c"], ["c", "a", "b"]]
    assert backend_order(service("a"), "::1", (), 0.5) == []


def test_a_caller_comes_back_to_the_same_pod_if_the_author_wants_it():
    found = tuple((pod(name), 80) for name in "abc")
    sticky = service("a", sessionAffinity="ClientIP")
    peers = [f"192.0.2.{number}" for number in range(20)]
    first = [{str(backend_order(sticky, peer, found, dice)) for dice in (0, 0.5, 0.9)} for peer in peers]

    assert {len(each) for each in first} == {1}
    assert len(set.union(*first)) == 3


RANGES = {
    "anybody": ([], "203.0.113.7", True),
    "a network": (["10.0.0.0/8", "192.0.2.0/24"], "192.0.2.77", True),
    "a stranger": (["10.0.0.0/8"], "192.0.2.77", False),
}


@pytest.mark.parametrize(("ranges", "peer", "may"), RANGES.values(), ids=RANGES)
def test_the_author_may_say_who_comes_in(ranges, peer, may):
    found = service("a", (80, 30_000), loadBalancerSourceRanges=ranges)

    assert is_source_allowed(found, peer, is_node_port=False) is may
    assert is_source_allowed(found, peer, is_node_port=True) is may
    assert is_source_allowed({**found, "spec": {**found["spec"], "type": "NodePort"}}, peer, is_node_port=True)
