"""The gate: who comes in, and who does not, before anything else happens."""

import base64
import json

import pytest

from paceline.api.gate import MAX_BODY_BYTES
from tests.unit.api.client import CONFIG_MAPS, HOST, PODS, TOKEN, config_map, scope_of

REFUSED = {
    "no token": ({"authorization": None}, 401, "Unauthorized"),
    "a wrong token": ({"authorization": "Bearer wrong"}, 401, "Unauthorized"),
    "a password instead of a token": ({"authorization": f"Basic {TOKEN}"}, 401, "Unauthorized"),
    "the hash of the token instead of the token": (
        {"authorization": "Bearer 6c1f5d4ae2ab6e3e4b8bd9ea9ba0b40c7bf22ab8a8bd2ac8ee8c3c6d3e2c1d2e"},
        401,
        "Unauthorized",
    ),
    "a Host of another name for this machine": ({"host": "evil.test:6443"}, 403, "Forbidden"),
    "our Host on another port": ({"host": "cluster.test:80"}, 403, "Forbidden"),
    "our Host with something after it": ({"host": f"{HOST}.evil.test"}, 403, "Forbidden"),
    "no Host": ({"host": None}, 403, "Forbidden"),
    "more than fits": ({"content-length": str(MAX_BODY_BYTES + 1)}, 413, "RequestEntityTooLarge"),
    "a length that is no number": ({"content-length": "-1"}, 400, "BadRequest"),
}


@pytest.mark.parametrize(("headers", "code", "reason"), REFUSED.values(), ids=REFUSED)
async def test_the_gate_refuses(client, headers, code, reason):
    said = await client.send("GET", PODS, headers=headers)

    assert (said.code, said.json["kind"], said.json["reason"]) == (code, "Status", reason)


FOREIGN = {
    "another origin": {"origin": "https://evil.test"},
    "no origin at all": {"origin": "null"},
    "a cross-site fetch": {"sec-fetch-site": "cross-site"},
    "a page on the same site": {"sec-fetch-site": "same-site"},
}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
async def test_a_foreign_page_changes_nothing_even_with_a_token(client, headers, method):
    await client.post(CONFIG_MAPS, config_map("a"))

    said = await client.send(method, f"{CONFIG_MAPS}/a", {}, headers=headers)

    assert (said.code, said.json["reason"]) == (403, "Forbidden")
    assert (await client.get(f"{CONFIG_MAPS}/a")).code == 200


PAGES = {
    "that came through kubectl proxy talks to its program": ("http://127.0.0.1:8001", "same-origin", True),
    "whose browser says less does too": ("http://localhost:8001", None, True),
    "of another port of this machine does not": ("http://127.0.0.1:9999", "same-site", False),
    "from elsewhere does not": ("https://evil.test", None, False),
    "from elsewhere that says it is from here does not": ("https://127.0.0.1.evil.test", "same-origin", False),
}


@pytest.mark.parametrize(("origin", "site", "is_let"), PAGES.values(), ids=PAGES)
async def test_a_page(client, origin, site, is_let):
    headers = {"origin": origin, **({"sec-fetch-site": site} if site else {})}
    passed = await client.send("POST", f"{PODS}/p/proxy/x", b"{}", headers=headers)
    written = await client.send("POST", CONFIG_MAPS, config_map("a"), headers=headers)

    # There is no such pod: whoever learns that was let through.
    assert passed.code == (404 if is_let else 403)
    assert written.code == 403


async def test_a_page_of_our_own_may_write(client):
    headers = {"origin": f"https://{HOST}", "sec-fetch-site": "same-origin"}

    assert (await client.send("POST", CONFIG_MAPS, config_map("a"), headers=headers)).code == 201


async def test_a_body_that_is_larger_than_it_was_said_to_be_is_refused(client):
    said = await client.send("POST", CONFIG_MAPS, b"x" * (MAX_BODY_BYTES + 1))

    assert (said.code, said.message) == (413, "Request entity too large: limit is 3145728")


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
async def test_health_is_public_but_only_under_our_name(client, path):
    anyone = {"authorization": None}

    assert (await client.send("GET", path, headers=anyone)).body == b"ok"
    assert (await client.send("GET", path, headers={**anyone, "host": "evil.test"})).code == 403


@pytest.mark.parametrize("path", ["/", "/api", "/apis", "/version", "/openapi/v3", "/livez/x", "/metrics"])
async def test_everything_else_asks_for_a_token(client, path):
    assert (await client.send("GET", path, headers={"authorization": None})).code == 401


async def test_a_websocket_passes_the_same_gate_and_is_told_why_not(client):
    """Not a silent close: what was wrong is an HTTP answer, as for a request."""
    hidden = base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("=")
    offers = {
        "good": {"authorization": None, "sec-websocket-protocol": f"base64url.bearer.authorization.k8s.io.{hidden}"},
        "foreign": {"origin": "https://evil.test"},
        "nobody": {"authorization": None},
        "bad token": {"authorization": "Bearer nonsense"},
    }

    refused = {}
    for name, headers in offers.items():
        head, body = await meet(client.app, {**scope_of("GET", PODS, headers=headers), "type": "websocket"})
        assert (head["type"], body["type"]) == ("websocket.http.response.start", "websocket.http.response.body")
        refused[name] = (head["status"], json.loads(body["body"])["message"])

    assert refused == {
        "good": (400, "a WebSocket leads to exec, attach and proxy only"),
        "foreign": (403, "a web page of another origin may not do this"),
        "nobody": (401, "Unauthorized"),
        "bad token": (401, "Unauthorized"),
    }


async def meet(app, scope):
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent


async def test_starting_and_stopping_are_acknowledged(client):
    asked = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent = []

    async def receive():
        return asked.pop(0)

    async def send(message):
        sent.append(message["type"])

    await client.app({"type": "lifespan"}, receive, send)

    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
