"""Who gets past the gate: every route, without a session, from another host and from another page."""

import asyncio
import re

import pytest
from starlette.routing import Mount, WebSocketRoute
from websockets.exceptions import InvalidStatus

from paceline.console.app import ROUTES, audience_of
from paceline.console.auth import BODY_SECONDS, HEADERS, MAX_BODY_BYTES, SAFE_METHODS, Audience, limited
from paceline.console.login import LOGIN_ROUTES
from paceline.errors import ServiceUnavailable
from paceline.testing.sim.loop import SimLoop
from tests.unit.console.console_site import OWN, Recorder, console_site

PAGE = '<!doctype html><meta name="csp-nonce" content="__NONCE__">'
FOREVER = "public, max-age=31536000, immutable"
EVIL = "http://evil.example"


@pytest.fixture
async def site(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "assets" / "main-ABC.js").write_text("run()")
    (tmp_path / "assets" / "main-ABC.js.gz").write_bytes(b"packed")
    async with console_site(tmp_path, Recorder()) as console:
        yield console


def requests_of(route):
    """Yield a method and a path for every way to ask a route."""
    path = re.sub(r"\{[^}]+\}", "x", route.path)
    if isinstance(route, Mount):
        yield from ((method, f"{path}/api/v1/pods") for method in ("GET", "POST", "PUT", "PATCH", "DELETE"))
        yield "WEBSOCKET", f"{path}/api/v1/namespaces/default/pods/x/exec"
    elif isinstance(route, WebSocketRoute):
        yield "WEBSOCKET", path
    else:
        yield from ((method, path) for method in sorted(route.methods or {"GET"}))


GUARDED = [request for route in ROUTES[Audience.SESSION] for request in requests_of(route)]
LOGIN = [request for route in LOGIN_ROUTES for request in requests_of(route)]


async def status_of(site, method, path, headers):
    """Return the code of an answer, also to a WebSocket."""
    if method != "WEBSOCKET":
        return (await site.ask(method, path, headers)).code
    named = {name: text for name, text in headers.items() if name not in ("Origin", "Host")}
    try:
        async with site.socket(path, origin=headers.get("Origin"), **named):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


def test_there_are_routes_to_guard():
    assert ("GET", "/api/me") in GUARDED
    assert {method for method, _ in GUARDED} >= {"GET", "POST", "DELETE", "WEBSOCKET"}


@pytest.mark.parametrize(("method", "path"), GUARDED)
async def test_no_route_answers_without_a_session(site, method, path):
    assert await status_of(site, method, path, site.page) == 401


@pytest.mark.parametrize(("method", "path"), GUARDED)
async def test_no_route_answers_an_expired_session(site, method, path):
    cookie = site.cookie()
    site.clock.seconds = 31 * 24 * 3600

    assert await status_of(site, method, path, {**site.page, "Cookie": cookie}) == 401


@pytest.mark.parametrize(("method", "path"), [*GUARDED, *LOGIN])
async def test_no_route_answers_a_page_of_another_origin(site, method, path):
    headers = {**site.page, "Cookie": site.cookie(), "Origin": EVIL}

    assert await status_of(site, method, path, headers) == 403


@pytest.mark.parametrize("site_header", ["cross-site", "same-site"])
@pytest.mark.parametrize(("method", "path"), [*GUARDED, *LOGIN])
async def test_no_route_answers_what_a_browser_marks_as_of_another_origin(site, method, path, site_header):
    """Pages of TensorBoards and notebooks are of the same site: they have host names below the console's."""
    headers = {**site.page, "Cookie": site.cookie(), "Sec-Fetch-Site": site_header}

    assert await status_of(site, method, path, headers) == 403


@pytest.mark.parametrize(
    ("method", "path"), [(method, path) for method, path in [*GUARDED, *LOGIN] if method not in SAFE_METHODS]
)
async def test_what_changes_something_needs_an_origin(site, method, path):
    headers = {name: text for name, text in site.page.items() if name not in ("Origin", "Sec-Fetch-Site")}

    assert await status_of(site, method, path, {**headers, "Cookie": site.cookie()}) == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [(method, path) for method, path in [*GUARDED, *LOGIN] if method not in {*SAFE_METHODS, "WEBSOCKET"}],
)
async def test_what_changes_something_needs_the_header_that_forms_cannot_send(site, method, path):
    headers = {name: text for name, text in site.page.items() if name != "X-Paceline"}

    answer = await site.ask(method, path, {**headers, "Cookie": site.cookie()})

    assert answer.code == 403
    assert "X-Paceline: 1" in answer.json["message"]


@pytest.mark.parametrize("path", ["/", "/jobs", "/assets/main-ABC.js", "/api/login", "/api/me", "/k8s/api/v1/pods"])
@pytest.mark.parametrize(
    "hosts",
    [
        ["evil.example"],
        ["paceline.localhost"],
        ["paceline.localhost:1"],
        ["evil.localhost:{port}"],
        ["paceline.localhost.evil.example:{port}"],
        ["a.b.paceline.localhost:{port}"],
        [],
        ["paceline.localhost:{port}", "evil.example"],
    ],
    ids=" and ".join,
)
async def test_another_host_name_is_refused_everywhere(site, path, hosts):
    """A page of another site whose name resolves to this machine sends its own name (DNS rebinding)."""
    named = [("Host", host.format(port=site.port)) for host in hosts]

    answer = await site.ask("GET", path, [*named, ("Cookie", site.cookie())])

    assert answer.code in (400, 403)
    assert not answer.all("set-cookie")


@pytest.mark.parametrize("name", ["paceline.localhost", "PACELINE.localhost", "localhost", "127.0.0.1"])
async def test_the_consoles_own_names_are_accepted(site, name):
    host = f"{name}:{site.port}"

    answer = await site.ask("GET", "/k8s/version", {"Host": host, "Cookie": site.cookie(host=host.lower())})

    assert answer.code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/jobs/default/PyTorchTrainingJob/mnist/logs"),
        ("GET", "/assets/main-ABC.js"),
        ("GET", "/assets/missing.js"),
        ("GET", "/api/me"),
        ("GET", "/api/nothing"),
        ("POST", "/api/login"),
        ("TRACE", "/"),
    ],
)
async def test_every_answer_has_the_headers_that_protect_it(site, method, path):
    answer = await site.ask(method, path, {"Host": site.host})

    assert {name: answer.one(name) for name in HEADERS if name not in ("content-security-policy", "cache-control")} == {
        name: text for name, text in HEADERS.items() if name not in ("content-security-policy", "cache-control")
    }
    assert "frame-ancestors 'none'" in answer.one("content-security-policy")
    assert answer.one("x-frame-options") == "DENY"
    assert not [name for name, _ in answer.headers if name.lower().startswith("access-control-")]
    assert answer.one("cache-control") == ("no-store" if answer.code != 200 or "/assets/" not in path else FOREVER)


async def test_the_page_has_a_new_nonce_in_every_answer(site):
    answers = [await site.ask("GET", path, {"Host": site.host}) for path in ("/", "/jobs/default")]
    policies = [answer.one("content-security-policy") for answer in answers]
    nonces = [re.search(r"'nonce-([^']{40,})'", policy)[1] for policy in policies]

    assert len(set(nonces)) == 2
    for answer, nonce in zip(answers, nonces, strict=True):
        assert answer.body.decode() == PAGE.replace("__NONCE__", nonce)
    assert "script-src 'self';" in policies[0]
    assert "unsafe" not in policies[0]
    assert f"frame-src http://*.paceline.localhost:{site.port};" in policies[0]
    assert "require-trusted-types-for 'script'" in policies[0]


async def test_a_page_that_is_not_built_says_how_to_build_it(tmp_path):
    async with console_site(tmp_path, Recorder()) as site:
        answer = await site.ask("GET", "/", {"Host": site.host})

    assert answer.code == 503
    assert b"make setup" in answer.body


async def test_assets_are_sent_as_they_are_stored(site):
    plain = await site.ask("GET", "/assets/main-ABC.js", {"Host": site.host})
    packed = await site.ask("GET", "/assets/main-ABC.js", {"Host": site.host, "Accept-Encoding": "br, gzip"})

    assert (plain.body, plain.one("content-encoding")) == (b"run()", "")
    assert (packed.body, packed.one("content-encoding")) == (b"packed", "gzip")
    assert packed.one("content-type") == "text/javascript; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../index.html",
        "/assets/..%2findex.html",
        "/assets/%2e%2e/index.html",
        "/assets/main-ABC.js.gz",
        "/assets/.hidden",
        "/index.html",
        "/assets/",
        "/../../etc/passwd",
    ],
)
async def test_nothing_but_assets_is_served_from_the_folder(site, path):
    answer = await site.ask("GET", path, {"Host": site.host})

    assert answer.code == 404
    assert answer.json["reason"] == "NotFound"


async def test_only_a_person_with_a_session_learns_which_paths_exist(site):
    missing = await site.ask("GET", "/api/nothing", {"Host": site.host})
    logged_in = await site.as_page("GET", "/api/nothing")
    wrong_method = await site.as_page("DELETE", "/api/me")

    assert (missing.code, logged_in.code, wrong_method.code) == (401, 404, 405)
    assert logged_in.json["kind"] == "Status"


@pytest.mark.parametrize("query", [f"token={OWN}", f"access_token={OWN}", "code=x", "session=x"])
async def test_a_token_in_a_url_lets_nobody_in(site, query):
    for path in ("/api/me", "/k8s/version"):
        answer = await site.ask("GET", f"{path}?{query}", {"Host": site.host})
        assert answer.code == 401


async def test_a_bearer_token_is_no_session(site):
    answer = await site.ask("GET", "/k8s/version", {"Host": site.host, "Authorization": f"Bearer {OWN}"})

    assert answer.code == 401


async def test_a_body_that_is_announced_too_large_is_refused(site):
    answer = await site.ask("POST", "/api/login", {**site.page, "Content-Length": str(MAX_BODY_BYTES + 1)})

    assert (answer.code, answer.json["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_body_that_becomes_too_large_is_refused(site):
    headers = {**site.page, "Transfer-Encoding": "chunked"}
    megabyte = b"100000\r\n%b\r\n" % (b" " * (1 << 20))

    answer = await site.ask("POST", "/api/login", headers, megabyte * 17 + b"0\r\n\r\n")

    assert answer.code == 413


async def test_a_bug_is_said_without_its_traceback(site, caplog):
    cookie = site.cookie()
    site.gate.runtime.clients = None

    answer = await site.ask("GET", "/api/me", {**site.page, "Cookie": cookie})

    assert (answer.code, answer.json["reason"]) == (500, "InternalError")
    assert b"Traceback" not in answer.body
    assert b"NoneType" not in answer.body
    assert "a request failed" in caplog.text
    assert cookie.partition("=")[2] not in caplog.text


def test_every_route_has_one_audience():
    routes = [route for routes in ROUTES.values() for route in routes]

    assert len(routes) == len({id(route) for route in routes})
    for audience, listed in ROUTES.items():
        for route in listed:
            for method, path in requests_of(route):
                kind = "websocket" if method == "WEBSOCKET" else "http"
                assert audience_of({"type": kind, "method": method, "path": path, "headers": []}) is audience


def test_a_body_that_does_not_arrive_in_time_is_refused():
    pieces = [{"type": "http.request", "body": b"a", "more_body": True}]

    async def receive():
        if not pieces:
            await asyncio.sleep(10 * BODY_SECONDS)
        return pieces.pop()

    async def read():
        bounded = limited({"type": "http"}, receive)
        await bounded()
        await bounded()

    with (
        asyncio.Runner(loop_factory=lambda: SimLoop(seed=0)) as runner,
        pytest.raises(ServiceUnavailable, match="within 60 seconds"),
    ):
        runner.run(read())
