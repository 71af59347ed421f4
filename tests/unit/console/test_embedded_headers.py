"""Which headers travel between the browser and the pod of a TensorBoard or notebook."""

import pytest

from paceline.console.app_origins.headers import BrowserRequest, framed_by, passed_on, returned
from paceline.console.app_origins.origin import EmbeddedApp

APP = EmbeddedApp(kind="TensorBoard", namespace="default", name="mnist")
CONSOLE = "http://paceline.localhost:7000"
ORIGIN = f"http://{APP.label}.paceline.localhost:7000"
OTHER = "http://tb-other-00000000.paceline.localhost:7000"


def answer(*headers: tuple[str, str]) -> list[tuple[str, str]]:
    return list(returned(headers, APP, CONSOLE))


@pytest.mark.parametrize(
    "name",
    [
        *("Authorization", "Origin", "Referer", "Host", "X-Paceline", "Sec-Fetch-Site", "Sec-WebSocket-Key"),
        *("Impersonate-User", "X-Remote-User", "X-Forwarded-For", "Forwarded", "Expect"),
    ],
)
def test_the_pod_learns_neither_credential_nor_page(name: str) -> None:
    assert passed_on([(name, "x"), ("Accept", "*/*")]) == (("accept", "*/*"),)


def test_the_pod_gets_its_own_cookies_and_none_of_ours() -> None:
    cookies = "_xsrf=2|a; __Host-paceline-app=s3; paceline-session=s4; username-x=u"

    assert passed_on([("Cookie", cookies)]) == (("cookie", "_xsrf=2|a; username-x=u"),)
    assert passed_on([("Cookie", "__host-Paceline=x")]) == ()


def test_cookies_of_the_pod_stay_on_its_host() -> None:
    pairs = answer(("Set-Cookie", "a=1; Domain=paceline.localhost; Path=/; HttpOnly"))

    assert ("set-cookie", "a=1; Path=/; HttpOnly") in pairs


@pytest.mark.parametrize(
    "cookie",
    ["__Host-paceline-app=evil; Secure; Path=/", "Paceline-session=evil", "=__Host-paceline-session=evil", "  =x"],
)
def test_the_pod_sets_no_cookie_of_ours(cookie: str) -> None:
    assert not [value for name, value in answer(("Set-Cookie", cookie)) if name == "set-cookie"]


@pytest.mark.parametrize(
    "name",
    [
        *("Clear-Site-Data", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Refresh"),
        *("Service-Worker-Allowed", "WWW-Authenticate", "X-Frame-Options", "Strict-Transport-Security"),
    ],
)
def test_the_pod_affects_no_other_host(name: str) -> None:
    assert name.lower() not in dict(answer((name, "evil")))


def test_only_the_console_shows_the_app_in_a_frame() -> None:
    policies = [value for name, value in answer() if name == "content-security-policy"]

    assert policies == [f"frame-ancestors {CONSOLE}"]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (["frame-ancestors 'self'; report-uri /r"], ["report-uri /r"]),
        (["default-src 'self';Frame-Ancestors *;font-src data:"], ["default-src 'self'; font-src data:"]),
        (["frame-ancestors *"], []),
        (["default-src 'none', frame-ancestors *", "img-src x"], ["default-src 'none'", "img-src x"]),
        (["frame-ancestors-x y"], ["frame-ancestors-x y"]),
    ],
)
def test_other_directives_of_the_app_stay(theirs: list[str], ours: list[str]) -> None:
    assert framed_by(theirs, CONSOLE) == [*ours, f"frame-ancestors {CONSOLE}"]


def test_a_page_of_the_app_has_an_agent_of_its_own() -> None:
    pairs = dict(answer(("Cross-Origin-Opener-Policy", "unsafe-none"), ("Origin-Agent-Cluster", "?0")))

    assert (pairs["cross-origin-opener-policy"], pairs["origin-agent-cluster"]) == ("same-origin", "?1")
    assert pairs["cross-origin-resource-policy"] == "same-origin"


def refusal(method: str = "GET", *, is_websocket: bool = False, **headers: str) -> str:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return BrowserRequest(method=method, headers=named, is_websocket=is_websocket).refusal(ORIGIN)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec_fetch_site": "none", "sec_fetch_mode": "navigate"},
        {"sec_fetch_site": "same-origin", "sec_fetch_mode": "cors"},
        {"sec_fetch_site": "same-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"},
    ],
)
def test_its_own_page_and_the_consoles_frame_may_read(headers: dict[str, str]) -> None:
    assert not refusal(**headers)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_its_own_page_may_write(method: str) -> None:
    assert not refusal(method, origin=ORIGIN)
    assert not refusal(method, sec_fetch_site="same-origin")


@pytest.mark.parametrize("origin", [CONSOLE, OTHER, "null", "http://evil.example", f"{ORIGIN}0"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_pages_may_neither_read_nor_write(origin: str, method: str) -> None:
    assert refusal(method, origin=origin)
    assert refusal(method, origin=origin, is_websocket=True)


@pytest.mark.parametrize("mode", ["no-cors", "cors", "websocket"])
def test_other_pages_of_the_site_load_no_part_of_it(mode: str) -> None:
    assert refusal(sec_fetch_site="same-site", sec_fetch_mode=mode)


def test_a_write_without_origin_is_refused() -> None:
    assert refusal("POST")
    assert refusal("POST", sec_fetch_site="none")
    assert refusal(is_websocket=True)


def test_service_workers_are_refused() -> None:
    assert refusal(service_worker="script", sec_fetch_site="same-origin")
