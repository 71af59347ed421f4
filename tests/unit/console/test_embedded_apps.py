"""TensorBoards and notebooks behind the console, over real sockets, with a hostile program in the pod's place."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from tests.unit.console.app_site import BOARD, CLUSTER_TOKEN, DESK, NOTEBOOK_TOKEN, OTHER, Site, app_site

BOARD_PROXY = "/api/v1/namespaces/default/services/tb-evil:http/proxy"
DESK_PROXY = "/api/v1/namespaces/default/services/nb-desk:http/proxy"
DESK_PAGES = "/t9k/notebooks/projects/default/name/desk"
NAVIGATION = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Site": "same-site", "Sec_Fetch_Dest": "iframe"}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with app_site(tmp_path) as running:
        yield running


async def test_an_app_opens_with_a_ticket_and_answers_with_the_cookie(site: Site) -> None:
    opened = await site.embed(BOARD)
    assert opened["url"] == f"http://{site.host(BOARD)}/.paceline/open"

    answer = await site.redeem(BOARD, opened["ticket"])

    assert (answer.code, answer.json) == (200, {"front": "/"})
    (cookie,) = answer.all("set-cookie")
    assert cookie.startswith(f"__Host-paceline-app-{site.port}=")
    assert {part.strip() for part in cookie.split(";")[1:]} >= {"HttpOnly", "SameSite=Strict", "Secure", "Path=/"}
    assert "domain" not in cookie.lower()
    page = await site.ask(site.host(BOARD), "GET", "/?a=b%2Fc", Cookie=cookie.partition(";")[0], **NAVIGATION)
    assert (page.code, page.body) == (200, b"page")
    assert site.pods.paths == [f"{BOARD_PROXY}/?a=b%2Fc"]


async def test_the_cookie_lasts_twelve_hours(site: Site) -> None:
    cookie = await site.cookie(BOARD)

    site.clock.seconds = 12 * 3600 - 5
    assert (await site.ask(site.host(BOARD), "GET", "/", Cookie=cookie)).code == 200
    site.clock.seconds += 10
    assert (await site.ask(site.host(BOARD), "GET", "/", Cookie=cookie)).code == 401


async def test_a_sleeping_app_is_woken_and_waited_for(site: Site) -> None:
    site.pods.spec, site.pods.status = {"suspend": True}, {"phase": "Paused"}

    opened = await site.embed(BOARD)

    assert opened["ready"]
    (patch,) = site.pods.patches
    assert patch["spec"] == {"suspend": False}
    assert set(patch["metadata"]["annotations"]) >= {"paceline.dev/opened-at"}


async def test_waiting_does_not_wake(site: Site) -> None:
    site.pods.spec, site.pods.status = {"suspend": True}, {"phase": "Paused"}

    await site.embed(BOARD, wake=False)

    assert not site.pods.patches


async def test_an_app_that_has_no_endpoint_yet_shows_a_page_that_reloads(site: Site) -> None:
    cookie = await site.cookie(BOARD)
    site.pods.code, site.pods.body = 503, b'{"kind": "Status"}'

    page = await site.ask(site.host(BOARD), "GET", "/", Cookie=cookie, **NAVIGATION)
    data = await site.ask(site.host(BOARD), "GET", "/data", Cookie=cookie, Sec_Fetch_Site="same-origin")

    assert (page.code, b'http-equiv="refresh"' in page.body) == (503, True)
    assert (data.code, data.body) == (503, b'{"kind": "Status"}')


async def test_the_pod_learns_nothing_about_the_person_or_the_console(site: Site) -> None:
    cookie = await site.cookie(BOARD)
    private = {"Authorization": "Bearer x", "X_Forwarded_For": "1.2.3.4", "Impersonate_User": "root"}
    origins = {"Origin": f"http://{site.host(BOARD)}", "Referer": f"http://{site.console}/tensorboards"}

    cookies = f"{cookie}; {site.session_cookie}; theirs=1"
    await site.ask(site.host(BOARD), "POST", "/x", "body", Cookie=cookies, **origins, **private)

    (headers,) = site.pods.received
    # For the API server, which removes it.
    assert headers.pop("authorization") == f"Bearer {CLUSTER_TOKEN}"
    assert headers.pop("cookie") == "theirs=1"
    text = str(headers).lower()
    assert not [word for word in ("paceline", "referer", "origin", "1.2.3.4", "root", "sec-fetch") if word in text]


async def test_the_notebooks_token_stays_in_the_console(site: Site) -> None:
    opened = await site.embed(DESK)
    answer = await site.redeem(DESK, opened["ticket"])
    cookie = answer.all("set-cookie")[0].partition(";")[0]
    site.pods.code, site.pods.headers = 302, [(b"location", f"{DESK_PAGES}/tree?token={NOTEBOOK_TOKEN}".encode())]

    front = await site.ask(site.host(DESK), "GET", "/", Cookie=cookie, **NAVIGATION)
    moved = await site.ask(site.host(DESK), "GET", f"{DESK_PAGES}/lab", Cookie=cookie, **NAVIGATION)

    assert front.all("location") == [f"{DESK_PAGES}/lab"]
    assert moved.all("location") == [f"{DESK_PAGES}/tree"]
    assert site.pods.paths == [f"{DESK_PROXY}{DESK_PAGES}/lab?token={NOTEBOOK_TOKEN}"]
    for seen in (opened, answer, front, moved):
        assert NOTEBOOK_TOKEN not in str(seen)


async def test_a_websocket_of_the_app_is_passed_on_with_its_protocol(site: Site) -> None:
    cookie, host = await site.cookie(DESK), site.host(DESK)

    async with site.line(host, f"{DESK_PAGES}/api/kernels/1/channels", Origin=f"http://{host}", Cookie=cookie) as line:
        await line.send("hello")
        assert (await line.recv(), line.subprotocol) == ("pod: hello", "v1.kernel")

    assert site.pods.paths == [f"{DESK_PROXY}{DESK_PAGES}/api/kernels/1/channels?token={NOTEBOOK_TOKEN}"]
    assert "origin" not in site.pods.received[0]


async def test_answers_carry_the_policy_of_the_console(site: Site) -> None:
    cookie = await site.cookie(BOARD)
    site.pods.headers = [
        (b"content-security-policy", b"default-src 'self'; frame-ancestors *"),
        (b"x-frame-options", b"ALLOWALL"),
        (b"access-control-allow-origin", b"*"),
        (b"clear-site-data", b'"*"'),
        (b"set-cookie", b"a=1; Domain=paceline.localhost"),
        (b"set-cookie", b"__Host-paceline-1=evil; Secure; Path=/"),
        (b"refresh", b"0; url=http://evil.example"),
    ]

    answer = await site.ask(site.host(BOARD), "GET", "/", Cookie=cookie, **NAVIGATION)

    assert answer.all("content-security-policy") == ["default-src 'self'", f"frame-ancestors http://{site.console}"]
    assert answer.all("set-cookie") == ["a=1"]
    names = {name.lower() for name, _ in answer.headers}
    assert not names & {"x-frame-options", "access-control-allow-origin", "clear-site-data", "refresh"}
    assert answer.all("cross-origin-opener-policy") == ["same-origin"]


async def test_our_own_pages_let_only_the_console_frame_them(site: Site) -> None:
    for path in ("/.paceline/open", "/.paceline/ping"):
        answer = await site.ask(site.host(BOARD), "GET", path, **NAVIGATION)
        (policy,) = answer.all("content-security-policy")
        assert answer.code == 200
        assert policy.endswith(f"frame-ancestors http://{site.console}")
        assert "default-src 'none'" in policy


# What a hostile page or program tries, as far as no browser is needed to see it refused.


async def test_a_ticket_works_once(site: Site) -> None:
    ticket = (await site.embed(BOARD))["ticket"]

    assert (await site.redeem(BOARD, ticket)).code == 200
    second = await site.redeem(BOARD, ticket)

    assert (second.code, second.all("set-cookie")) == (403, [])
    assert "used already" in second.json["message"]


async def test_a_ticket_is_refused_after_half_a_minute(site: Site) -> None:
    ticket = (await site.embed(BOARD))["ticket"]
    site.clock.seconds = 31

    assert (await site.redeem(BOARD, ticket)).code == 403


async def test_a_ticket_opens_no_other_app(site: Site) -> None:
    ticket = (await site.embed(BOARD))["ticket"]

    assert (await site.redeem(OTHER, ticket)).code == 403
    assert (await site.redeem(DESK, ticket)).code == 403


async def test_a_ticket_is_no_cookie_and_a_cookie_no_ticket(site: Site) -> None:
    ticket = (await site.embed(BOARD))["ticket"]
    name, _, value = (await site.cookie(BOARD)).partition("=")

    assert (await site.ask(site.host(BOARD), "GET", "/", Cookie=f"{name}=1.{ticket}")).code == 401
    assert (await site.redeem(BOARD, value.removeprefix("1."))).code == 403


@pytest.mark.parametrize("ticket", ["", "x", "AAAA", "A" * 40_000, "\x00"])
async def test_a_made_up_ticket_is_refused(site: Site, ticket: str) -> None:
    assert (await site.redeem(BOARD, ticket)).code in (403, 413)


async def test_the_cookie_of_one_app_opens_no_other(site: Site) -> None:
    cookie = await site.cookie(BOARD)

    for host in (site.host(OTHER), site.host(DESK)):
        assert (await site.ask(host, "GET", "/", Cookie=cookie)).code == 401
    assert not site.pods.paths


async def test_the_cookie_of_an_app_is_no_session_of_the_console(site: Site) -> None:
    name, _, value = (await site.cookie(BOARD)).partition("=")
    session = site.session_cookie.partition("=")[0]

    for cookie in (f"{name}={value}", f"{session}={value}"):
        answer = await site.ask(site.console, "GET", "/api/me", Cookie=cookie, Sec_Fetch_Site="same-origin")
        assert answer.code == 401
        answer = await site.ask(site.console, "GET", "/k8s/api/v1/secrets", Cookie=cookie, Sec_Fetch_Site="same-origin")
        assert answer.code == 401


async def test_the_session_of_the_console_opens_no_app(site: Site) -> None:
    assert (await site.ask(site.host(BOARD), "GET", "/", Cookie=site.session_cookie)).code == 401
    assert not site.pods.paths


@pytest.mark.parametrize(
    "path", ["/api/me", "/api/live", "/k8s/api/v1/secrets", "/api/codes", "/assets/x.js", "/login"]
)
async def test_the_host_of_an_app_serves_no_part_of_the_console(site: Site, path: str) -> None:
    cookie = await site.cookie(BOARD)

    answer = await site.ask(site.host(BOARD), "GET", path, Cookie=f"{cookie}; {site.session_cookie}")

    assert (answer.code, answer.body) == (200, b"page")
    assert site.pods.paths == [f"{BOARD_PROXY}{path}"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/me"),
        ("GET", "/k8s/api/v1/secrets"),
        ("POST", "/api/embed"),
        ("POST", "/api/actions"),
        ("POST", "/api/login"),
        ("POST", "/api/logout"),
        ("DELETE", "/k8s/api/v1/namespaces/default/pods/x"),
    ],
)
async def test_the_page_of_an_app_sends_the_console_no_request(site: Site, method: str, path: str) -> None:
    """The browser adds the person's session: page and console are one site."""
    page = {"Origin": f"http://{site.host(BOARD)}", "Sec_Fetch_Site": "same-site", "X_Paceline": "1"}
    form = {"Origin": f"http://{site.host(BOARD)}", "Content_Type": "application/x-www-form-urlencoded"}

    for headers in (page, form, {**page, "Origin": "null"}):
        answer = await site.ask(site.console, method, path, "{}", Cookie=site.session_cookie, **headers)
        assert answer.code == 403, headers
        assert not [name for name, _ in answer.headers if name.lower().startswith("access-control-")]


async def test_the_page_of_an_app_opens_no_websocket_of_the_console(site: Site) -> None:
    for path in ("/api/live", "/k8s/api/v1/namespaces/default/pods/x/exec?command=sh"):
        line = site.line(site.console, path, Origin=f"http://{site.host(BOARD)}", Cookie=site.session_cookie)
        with pytest.raises(InvalidStatus) as refused:
            await line
        assert refused.value.response.status_code == 403


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
async def test_the_page_of_one_app_uses_no_other_app(site: Site, method: str) -> None:
    """The browser adds the cookie of the other app, too."""
    cookie = await site.cookie(DESK)
    page = {"Origin": f"http://{site.host(BOARD)}", "Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"}

    answer = await site.ask(site.host(DESK), method, f"{DESK_PAGES}/api/terminals", "{}", Cookie=cookie, **page)
    script = await site.ask(
        site.host(DESK), "GET", "/x.js", Cookie=cookie, Sec_Fetch_Site="same-site", Sec_Fetch_Mode="no-cors"
    )

    assert (answer.code, script.code) == (403, 403)
    with pytest.raises(InvalidStatus):
        await site.line(site.host(DESK), "/terminals/websocket/1", Origin=f"http://{site.host(BOARD)}", Cookie=cookie)
    assert not site.pods.paths


async def test_the_page_of_an_app_redeems_no_ticket_for_another_host(site: Site) -> None:
    ticket = (await site.embed(BOARD))["ticket"]

    other = await site.redeem(BOARD, ticket, Origin=f"http://{site.host(OTHER)}")
    form = await site.redeem(BOARD, ticket, **{"X-Paceline": ""})

    assert (other.code, form.code) == (403, 403)
    # And the ticket is still good for its owner.
    assert (await site.redeem(BOARD, ticket)).code == 200


async def test_no_service_worker_is_installed(site: Site) -> None:
    cookie = await site.cookie(BOARD)

    answer = await site.ask(
        site.host(BOARD), "GET", "/sw.js", Cookie=cookie, Service_Worker="script", Sec_Fetch_Site="same-origin"
    )

    assert answer.code == 403
    assert not site.pods.paths


@pytest.mark.parametrize("path", ["/../../secrets", "/%2e%2e/secrets", "/x/%2E%2e%2f%2e%2e/y", "/..%5c/x"])
async def test_no_path_reaches_another_part_of_the_cluster(site: Site, path: str) -> None:
    cookie = await site.cookie(BOARD)

    assert (await site.ask(site.host(BOARD), "GET", path, Cookie=cookie)).code == 404
    assert not site.pods.paths


@pytest.mark.parametrize("location", ["https://evil.example/x", "//evil.example/x", "/\\evil.example/x"])
async def test_a_redirect_stays_on_the_host_of_the_app(site: Site, location: str) -> None:
    cookie = await site.cookie(BOARD)
    site.pods.code, site.pods.headers = 302, [(b"location", location.encode())]

    answer = await site.ask(site.host(BOARD), "GET", "/", Cookie=cookie, **NAVIGATION)

    assert answer.all("location") == ["/x"]


async def test_nobody_opens_an_app_without_a_session(site: Site) -> None:
    page = {"Origin": f"http://{site.console}", "Sec_Fetch_Site": "same-origin", "X_Paceline": "1"}

    assert (await site.ask(site.console, "POST", "/api/embed", "{}", **page)).code == 401
    for path in ("/", "/data", f"{DESK_PAGES}/lab"):
        assert (await site.ask(site.host(BOARD), "GET", path)).code == 401
    with pytest.raises(InvalidStatus):
        await site.line(site.host(BOARD), "/ws", Origin=f"http://{site.host(BOARD)}")
    assert not site.pods.paths


@pytest.mark.parametrize("body", [{}, {"kind": "Pod"}, {"kind": "Pod", "namespace": "a", "name": "b"}, {"kind": 1}])
async def test_what_cannot_be_opened_is_said(site: Site, body: dict[str, object]) -> None:
    answer = await site.page_asks("POST", "/api/embed", body)

    assert answer.code == 400
    assert answer.json["message"]
