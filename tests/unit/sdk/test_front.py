"""A door on this machine shows one page to browsers, and takes orders from that page alone."""

import contextlib
import http.client
import socket
import threading
from urllib.parse import urlsplit

import pytest

from paceline.client.requests import Response
from paceline.sdk.local_proxy import LocalProxy, ProxiedSite

PAGE = "/t9k/tensorboards/projects/default/name/demo/"
PROXY = "/api/v1/namespaces/default/services/tb-demo:http/proxy"

BASE = "/t9k/notebooks/projects/default/name/desk"
WAY = f"/api/v1/namespaces/default/services/nb-desk:http/proxy{BASE}"


class Line:
    """The far end of a line to a cluster: it notes what is asked for."""

    def __init__(self):
        self.asked = []
        self.headers = {}
        self.answer = Response(status=200)
        self.far = None

    def send(self, request):
        self.asked.append((request.method, request.path))
        self.headers = {name.lower(): text for name, text in request.headers}
        return self.answer

    def upgrade(self, request):
        self.asked.append((request.method, request.path))
        self.headers = {name.lower(): text for name, text in request.headers}
        self.far, ours = socket.socketpair()
        return b"HTTP/1.1 101 Switching Protocols\r\n\r\n", b"early ", ours


@pytest.fixture
def line():
    return Line()


@pytest.fixture
def front(line):
    with opened(line, ProxiedSite(page=PAGE)) as front:
        yield front


@pytest.fixture
def desk(line):
    with opened(line, ProxiedSite(page=f"{BASE}/lab", token="to/ken", key="let-me-in")) as front:
        yield front


@contextlib.contextmanager
def opened(line, site):
    opened = LocalProxy(lambda: line, site, 0)
    thread = threading.Thread(target=opened.serve, daemon=True)
    thread.start()
    yield opened
    opened._server.shutdown()
    opened.close()
    thread.join(5)


def ask(front, method, path, **headers):
    return whole(front, method, path, **headers).status


def whole(front, method, path, **headers):
    line = http.client.HTTPConnection("127.0.0.1", port_of(front), timeout=10)
    line.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
    answer = line.getresponse()
    answer.read()
    line.close()
    return answer


def port_of(front):
    return urlsplit(front.url).port


def enter(desk):
    """Open the printed address as a browser does, and give the cookie it has then."""
    parts = urlsplit(desk.url)
    answer = whole(desk, "GET", f"{parts.path}?{parts.query}")
    assert (answer.status, answer.headers["Location"]) == (302, f"{BASE}/lab")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    return cookie.partition(";")[0]


def test_the_door_leads_to_its_page_and_nowhere_else(front, line):
    assert ask(front, "GET", "/") == 200
    assert ask(front, "GET", "/api/v1/secrets") == 200
    assert ask(front, "GET", "/../../secrets") == 404
    assert ask(front, "GET", "/%2e%2e/secrets") == 404
    assert line.asked == [("GET", f"{PROXY}/"), ("GET", f"{PROXY}/api/v1/secrets")]


def test_a_page_of_another_name_is_turned_away(front, line):
    assert ask(front, "GET", "/", Host="evil.example.org:80") == 403
    assert line.asked == []


@pytest.mark.parametrize(("site", "code"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200)])
def test_orders_come_from_the_page_itself(front, line, site, code):
    assert ask(front, "POST", "/elsewhere", Sec_Fetch_Site=site) == code
    assert line.asked == ([("POST", f"{PROXY}/elsewhere")] if code == 200 else [])


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_a_notebook_takes_every_method_from_whoever_has_the_key(desk, line, method):
    cookie = enter(desk)

    assert ask(desk, method, f"{BASE}/api/contents?x=1", Cookie=cookie, Sec_Fetch_Site="same-origin") == 200
    assert line.asked == [(method, f"{WAY}/api/contents?x=1&token=to%2Fken")]


def test_without_the_key_nobody_gets_in(desk, line):
    name = enter(desk).partition("=")[0]

    for headers in ({}, {"Cookie": f"{name}=guess"}, {"Cookie": "other=let-me-in"}, {"Cookie": "\x01=;;=,"}):
        for path in ("/", f"{BASE}/lab", "/?key=guess", f"{BASE}/lab?key=let-me-in", f"{BASE}/lab?token=to/ken"):
            assert ask(desk, "GET", path, **headers) == 401
    assert line.asked == []


def test_a_notebook_door_leads_nowhere_else(desk, line):
    cookie = enter(desk)

    for path in ("/api/v1/secrets", "/t9k/notebooks/projects/default/name/other/lab", f"{BASE}/../other/lab"):
        assert ask(desk, "GET", path, Cookie=cookie) == 404
    assert whole(desk, "GET", "/", Cookie=cookie).headers["Location"] == f"{BASE}/lab"
    assert line.asked == []


def test_what_says_whose_browser_it_is_stays_here(desk, line):
    mine = {"Cookie": enter(desk), "Origin": f"http://127.0.0.1:{port_of(desk)}", "Referer": "http://127.0.0.1/x"}
    marks = {"Sec_Fetch_Site": "same-origin", "Sec_Fetch_Mode": "cors", "Authorization": "token x", "Accept": "text/x"}

    assert ask(desk, "POST", f"{BASE}/api", **mine, **marks) == 200

    assert {name for name in line.headers if name != "accept-encoding"} == {"accept"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.test"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "same-site"},
    ],
    ids=lambda headers: next(iter(headers.values())),
)
def test_other_pages_give_no_orders_to_a_notebook_even_with_its_cookie(desk, line, headers):
    cookie = enter(desk)

    assert ask(desk, "POST", f"{BASE}/api/kernels", Cookie=cookie, **headers) == 403
    assert ask(desk, "GET", f"{BASE}/api/kernels/x/channels", Cookie=cookie, Upgrade="websocket", **headers) == 403
    assert line.asked == []


def test_the_programs_password_and_cookies_do_not_reach_the_browser(desk, line):
    cookie = enter(desk)
    location = f"{WAY}/lab?token=to%2Fken&reset"
    line.answer = Response(status=302, headers=(("location", location), ("set-cookie", "_xsrf=1")))

    answer = whole(desk, "GET", f"{BASE}/", Cookie=cookie)

    assert answer.status == 302
    assert answer.headers["Location"].partition("?")[0] == f"{BASE}/lab"
    assert "to" not in answer.headers["Location"].partition("?")[2]
    assert answer.headers["Set-Cookie"] is None


def test_a_websocket_is_passed_on_both_ways_until_one_side_hangs_up(desk, line):
    cookie = enter(desk)
    with socket.create_connection(("127.0.0.1", port_of(desk)), timeout=10) as browser:
        head = (
            f"GET {BASE}/api/kernels/k/channels HTTP/1.1",
            f"Host: 127.0.0.1:{port_of(desk)}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Key: k",
            f"Cookie: {cookie}",
        )
        browser.sendall("\r\n".join((*head, "", "")).encode())
        assert read_until(browser, b"early ").startswith(b"HTTP/1.1 101 ")
        browser.sendall(b"question")
        assert read_until(line.far, b"question")
        line.far.sendall(b"answer")
        assert read_until(browser, b"answer")
        line.far.close()
        assert browser.recv(10) == b""

    assert line.asked == [("GET", f"{WAY}/api/kernels/k/channels?token=to%2Fken")]
    assert (line.headers["upgrade"], line.headers["connection"]) == ("websocket", "Upgrade")
    assert "cookie" not in line.headers


def read_until(sock, end):
    sock.settimeout(10)
    data = b""
    while not data.endswith(end):
        piece = sock.recv(1000)
        assert piece, data
        data += piece
    return data


def exchange(front, *parts):
    """Everything that is answered on one connection."""
    with socket.create_connection(("127.0.0.1", port_of(front)), timeout=10) as line:
        line.sendall(b"".join(parts))
        line.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: line.recv(65536), b""))


SMUGGLED = b"POST /order HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Length: 0\r\n\r\n"
LENGTH = f"Content-Length: {len(SMUGGLED)}\r\n".encode()
CHUNKS = b"Transfer-Encoding: chunked\r\n"
UNREAD = {
    "of another page": b"POST / HTTP/1.1\r\nHost: 127.0.0.1:1\r\nOrigin: http://evil.example.org\r\n" + LENGTH,
    "of another name": b"GET / HTTP/1.1\r\nHost: evil.example.org:1\r\n" + LENGTH,
    "in chunks": b"POST / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n" + CHUNKS,
    "of two lengths": b"POST / HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Length: 0\r\n" + LENGTH,
    "of a negative length": b"POST / HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Length: -1\r\n",
}


@pytest.mark.parametrize("case", UNREAD)
def test_a_body_that_is_not_read_is_no_request(front, line, case):
    """Another page would write requests with headers of its own choice that way."""
    answers = exchange(front, UNREAD[case], b"\r\n", SMUGGLED)

    assert answers.count(b"HTTP/1.1 ") == 1
    assert answers.split()[1] in (b"400", b"403")
    assert line.asked == []


def test_a_connection_goes_on_after_a_body_that_was_read(front, line):
    first = b"POST /first HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Length: 3\r\n\r\nabc"

    assert exchange(front, first, SMUGGLED).count(b"HTTP/1.1 200") == 2
    assert [path for _, path in line.asked] == [f"{PROXY}/first", f"{PROXY}/order"]
