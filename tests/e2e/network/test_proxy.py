"""Requests to the ports of pods, through the API server."""

import hashlib
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.api_caller import SECONDS, Door
from tests.e2e.support.manifests import pod, text
from tests.e2e.support.shell_pods import assert_no_bugs

WEB = (Path(__file__).parents[1] / "jobs" / "web.py").read_text()
BASE = "/api/v1/namespaces/default"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Two ports in a row that nobody has, and nobody is given meanwhile: pods may share the machine's network."""
    for _ in range(100):
        with socket.socket() as first, socket.socket() as second:
            for keeper in (first, second):
                keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            first.bind(("127.0.0.1", 0))
            found: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", found + 1))
            except OSError:
                continue
            yield found
            return
    raise AssertionError("no two free ports in a row")


@pytest.fixture(scope="module")
def home(cluster: Embedded, port: int) -> Iterator[Embedded]:
    """A cluster with a pod that serves, and a service before it."""
    declared = [{"containerPort": port, "name": "web"}, {"containerPort": port + 1, "name": "ws"}]
    main = {"name": "main", "command": ["python", "-c", WEB, str(port)], "ports": declared}
    ports = [{"name": "web", "port": 80, "targetPort": "web"}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front"},
        "spec": {"selector": {"app": "web"}, "ports": ports},
    }
    made = cluster.kubectl("create", "-f", "-", stdin=text(pod("web", main, app="web"), service))
    assert made.code == 0, made.err
    wait_until("it serves", lambda: cluster.kubectl("logs", "web").out == "up\n")
    yield cluster
    assert_no_bugs(cluster)


@pytest.fixture(scope="module")
def door(home: Embedded) -> Door:
    return Door(home)


def test_a_port_is_reached_by_number_by_name_and_by_default(door: Door, port: int) -> None:
    for name in ("web", "web:web", f"web:{port}", f"http:web:{port}"):
        assert door.read(f"{BASE}/pods/{name}/proxy/a%20b?c=d") == b"GET /a%20b?c=d"


def test_kubectl_reads_through_the_proxy(home: Embedded) -> None:
    assert home.kubectl("get", "--raw", f"{BASE}/pods/web/proxy/x").out == "GET /x"


def test_a_service_leads_to_its_pod(door: Door, home: Embedded) -> None:
    wait_until("it has endpoints", lambda: "web" in home.kubectl("get", "endpoints", "front", "-o", "yaml").out)

    assert door.read(f"{BASE}/services/front:web/proxy/x") == b"GET /x"
    assert door.read(f"{BASE}/services/front:80/proxy/y") == b"GET /y"


def test_an_upload_larger_than_any_object_streams_through(door: Door) -> None:
    size, digest = 32 * 2**20, hashlib.sha256(bytes(32 * 2**20)).hexdigest()

    with door.ask("PUT", f"{BASE}/pods/web/proxy/up", bytes(size)) as answer:
        assert (answer.status, answer.read().decode()) == (201, digest)


def test_a_large_answer_comes_whole(door: Door) -> None:
    assert door.read(f"{BASE}/pods/web/proxy/zeros") == bytes(8 * 2**20)


def test_a_slow_answer_comes_as_it_is_made(door: Door) -> None:
    """It would take a minute to end; its first lines are here before that."""
    with door.ask("GET", f"{BASE}/pods/web/proxy/slow") as answer:
        assert [answer.readline() for _ in range(3)] == [b"line 0\n", b"line 1\n", b"line 2\n"]


def test_a_redirection_leads_through_the_proxy(door: Door) -> None:
    with door.ask("GET", f"{BASE}/pods/web/proxy/away") as answer:
        assert (answer.status, answer.headers["Location"]) == (302, f"{BASE}/pods/web/proxy/there")


def test_the_pod_does_not_see_the_token(door: Door) -> None:
    seen = door.read(f"{BASE}/pods/web/proxy/headers", Cookie="paceline-x=1; mine=2", Accept="text/x").decode()

    assert door.token not in seen
    assert "paceline-x" not in seen
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in seen.splitlines())}
    assert (headers["cookie"], headers["accept"], headers["host"]) == ("mine=2", "text/x", door.host)
    assert headers["x-forwarded-uri"] == f"{BASE}/pods/web/proxy/headers"


def test_websockets_go_through_both_ways(door: Door) -> None:
    with door.line(f"{BASE}/pods/web:ws/proxy/kernel", "echo.test") as line:
        assert line.subprotocol == "echo.test"
        for message in ("text", b"bytes", "long " * 200_000):
            line.send(message)
            assert line.recv(SECONDS) == message


def test_a_websocket_without_a_token_or_from_a_foreign_page_is_refused_in_http(door: Door) -> None:
    for headers, code in (({"Authorization": "Bearer no"}, 401), ({"Origin": "https://evil.test"}, 403)):
        with pytest.raises(InvalidStatus) as refused:
            door.line(f"{BASE}/pods/web:ws/proxy/", **headers)
        assert refused.value.response.status_code == code
        assert json.loads(refused.value.response.body or b"")["code"] == code


@pytest.fixture
def stranger() -> Iterator[int]:
    """A server of the machine that is no pod's, and listens on all addresses."""
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_listens_on_the_machine_but_not_in_the_pod_is_out_of_reach(door: Door, stranger: int) -> None:
    with door.ask("GET", f"{BASE}/pods/web:{stranger}/proxy/") as answer:
        told = json.loads(answer.read())

    assert (answer.status, told["reason"]) == (503, "ServiceUnavailable")
    assert told["message"].endswith(f":{stranger}: connect: connection refused")


def test_port_forward_says_that_it_is_not_offered(home: Embedded, port: int) -> None:
    told = home.kubectl("port-forward", "pod/web", f":{port}", seconds=SECONDS)

    assert told.code == 1
    assert "port-forward is not supported" in told.err
