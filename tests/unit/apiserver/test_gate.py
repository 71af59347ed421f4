"""The gate: who comes in, and who does not, before anything else happens."""

import base64
import json

import pytest

from paceline.apiserver.auth.authentication import MAX_BODY_BYTES, USE_INSTEAD
from tests.unit.apiserver.client import CONFIG_MAPS, HOST, PODS, TOKEN, config_map, scope_of

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


PROXY = "http://127.0.0.1:8001"
OWN = f"{PODS}/p/proxy/x"
PROGRAMS = {
    "a pod": f"{PODS}/p/proxy/x",
    "a service": "/api/v1/namespaces/default/services/tb-curves:http/proxy/data",
    "a TensorBoard": "/t9k/tensorboards/projects/default/name/curves/data",
    "a Notebook": "/t9k/notebooks/projects/default/name/desk/lab",
}
# Everything else, with something to be had at each.
GUARDED = (
    *("/", "/api", "/api/v1/secrets", "/api/v1/nodes", "/version", "/openapi/v3", "/readyz", "/livez", "/metrics"),
    *(PODS, f"{PODS}/p", f"{PODS}/p/log", f"{PODS}/p/exec", f"{PODS}/p/attach", f"{PODS}/p/portforward"),
    *(
        f"{CONFIG_MAPS}/a",
        f"{CONFIG_MAPS}/proxy",
        "/api/v1/nodes/here/proxy/pods",
        "/api/v1/namespaces/default/secrets",
    ),
    *("/t9k/other/projects/default/name/x/", "/api/v1/namespaces/default%2Fpods%2Fp%2Fproxy/secrets"),
)
# What browsers say of what pages and people ask for.
MARKS = {
    "typed by a person": {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    "a page's own fetch": {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "referer": f"{PROXY}{OWN}"},
    "one that hides its address": {"sec-fetch-site": "same-origin", "sec-fetch-mode": "no-cors"},
    "one mark alone": {"sec-fetch-dest": "empty"},
    "a mark yet to be invented": {"sec-fetch-storage-access": "active"},
    "an older browser's fetch": {"referer": f"{PROXY}{OWN}"},
    "an older browser's write": {"origin": PROXY},
    "a frame": {"sec-fetch-site": "same-origin", "sec-fetch-dest": "iframe", "referer": f"{PROXY}{OWN}"},
    "a neighbouring port": {"sec-fetch-site": "same-site", "referer": "http://127.0.0.1:9999/"},
    "another site": {"sec-fetch-site": "cross-site", "origin": "https://evil.test"},
    "a page without an origin": {"origin": "null"},
    "an address that cannot be read": {"origin": "http://[", "referer": "http://["},
}
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
async def test_no_page_gets_anything_but_its_program(client, marks):
    await client.post(CONFIG_MAPS, config_map("a"))

    answers = {
        (method, path): (await client.send(method, path, b"{}", headers=marks)).code
        for method in METHODS
        for path in GUARDED
    }

    assert len(answers) == len(METHODS) * len(GUARDED)
    assert set(answers.values()) == {403}, {case for case, code in answers.items() if code != 403}
    assert (await client.get(f"{CONFIG_MAPS}/a")).code == 200


async def test_programs_reach_all_of_it(client):
    """The same table without a browser's marks: what is refused there is refused because of them."""
    await client.post(CONFIG_MAPS, config_map("a"))

    codes = {path: (await client.send("GET", path)).code for path in GUARDED}

    assert 403 not in codes.values()
    assert {codes[path] for path in ("/api/v1/secrets", PODS, f"{CONFIG_MAPS}/a", "/readyz")} == {200}


@pytest.mark.parametrize("path", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("method", METHODS)
async def test_a_page_talks_to_its_own_program(client, method, path):
    page = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "referer": f"{PROXY}{path}", "origin": PROXY}
    older = {"referer": f"{PROXY}{path}"}
    typed = {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}

    # There is no such pod: whoever learns that was let through.
    for headers in (page, older):
        assert (await client.send(method, path, b"{}", headers=headers)).code == 404
    assert (await client.send(method, path, b"{}", headers=typed)).code == (404 if method in METHODS[:3] else 403)


OTHERS = {
    "of another pod": {"referer": f"{PROXY}{PODS}/other/proxy/x"},
    "of another namespace's pod": {"referer": f"{PROXY}/api/v1/namespaces/else/pods/p/proxy/x"},
    "of another port of the pod": {"referer": f"{PROXY}{PODS}/p:81/proxy/x"},
    "of a service": {"referer": f"{PROXY}{PROGRAMS['a service']}"},
    "that hides its address": {},
    "of the proxy's own": {"referer": f"{PROXY}/static/"},
    "from elsewhere at the same path": {"referer": f"https://evil.test{OWN}"},
    "whose origin is another": {"referer": f"{PROXY}{OWN}", "origin": "http://127.0.0.1:9999"},
    "with a path in its path": {"referer": f"{PROXY}/x{OWN}"},
    "with a quoted path": {"referer": f"{PROXY}{PODS}/p%2Fproxy%2Fx/proxy"},
}


@pytest.mark.parametrize("headers", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("method", METHODS)
async def test_a_page_does_not_talk_to_the_program_of(client, method, headers):
    said = await client.send(method, OWN, b"{}", headers={"sec-fetch-site": "same-origin", **headers})

    assert said.code == 403


async def test_who_is_refused_learns_what_to_use(client):
    said = await client.send("GET", "/api/v1/secrets", headers={"sec-fetch-site": "same-origin"})

    assert (said.code, said.json["reason"]) == (403, "Forbidden")
    assert "`paceline notebook NAME`" in said.message


async def test_a_body_that_is_larger_than_it_was_said_to_be_is_refused(client):
    said = await client.send("POST", CONFIG_MAPS, b"x" * (MAX_BODY_BYTES + 1))

    assert (said.code, said.message) == (413, "the body of a request may have 3145728 bytes")


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
        "of a library": {"origin": f"https://{HOST}"},
        "of a page": {"origin": f"https://{HOST}", "sec-fetch-site": "same-origin"},
        "nobody": {"authorization": None},
        "bad token": {"authorization": "Bearer nonsense"},
    }

    refused = {}
    for name, headers in offers.items():
        head, body = await meet(client.app, {**scope_of("GET", PODS, headers=headers), "type": "websocket"})
        assert (head["type"], body["type"]) == ("websocket.http.response.start", "websocket.http.response.body")
        refused[name] = (head["status"], json.loads(body["body"])["message"])

    assert refused == {
        "good": (400, "WebSockets are supported for exec, attach and proxy only"),
        "foreign": (403, f"web pages may not ask for this; {USE_INSTEAD}"),
        "of a library": (400, "WebSockets are supported for exec, attach and proxy only"),
        "of a page": (403, f"web pages may not ask for this; {USE_INSTEAD}"),
        "nobody": (401, "Unauthorized"),
        "bad token": (401, "Unauthorized"),
    }


@pytest.mark.parametrize("path", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("marks", [MARKS["a page's own fetch"], {"origin": PROXY}], ids=["marked", "older"])
async def test_a_page_opens_no_websocket_because_nobody_can_tell_whose_page_it_is(client, marks, path):
    scope = {**scope_of("GET", path, headers=marks), "type": "websocket"}

    head, body = await meet(client.app, scope)

    assert head["status"] == 403
    assert "WebSocket" in json.loads(body["body"])["message"]


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
