"""Every pod has a network of its own on a bridge, and nothing of it stays behind."""

import asyncio
import contextlib
import fcntl
import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any, cast

import pytest

from paceline.host import nftables
from paceline.host.netlink import NetlinkSocket, add_address, attribute, delete_link, links, make_bridge, set_up
from paceline.host.netlink import text as netlink_text
from paceline.host.netns import RUN, NetworkNamespaces, hardware, unmount_netns, veths
from paceline.host.pod_bridge import bridge_name, missing_rights
from paceline.testing.embedded import Embedded, embedded, folder_for_cluster, wait_until
from tests.e2e.support.manifests import pod, pytorch, text

pytestmark = pytest.mark.skipif(bool(missing_rights()), reason=f"no networks for pods: {missing_rights()}")

PORT = 2222
# On the machine's own network, where another test sees that nobody is at the other one.
HOST_PORT = 2223
# Answers with its own hostname, on all addresses, as TensorFlow's servers listen.
SERVE = f"""
import http.server, socket
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{{socket.gethostname()}} {{self.client_address[0]}}".encode())
server = http.server.ThreadingHTTPServer(("0.0.0.0", {PORT}), Answer)
print("up", flush=True)
server.serve_forever()
"""
SERVE_ON_HOST = SERVE.replace(str(PORT), str(HOST_PORT))
READ = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=10).read().decode())"


def server(name: str, script: str = SERVE, **spec: object) -> dict[str, object]:
    made = pod(name, {"name": "main", "command": ["python", "-c", script]})
    made["spec"] |= spec
    return made


def with_volume(made: dict[str, object], volume: dict[str, object]) -> dict[str, object]:
    spec = cast("dict[str, Any]", made["spec"])
    spec["containers"][0]["volumeMounts"] = [{"name": volume["name"], "mountPath": "/volume"}]
    return {**made, "spec": {**spec, "volumes": [volume]}}


def create(cluster: Embedded, *objects: dict[str, object]) -> None:
    made = cluster.kubectl("create", "-f", "-", stdin=text(*objects))
    assert made.code == 0, made.err


def wait_up(cluster: Embedded, *names: str) -> None:
    for name in names:
        wait_until(f"{name} serves", lambda name=name: cluster.kubectl("logs", name).out == "up\n")


def status(cluster: Embedded, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(cluster.kubectl("get", "pod", name, "-o", "json").out)["status"]
    return found


def read(cluster: Embedded, name: str, url: str) -> str:
    done = cluster.kubectl("exec", name, "--", "python", "-c", READ, url)
    return done.out.strip() or done.err


def traces(home: Path) -> list[str]:
    """Find what of a cluster's network is there."""
    name = bridge_name(home)
    found = [str(each) for each in RUN.glob(f"{name}*")]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found += [line for line in mounts if name in line or f"{home.name}/agent" in line]
    with NetlinkSocket() as line:
        found += [each.name for each in (*links(line), *veths(line, name)) if each.name == name]
    return found


def networks() -> list[Path]:
    """Give the networks that this machine has for pods."""
    return [each for each in RUN.glob("*") if each.is_dir()]


def has_rules(home: Path) -> bool:
    """Tell whether a cluster's table is in the packet filter, by taking it away."""
    table = attribute(nftables.TABLE_NAME, netlink_text(bridge_name(home)))
    with nftables.open_socket() as rules:
        try:
            nftables._execute(rules, "a table", [(nftables.DELETE_TABLE, 0, table)])
        except FileNotFoundError:
            return False
    return True


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded("--network", "own") as running:
        yield running


@pytest.fixture(scope="module")
def pair(cluster: Embedded) -> Embedded:
    """Two pods on one port, peers of one another by name."""
    create(
        cluster,
        server("one", hostname="one", subdomain="peers"),
        server("two", hostname="two", subdomain="peers"),
    )
    wait_up(cluster, "one", "two")
    return cluster


def test_two_pods_listen_on_the_same_port_each_at_an_address_of_its_own(pair: Embedded) -> None:
    addresses = {name: status(pair, name)["podIP"] for name in ("one", "two")}

    for name, address in addresses.items():
        assert read(pair, "one", f"http://{address}:{PORT}/").split()[0] == name
    assert len(set(addresses.values())) == 2


def test_peers_find_each_other_by_name_and_see_who_calls(pair: Embedded) -> None:
    """H-58"""
    answer = read(pair, "two", f"http://one.peers.default.svc.cluster.local:{PORT}/")

    assert answer == f"one {status(pair, 'two')['podIP']}"
    assert read(pair, "one", f"http://one:{PORT}/") == f"one {status(pair, 'one')['podIP']}"
    assert read(pair, "one", f"http://localhost:{PORT}/") == "one 127.0.0.1"


@pytest.mark.usefixtures("pair")
def test_nothing_of_a_pod_listens_on_the_machines_own_addresses() -> None:
    for address in ("127.0.0.1", own_address()):
        with socket.socket() as caller:
            caller.settimeout(5)
            assert caller.connect_ex((address, PORT)) != 0


def test_a_pod_gives_the_machine_no_new_address(pair: Embedded) -> None:
    # Browsers cancel their requests whenever the machine gets one.
    with NetlinkSocket() as sock:
        ours = {bridge_name(pair.home), *(veth.name for veth in veths(sock, bridge_name(pair.home)))}

    assert len(ours) > 2
    addresses = Path("/proc/net/if_inet6").read_text().splitlines()
    assert not [line for line in addresses if line.split()[-1] in ours]


def test_the_api_servers_proxy_reaches_a_pod(pair: Embedded) -> None:
    said = pair.kubectl("get", "--raw", f"/api/v1/namespaces/default/pods/two:{PORT}/proxy/")
    nobody = pair.kubectl("get", "--raw", f"/api/v1/namespaces/default/pods/two:{PORT + 1}/proxy/")

    assert said.out.split()[0] == "two"
    assert "connection refused" in nobody.err.lower()


def test_the_node_says_that_pods_have_their_own_network(cluster: Embedded) -> None:
    node = json.loads(cluster.kubectl("get", "nodes", "-o", "json").out)["items"][0]
    said = next(each for each in node["status"]["conditions"] if each["type"] == "PodNetwork")

    assert (said["status"], said["reason"]) == ("True", "OwnNetwork")
    assert bridge_name(cluster.home) in said["message"]


def own_address() -> str:
    """Give the machine's own address: the one it would call an outsider from."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
        caller.connect(("192.0.2.1", 9))
        found: str = caller.getsockname()[0]
    return found


@pytest.fixture
def outside() -> Iterator[tuple[str, list[str]]]:
    """A server at the machine's own address, and who called it."""
    callers: list[str] = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            callers.append(self.client_address[0])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"outside")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer((own_address(), 0), Answer) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://{own_address()}:{listening.server_port}/", callers
        listening.shutdown()
        thread.join()


def test_a_pod_reaches_the_machine_it_runs_on(pair: Embedded, outside: tuple[str, list[str]]) -> None:
    url, _ = outside

    assert read(pair, "one", url) == "outside"


# Goes into the network of a file, as a shim does for a pod.
JOIN = "import ctypes, os, sys; ctypes.CDLL(None).setns(os.open(sys.argv[1], os.O_RDONLY), 0x40000000)"
ELSEWHERE = IPv4Network("198.51.100.0/24")


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Wait until no other test of this machine is here."""
    file = os.open(RUN, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A machine behind this one: a server in a network of its own, on another bridge than the pods'."""
    name, gateway = "plelsewhere", ELSEWHERE.network_address + 1
    address = str(gateway + 1)
    with alone(), NetlinkSocket() as line:
        make_bridge(line, name, hardware=hardware(gateway), mtu=1500)
        index = next(each.index for each in links(line) if each.name == name)
        add_address(line, index, IPv4Interface((int(gateway), ELSEWHERE.prefixlen)))
        set_up(line, index=index)
        file = asyncio.run(NetworkNamespaces(bridge=name, subnet=ELSEWHERE, mtu=1500).make("elsewhere", address))
        with subprocess.Popen([sys.executable, "-c", JOIN + SERVE, file], stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"up\n"
            yield address
            server.kill()
        unmount_netns(Path(file))
        delete_link(line, name)
        (RUN / name).rmdir()


def test_a_pod_reaches_other_machines_under_this_ones_address(pair: Embedded, elsewhere: str) -> None:
    answer = read(pair, "one", f"http://{elsewhere}:{PORT}/")

    assert answer.split()[1] == str(ELSEWHERE.network_address + 1)


def test_no_other_machine_reaches_a_pod(pair: Embedded, elsewhere: str) -> None:
    call = f"import socket, sys; socket.create_connection((sys.argv[2], {PORT}), 2)"
    file, pod_address = str(RUN / "plelsewhere" / "elsewhere"), str(status(pair, "one")["podIP"])
    command = [sys.executable, "-c", f"{JOIN}; {call}", file]

    assert subprocess.run([*command, elsewhere], capture_output=True, check=False).returncode == 0
    assert subprocess.run([*command, pod_address], capture_output=True, check=False).returncode != 0


def test_no_other_machine_reaches_the_api_server_at_its_address_among_the_pods(pair: Embedded, elsewhere: str) -> None:
    place = json.loads(pair.kubectl("get", "endpointslice", "kubernetes", "-o", "json").out)
    address, port = place["endpoints"][0]["addresses"][0], str(place["ports"][0]["port"])
    call = "import socket, sys; socket.create_connection((sys.argv[-2], int(sys.argv[-1])), 2)"
    file = str(RUN / "plelsewhere" / "elsewhere")
    outside = [sys.executable, "-c", f"{JOIN}; {call}", file]

    assert pair.kubectl("exec", "one", "--", "python", "-c", call, address, port).code == 0
    assert subprocess.run([sys.executable, "-c", call, address, port], check=False).returncode == 0
    assert subprocess.run([*outside, elsewhere, str(PORT)], capture_output=True, check=False).returncode == 0
    assert subprocess.run([*outside, address, port], capture_output=True, check=False).returncode != 0


def test_a_pod_may_ask_for_the_machines_own_network(pair: Embedded) -> None:
    show = "import socket; print(sorted(name for _, name in socket.if_nameindex()))"
    create(pair, server("host", SERVE_ON_HOST, hostNetwork=True, hostname="host", subdomain="peers"))
    wait_up(pair, "host")

    seen = pair.kubectl("exec", "host", "--", "python", "-c", show).out
    assert bridge_name(pair.home) in seen
    assert read(pair, "two", f"http://host.peers:{HOST_PORT}/").split()[0] == "host"
    assert pair.kubectl("delete", "pod", "host", "--grace-period=1").code == 0


def test_a_container_that_comes_again_and_its_sidecar_share_one_network(cluster: Embedded) -> None:
    once = (
        "import os, sys, socket; s = socket.create_connection(('127.0.0.1', 2222), 10); print('reached'); sys.exit(1)"
    )
    two = pod("shared", {"name": "server", "command": ["python", "-c", SERVE]})
    failing = {
        "name": "caller",
        "image": "python:3.11",
        "command": ["python", "-c", f"import time; time.sleep(1); {once}"],
    }
    two["spec"]["containers"].append(failing)
    two["spec"]["restartPolicy"] = "Always"
    create(cluster, two)

    def has_restarted() -> bool:
        told = cluster.kubectl("get", "pod", "shared", "-o", "jsonpath={.status.containerStatuses[*].restartCount}").out
        return any(each not in ("", "0") for each in told.split())

    wait_until("the caller comes again", has_restarted)
    wait_until(
        "it reaches the server again", lambda: cluster.kubectl("logs", "shared", "-c", "caller").out == "reached\n"
    )
    assert cluster.kubectl("delete", "pod", "shared", "--grace-period=1").code == 0


def test_two_jobs_use_the_usual_port_at_the_same_time(cluster: Embedded, meet_script: str) -> None:
    """H-37"""
    names = ("left", "right")
    create(cluster, *(pytorch(name, command=["python", "-c", meet_script, name]) for name in names))

    for name in names:
        waited = cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pj/{name}", "--timeout=60s")
        assert waited.code == 0, cluster.kubectl("get", "pj", name, "-o", "yaml").out
        job = json.loads(cluster.kubectl("get", "pj", name, "-o", "json").out)
        assert job["status"]["ports"] == {"master": 29500}


def test_pods_and_their_networks_outlive_a_killed_agent_and_a_killed_control_process(pair: Embedded) -> None:
    address = status(pair, "two")["podIP"]
    before = handle(pair, "two")
    for find in (lambda: pair.agent_pid, lambda: pair.control_pid):
        pid = find()
        assert pid
        os.kill(pid, signal.SIGKILL)
        wait_until("it is gone", lambda pid=pid, find=find: find() != pid)
        assert read_from_here(str(address)).split()[0] == "two"
        assert pair.paceline("up", "-d").code == 0
        wait_until("the agent is back", lambda: pair.agent_pid)

    wait_until("pods answer", lambda: read(pair, "one", f"http://two.peers:{PORT}/").split()[:1] == ["two"])
    assert status(pair, "two")["podIP"] == address
    assert handle(pair, "two") == before


def handle(cluster: Embedded, name: str) -> int:
    """Tell which network a pod has."""
    uid = cluster.kubectl("get", "pod", name, "-o", "jsonpath={.metadata.uid}").out
    return (RUN / bridge_name(cluster.home) / uid).stat().st_ino


def read_from_here(address: str) -> str:
    connection = http.client.HTTPConnection(address, PORT, timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", "/")
        return connection.getresponse().read().decode()


def test_a_finished_pod_has_no_network_any_more(cluster: Embedded) -> None:
    create(cluster, pod("short", {"name": "main", "command": ["true"]}))
    uid = cluster.kubectl("get", "pod", "short", "-o", "jsonpath={.metadata.uid}").out
    wait_until("it has ended", lambda: status(cluster, "short").get("phase") == "Succeeded")

    wait_until("its network goes", lambda: not (RUN / bridge_name(cluster.home) / uid).exists())


@pytest.mark.slow
def test_two_clusters_have_networks_that_do_not_meet(pair: Embedded) -> None:
    with embedded("--network", "own") as other:
        create(other, server("one"))
        wait_up(other, "one")
        mine, theirs = (str(status(each, "one")["podIP"]) for each in (pair, other))

        assert mine != theirs
        assert read_from_here(theirs).split()[0] == "one"
        assert "one" not in read(pair, "two", f"http://{theirs}:{PORT}/").split()
        home = other.home
        assert other.kubectl("delete", "pod", "one", "--grace-period=1").code == 0
        assert other.paceline("down").code == 0
        assert not traces(home)
    assert read_from_here(mine).split()[0] == "one"


@pytest.mark.slow
def test_nothing_is_left_when_all_has_ended_whatever_was_killed_before() -> None:
    # With another network on this machine nobody can tell what its own setting is.
    forwarding = "" if networks() else Path("/proc/sys/net/ipv4/ip_forward").read_text()
    with folder_for_cluster() as home:
        assert home.paceline("up", "-d", "--network", "own").code == 0
        sized = {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
        create(home, with_volume(server("one", restartPolicy="Always"), sized))
        wait_up(home, "one")
        assert any("/mounts/" in each for each in traces(home.home))
        home.kill_control_plane()
        assert home.paceline("up", "-d").code == 0
        wait_until("it is known", lambda: status(home, "one").get("phase") == "Running")

        assert home.paceline("down").code == 0
        assert traces(home.home), "a pod that runs on keeps its network"
        assert home.paceline("up", "-d").code == 0
        assert home.kubectl("delete", "pod", "one", "--grace-period=0", "--force").code == 0
        wait_until("the pod is gone", lambda: not list((home.home / "agent" / "pods").glob("*")))
        assert home.paceline("down").code == 0
        assert not traces(home.home)
        assert not has_rules(home.home)
    if forwarding and not networks():
        assert Path("/proc/sys/net/ipv4/ip_forward").read_text() == forwarding


@pytest.mark.slow
def test_a_cluster_does_not_change_networks_below_its_pods() -> None:
    with embedded("--network", "host") as home:
        create(home, pod("long", {"name": "main", "command": ["sleep", "1000"]}))
        wait_until("it runs", lambda: status(home, "long").get("phase") == "Running")
        assert home.paceline("down").code == 0
        refused = home.paceline("up", "-d", "--network", "own")

        assert refused.code != 0
        assert "--network host" in refused.err
        assert not traces(home.home)
