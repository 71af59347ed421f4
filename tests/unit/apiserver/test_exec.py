"""exec and attach: the right container is found, and the rest is the node's."""

import pytest

from paceline.errors import ServiceUnavailable
from tests.unit.apiserver.client import PODS, TOKEN, pod, scope_of

TWO = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
ACCEPT = {"type": "websocket.accept", "subprotocol": "v5.channel.k8s.io"}


async def meet(client, path, *, query=None, headers=None, protocols=("v5.channel.k8s.io",)):
    """Come with a WebSocket; give all that was said to it."""
    sent = []
    scope = {
        **scope_of("GET", path, query=query, headers=headers),
        "type": "websocket",
        "subprotocols": list(protocols),
        "extensions": {"websocket.http.response": {}},
    }
    del scope["method"]

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    await client.app(scope, receive, send)
    return sent


async def refused(client, path, **query):
    """Ask for what is refused, both ways; give the code and the words, which are the same."""
    head, body = await meet(client, path, query=query)
    plain = await client.send("POST", path, query=query)
    assert (head["status"], body["body"]) == (plain.code, plain.body)
    return plain.code, plain.message


async def test_a_line_to_a_container_is_passed_on_without_the_token(client, nodes):
    await client.post(PODS, pod("p", nodeName="n1"))
    nodes.answer = [ACCEPT]
    hidden = "base64url.bearer.authorization.k8s.io.c2VjcmV0"

    sent = await meet(
        client,
        f"{PODS}/p/exec",
        query={"command": "ls", "stdout": "1"},
        headers={"cookie": "a=b"},
        protocols=("v5.channel.k8s.io", hidden),
    )

    (passed,) = nodes.passed
    assert sent == [ACCEPT]
    assert passed["raw_path"] == b"/exec/default/p/main"
    assert passed["query_string"] == b"command=ls&stdout=1"
    assert passed["subprotocols"] == ["v5.channel.k8s.io"]
    assert TOKEN not in str(passed)
    assert b"cookie" not in dict(passed["headers"])


async def test_the_container_that_is_named_is_meant(client, nodes):
    await client.post(PODS, pod("p", nodeName="n1", containers=TWO))
    nodes.answer = [ACCEPT]

    await meet(client, f"{PODS}/p/attach", query={"container": "b", "stdout": "1"})

    assert nodes.passed[0]["raw_path"] == b"/attach/default/p/b"


async def test_what_is_wrong_is_said_in_the_words_of_kubernetes(client, nodes):
    await client.post(PODS, pod("waits"))
    await client.post(PODS, pod("two", nodeName="n1", containers=TWO, initContainers=[{"name": "i", "image": "x"}]))

    assert await refused(client, f"{PODS}/no/exec", command="ls") == (404, 'pods "no" not found')
    assert await refused(client, f"{PODS}/waits/exec", command="ls") == (400, "pod waits does not have a host assigned")
    assert await refused(client, f"{PODS}/two/exec", command="ls") == (
        400,
        "a container name must be specified for pod two, choose one of: [i a b]",
    )
    assert await refused(client, f"{PODS}/two/attach", container="zz") == (400, "container zz is not valid for pod two")
    assert nodes.passed == []


async def test_port_forward_is_not_offered_and_says_what_is(client):
    await client.post(PODS, pod("p", nodeName="n1"))

    code, message = await refused(client, f"{PODS}/p/portforward")

    assert code == 400
    assert "not supported" in message
    assert "/pods/p:PORT/proxy/" in message


async def test_a_node_that_does_not_answer_is_told_of(client, nodes):
    await client.post(PODS, pod("p", nodeName="n1"))
    nodes.answer = ServiceUnavailable("the node agent is not running")

    assert await refused(client, f"{PODS}/p/exec", command="ls") == (503, "the node agent is not running")


async def test_a_line_that_breaks_after_it_was_opened_is_closed(client, nodes):
    await client.post(PODS, pod("p", nodeName="n1"))

    async def pass_on(_scope, _receive, send):
        await send(ACCEPT)
        raise ServiceUnavailable("gone")

    nodes.pass_on = pass_on

    sent = await meet(client, f"{PODS}/p/exec", query={"command": "ls"})

    assert [each["type"] for each in sent] == ["websocket.accept", "websocket.close"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", f"{PODS}/p/exec"), ("DELETE", f"{PODS}/p/attach"), ("PATCH", f"{PODS}/p/exec")],
)
async def test_other_methods_are_not_offered(client, method, path):
    assert (await client.send(method, path)).code == 405


async def test_only_pods_have_lines(client):
    assert (await client.get("/api/v1/namespaces/default/services/s/exec")).code == 404
    assert (await client.get(f"{PODS}/p/exec/more")).code == 404


async def test_a_client_that_left_before_it_was_refused_is_no_failure(client, caplog):
    async def receive():
        return {"type": "websocket.connect"}

    async def send(_message):
        raise ConnectionResetError

    scope = {**scope_of("GET", f"{PODS}/no/exec"), "type": "websocket", "subprotocols": []}

    await client.app(scope, receive, send)

    assert caplog.records == []
