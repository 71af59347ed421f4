"""A door on this machine shows one page to browsers, and takes orders from that page alone."""

import http.client
import threading

import pytest

from paceline.client.requests import Response
from paceline.sdk.front import Front

PAGE = "/t9k/tensorboards/projects/default/name/demo/"
PROXY = "/api/v1/namespaces/default/services/tb-demo:http/proxy"


class Line:
    """The far end of a line to a cluster: it notes what is asked for."""

    def __init__(self):
        self.asked = []

    def send(self, request):
        self.asked.append((request.method, request.path))
        return Response(status=200)


@pytest.fixture
def line():
    return Line()


@pytest.fixture
def front(line):
    opened = Front(lambda: line, PAGE, 0)
    thread = threading.Thread(target=opened.serve, daemon=True)
    thread.start()
    yield opened
    opened._server.shutdown()
    opened.close()
    thread.join(5)


def ask(front, method, path, **headers):
    line = http.client.HTTPConnection("127.0.0.1", int(front.url.rsplit(":", 1)[1].strip("/")), timeout=10)
    line.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
    answer = line.getresponse()
    answer.read()
    line.close()
    return answer.status


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
