"""Services reached from outside: at their own port of the external address, at a high port, or not at all."""

import http.client
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.testing.embedded import Embedded, embedded, wait_until
from tests.e2e.support.api_caller import own_loopback
from tests.e2e.support.shell_pods import create, make_pod, shell, show, told

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
# Nobody but this machine reaches it, and no other process of these tests uses it.
HERE = own_loopback()
PORT = 8642


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded("--external-address", HERE) as running:
        for name in ("one", "two"):
            make_server(running, name)
        assert running.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=90s").code == 0
        yield running


def make_server(cluster: Embedded, name: str) -> None:
    """Make a pod that says its name, at its own address: pods may share the machine's network."""
    serve = f"mkdir /tmp/w && cd /tmp/w && echo {name} > who && exec python -m http.server 6006 -b $POD_IP"
    env = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    ready = {"httpGet": {"path": "/who", "port": 6006}, "periodSeconds": 1}
    box = shell(serve, env=env, readinessProbe=ready, ports=[{"name": "http", "containerPort": 6006}])
    make_pod(cluster, name, box, metadata={"labels": {"app": "web", "who": name}})


@pytest.fixture(autouse=True)
def _cleared(cluster: Embedded) -> Iterator[None]:
    yield
    assert cluster.kubectl("delete", "services", "-l", "of=a-test").code == 0
    wait_until("nothing listens any more", lambda: not listening(HERE))


def service(name: str, kind: str, port: int = PORT, **spec: Any) -> dict[str, Any]:
    ports = [{"port": port, "targetPort": "http"}]
    body = {"type": kind, "selector": {"app": "web"}, "ports": ports, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"of": "a-test"}}, "spec": body}


def ask(port: int, *, address: str = HERE) -> str:
    """Give what is answered at a port; nothing when nobody answers."""
    line = http.client.HTTPConnection(address, port, timeout=10)
    try:
        line.request("GET", "/who")
        return line.getresponse().read().decode().strip()
    except OSError:
        return ""
    finally:
        line.close()


def high_port(cluster: Embedded, name: str) -> int:
    return int(show(cluster, "service", name)["spec"]["ports"][0]["nodePort"])


def ways_in(cluster: Embedded, name: str) -> list[str]:
    found = show(cluster, "service", name)["status"]["loadBalancer"].get("ingress") or ()
    return [each["ip"] for each in found]


def listening(address: str) -> set[int]:
    """Give the ports of an address at which somebody listens, as the kernel tells them."""
    shown = "".join(f"{int(part):02X}" for part in reversed(address.split(".")))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[1].startswith(shown)}


def test_h42_a_load_balancer_a_high_port_and_neither(cluster: Embedded) -> None:
    create(cluster, service("far", "LoadBalancer"), service("high", "NodePort"), service("near", "ClusterIP"))

    wait_until("the load balancer is reached", lambda: ways_in(cluster, "far") == [HERE])
    assert wait_until("both pods answer", lambda: {ask(PORT) for _ in range(20)} >= {"one", "two"})
    assert ask(high_port(cluster, "far")) in {"one", "two"}
    assert wait_until("the high port answers", lambda: ask(high_port(cluster, "high"))) in {"one", "two"}
    shown = cluster.kubectl("get", "services").out
    row = next(line.split() for line in shown.splitlines() if line.startswith("far "))
    assert (row[1], *row[3:5]) == ("LoadBalancer", HERE, f"{PORT}:{high_port(cluster, 'far')}/TCP")
    assert "nodePort" not in show(cluster, "service", "near")["spec"]["ports"][0]
    assert ways_in(cluster, "high") == ways_in(cluster, "near") == []
    wanted = {PORT, high_port(cluster, "far"), high_port(cluster, "high")}
    assert listening(HERE) == wanted
    assert ask(PORT, address=own_loopback(2)) == ""


def test_h42_the_type_may_change_and_only_ready_pods_are_led_to(cluster: Embedded) -> None:
    create(cluster, service("turns", "ClusterIP", selector={"app": "web", "who": "one"}))
    for kind, is_far in (("LoadBalancer", True), ("NodePort", False), ("LoadBalancer", True)):
        patch = f'{{"spec": {{"type": "{kind}"}}}}'
        assert cluster.kubectl("patch", "service", "turns", "-p", patch).code == 0
        wait_until(f"it is a {kind}", lambda is_far=is_far: (PORT in listening(HERE)) is is_far)
        assert wait_until("it answers", lambda: ask(high_port(cluster, "turns"))) == "one"
    assert cluster.kubectl("patch", "service", "turns", "-p", '{"spec": {"selector": {"who": "nobody"}}}').code == 0
    wait_until("nobody answers", lambda: ask(PORT) == "")
    assert cluster.kubectl("patch", "service", "turns", "-p", '{"spec": {"type": "ClusterIP"}}').code == 0
    wait_until("nothing listens", lambda: not listening(HERE))
    assert ways_in(cluster, "turns") == []


def test_a_port_that_is_taken_is_told_and_had_once_it_is_free(cluster: Embedded) -> None:
    with socket.create_server((HERE, PORT)):
        create(cluster, service("late", "LoadBalancer"))
        said = told(cluster, "late", "PortNotOpen")
        assert f"port {PORT} of {HERE} cannot be opened: another program listens on it" in said
        assert f"until then use port {high_port(cluster, 'late')} of {HERE}" in said
        assert ways_in(cluster, "late") == []
        assert ask(high_port(cluster, "late")) in {"one", "two"}
        assert "<pending>" in cluster.kubectl("get", "service", "late").out
    wait_until("it has the port", lambda: ways_in(cluster, "late") == [HERE])
    assert ask(PORT) in {"one", "two"}


def test_ports_come_back_after_kills_and_go_with_the_cluster(cluster: Embedded) -> None:
    create(cluster, service("steady", "LoadBalancer"))
    wait_until("it answers", lambda: ask(PORT))
    wanted = {PORT, high_port(cluster, "steady")}

    agent = cluster.agent_pid
    assert agent is not None
    os.kill(agent, signal.SIGKILL)
    wait_until("there is another agent", lambda: cluster.agent_pid not in (None, agent))
    wait_until("it answers again", lambda: ask(PORT))
    cluster.kill_control_plane()
    wait_until("nobody listens without a cluster", lambda: not listening(HERE))
    assert cluster.paceline("up", "-d").code == 0
    wait_until("it answers once more", lambda: ask(PORT))
    assert listening(HERE) == wanted
    assert ways_in(cluster, "steady") == [HERE]

    assert cluster.paceline("down", "--keep-jobs").code == 0
    assert not listening(HERE)
    assert cluster.paceline("up", "-d").code == 0
    wait_until("the address is remembered", lambda: ask(PORT))


def test_an_address_that_cannot_be_is_refused_before_anything_starts(cluster: Embedded) -> None:
    for text, hint in (
        ("0.0.0.0", "specify one address"),
        ("192.0.2.1", "no such address"),
        ("here", "write an address"),
    ):
        refused = cluster.paceline("up", "-d", "--external-address", text)
        assert refused.code != 0
        assert hint in refused.err


def test_h42_on_the_machines_network_a_caller_is_led_to_a_pods_own_program_and_to_no_other() -> None:
    address = own_loopback(1)
    with (
        embedded("--network", "host", "--external-address", address) as cluster,
        socket.create_server(("", 0)) as other,
    ):
        make_server(cluster, "one")
        stranger = service("stranger", "LoadBalancer", PORT + 1)
        # Listens at all addresses of the machine, so at that of the pod too, and is none of its programs.
        stranger["spec"]["ports"][0]["targetPort"] = other.getsockname()[1]
        create(cluster, service("far", "LoadBalancer"), stranger)

        assert wait_until("the pod answers", lambda: ask(PORT, address=address)) == "one"
        assert ways_in(cluster, "stranger") == [address]
        with pytest.raises(ConnectionResetError), socket.create_connection((address, PORT + 1), 10) as line:
            line.recv(1)
