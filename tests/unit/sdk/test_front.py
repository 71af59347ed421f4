"""A door on this machine shows one page to browsers, and takes orders from that page alone."""

import http.client
import threading

import pytest

from paceline.sdk.front import Front

PAGE = "/t9k/tensorboard/default/demo/"


@pytest.fixture
def front(session):
    opened = Front(lambda: session.cluster, PAGE, 0)
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


def test_the_door_leads_to_its_page_and_nowhere_else(front):
    assert ask(front, "GET", "/") == 302
    assert ask(front, "GET", "/api/v1/secrets") == 404
    assert ask(front, "GET", f"{PAGE}../../secrets") == 404


def test_a_page_of_another_name_is_turned_away(front):
    assert ask(front, "GET", "/", Host="evil.example.org:80") == 403


@pytest.mark.parametrize(("site", "code"), [("cross-site", 403), ("same-site", 403), ("same-origin", 404)])
def test_orders_come_from_the_page_itself(front, site, code):
    assert ask(front, "POST", "/elsewhere", Sec_Fetch_Site=site) == code
