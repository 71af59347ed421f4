"""The proxy: which pod and port is meant, what the pod learns, and where it may send the client."""

import pytest

from paceline.apiserver.auth.authentication import MAX_BODY_BYTES
from paceline.errors import ServiceUnavailable
from tests.unit.apiserver.client import HOST, NAMESPACE, PODS, TOKEN, pod
from tests.unit.apiserver.test_exec import meet

SERVICES, ENDPOINTS = f"{NAMESPACE}/services", f"{NAMESPACE}/endpoints"
WEB = [{"name": "main", "image": "i", "ports": [{"containerPort": 6006, "name": "web"}]}]


@pytest.fixture
async def there(client):
    """A pod on a node, with one port."""
    await client.post(PODS, pod("p", nodeName="n1", containers=WEB))
    return client


DOORS = {
    "the first port that is declared": ("p", b"/proxy/http/default/p/6006/x"),
    "any port by number": ("p:8888", b"/proxy/http/default/p/8888/x"),
    "a port by its name": ("p:web", b"/proxy/http/default/p/6006/x"),
    "by TLS": ("https:p:8443", b"/proxy/https/default/p/8443/x"),
    "by TLS, the declared port": ("https:p:", b"/proxy/https/default/p/6006/x"),
}


@pytest.mark.parametrize(("name", "path"), DOORS.values(), ids=DOORS)
async def test_a_port_of_a_pod_is_found(there, nodes, name, path):
    said = await there.get(f"{PODS}/{name}/proxy/x")

    assert (said.code, said.body) == (200, b"the pod's own")
    assert [each["raw_path"] for each in nodes.passed] == [path]


WRONG = {
    "no such pod": ("no", 404, 'pods "no" not found'),
    "too many parts": ("a:b:c:d", 400, 'invalid pod request "a:b:c:d"'),
    "a scheme that is none": ("ftp:p:80", 400, 'invalid pod request "ftp:p:80"'),
    "a pod without a node": ("waits", 400, "pod waits is not scheduled yet"),
    "a port beyond all": ("p:70000", 400, "pod p has no port '70000': give a number or a containerPort's name"),
    "a port that is none": ("p:-1", 400, "pod p has no port '-1': give a number or a containerPort's name"),
}


@pytest.mark.parametrize(("name", "code", "message"), WRONG.values(), ids=WRONG)
async def test_what_is_no_way_to_a_pod_is_refused(there, nodes, name, code, message):
    await there.post(PODS, pod("waits"))

    said = await there.get(f"{PODS}/{name}/proxy/")

    assert (said.code, said.message) == (code, message)
    assert nodes.passed == []


async def test_path_and_query_arrive_as_they_were_sent(there, nodes):
    await there.send("POST", f"{PODS}/p/proxy/a%2Fb//c/", b"body", query={"q": "1 2"})

    (passed,) = nodes.passed
    assert passed["raw_path"] == b"/proxy/http/default/p/6006/a%2Fb//c/"
    assert (passed["method"], passed["query_string"]) == ("POST", b"q=1+2")


async def test_the_root_is_redirected_to_where_relative_links_work(there, nodes):
    said = await there.get(f"{PODS}/p/proxy", a="1")

    assert (said.code, said.header("location")) == (301, [f"{PODS}/p/proxy/?a=1"])
    assert nodes.passed == []


async def test_a_write_to_the_root_is_passed_on(there, nodes):
    await there.send("POST", f"{PODS}/p/proxy", b"x")

    assert nodes.passed[0]["raw_path"] == b"/proxy/http/default/p/6006/"


async def test_the_pod_does_not_learn_who_asks_or_how(there, nodes):
    headers = {
        "cookie": "paceline-session=secret; theme=dark",
        "x-remote-user": "admin",
        "impersonate-user": "admin",
        "x-forwarded-for": "6.6.6.6",
        "accept": "text/html",
    }

    await there.send("GET", f"{PODS}/p/proxy/x", headers=headers)

    passed = {name.decode(): value.decode() for name, value in nodes.passed[0]["headers"]}
    assert TOKEN not in str(passed)
    assert passed == {
        "host": HOST,
        "accept": "text/html",
        "cookie": "theme=dark",
        "x-forwarded-for": "",
        "x-forwarded-host": HOST,
        "x-forwarded-proto": "https",
        "x-forwarded-uri": f"{PODS}/p/proxy/x",
    }


ORIGINS = {
    "a page that came through kubectl proxy": ("http://127.0.0.1:8001", "same-origin", f"https://{HOST}"),
    "a browser that does not say where the page is from": ("http://localhost:8001", "", f"https://{HOST}"),
    "a page of our own": (f"https://{HOST}", "same-origin", f"https://{HOST}"),
}


@pytest.mark.parametrize(("origin", "site", "told"), ORIGINS.values(), ids=ORIGINS)
async def test_a_program_takes_pages_for_its_own_that_came_through_a_proxy(there, nodes, origin, site, told):
    page = {"origin": origin, "referer": f"{origin}{PODS}/p/proxy/"}
    headers = {**page, **({"sec-fetch-site": site} if site else {})}

    await there.send("GET", f"{PODS}/p/proxy/x", headers=headers)

    assert dict(nodes.passed[0]["headers"])[b"origin"].decode() == told


PLACES = {
    "within the pod": ("/login?next=%2F", f"{PODS}/p/proxy/login?next=%2F"),
    "within the pod, with the host it was called by": (f"https://{HOST}/login", f"{PODS}/p/proxy/login"),
    "a folder stays one": ("/lab/", f"{PODS}/p/proxy/lab/"),
    "relative": ("next", "next"),
    "to where the proxy leads already": (f"{PODS}/p/proxy/lab", f"{PODS}/p/proxy/lab"),
    "elsewhere": ("https://example.test/x", "https://example.test/x"),
    "to no address at all": ("http://[", "http://["),
}


@pytest.mark.parametrize(("told", "seen"), PLACES.values(), ids=PLACES)
async def test_a_redirection_leads_through_the_proxy_again(there, nodes, told, seen):
    head = {"type": "http.response.start", "status": 302, "headers": [(b"location", told.encode())]}
    nodes.answer = [head, {"type": "http.response.body", "body": b""}]

    said = await there.get(f"{PODS}/p/proxy/x")

    assert (said.code, said.header("location")) == (302, [seen])


async def test_what_is_sent_to_a_pod_may_be_larger_than_an_object(there):
    size = {"content-length": str(MAX_BODY_BYTES * 100)}

    said = await there.send("PUT", f"{PODS}/p/proxy/upload", b"", headers=size)
    beside = await there.send("PUT", f"{PODS}/p", b"", headers=size)

    assert (said.code, beside.code) == (200, 413)


async def test_a_websocket_is_passed_on_too(there, nodes):
    nodes.answer = [{"type": "websocket.accept", "subprotocol": "graphql-ws"}]

    sent = await meet(there, f"{PODS}/p/proxy/api/kernels", protocols=("graphql-ws",))

    assert sent == nodes.answer
    assert nodes.passed[0]["raw_path"] == b"/proxy/http/default/p/6006/api/kernels"
    assert nodes.passed[0]["subprotocols"] == ["graphql-ws"]


async def test_a_pod_that_does_not_answer_is_said_in_the_words_of_kubernetes(there, nodes):
    words = "error trying to reach service: dial tcp 127.128.0.1:6006: connect: connection refused"
    nodes.answer = ServiceUnavailable(words)

    said = await there.get(f"{PODS}/p/proxy/x")

    assert (said.code, said.json["reason"], said.message) == (503, "ServiceUnavailable", words)


async def test_an_answer_that_breaks_off_is_not_ended_as_if_it_were_whole(there, nodes):
    async def pass_on(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ServiceUnavailable("gone")

    nodes.pass_on = pass_on

    said = await there.get(f"{PODS}/p/proxy/x")

    assert (said.code, said.body, said.is_whole) == (200, b"half", False)


async def service(client, *addresses, port=6006):
    ports = [{"name": "web", "port": 80, "targetPort": port}, {"name": "more", "port": 81}]
    made = await client.post(SERVICES, {"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "ports": ports}})
    assert made.code == 201
    subsets = [{"addresses": list(addresses), "ports": [{"name": "web", "port": port}]}] if addresses else []
    body = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "s"}, "subsets": subsets}
    assert (await client.post(ENDPOINTS, body)).code == 201


def address(name, namespace="default"):
    return {"ip": "10.0.0.1", "targetRef": {"kind": "Pod", "namespace": namespace, "name": name}}


@pytest.mark.parametrize("name", ["s:80", "s:web", "http:s:web"])
async def test_a_service_leads_to_a_ready_pod(there, nodes, name):
    await service(there, address("p"))

    said = await there.get(f"{SERVICES}/{name}/proxy/x")

    assert said.code == 200
    assert nodes.passed[0]["raw_path"] == b"/proxy/http/default/p/6006/x"


NO_WAY = {
    "a port it has not": ("s:82", [address("p")], 'service "s" has no port 82'),
    "nobody is ready": ("s:web", [], 'no endpoints available for service "s"'),
    "an address of no pod": ("s:web", [{"ip": "10.1.1.1"}], 'no endpoints available for service "s"'),
    "a pod of another namespace": ("s:web", [address("p", "other")], 'no endpoints available for service "s"'),
    "a port nobody has": ("s:more", [address("p")], 'no endpoints available for service "s"'),
}


@pytest.mark.parametrize(("name", "addresses", "message"), NO_WAY.values(), ids=NO_WAY)
async def test_a_service_without_a_way_to_a_pod_says_so(there, nodes, name, addresses, message):
    await service(there, *addresses)

    said = await there.get(f"{SERVICES}/{name}/proxy/x")

    assert (said.code, said.message) == (503, message)
    assert nodes.passed == []


async def test_a_service_that_is_not_there_is_not_found(client):
    said = await client.get(f"{SERVICES}/no:web/proxy/x")

    assert (said.code, said.message) == (404, 'services "no" not found')


@pytest.mark.parametrize("path", [f"{PODS}/p%2Fproxy/x", f"//{PODS}/p/proxy/x", f"{PODS}//p/proxy/x"])
async def test_a_path_that_only_looks_like_a_proxys_leads_nowhere(there, nodes, path):
    said = await there.get(path)

    assert said.code == 404
    assert nodes.passed == []
