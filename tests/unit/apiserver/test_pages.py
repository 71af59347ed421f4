"""The pages of TensorBoards and Notebooks: at paths of their own, and counted."""

from datetime import timedelta

import pytest

from paceline.apiserver.activity import MAX_SERVICES
from tests.unit.apiserver.client import HOST, NAMESPACE, PODS, pod
from tests.unit.apiserver.test_exec import meet

SERVICES, ENDPOINTS = f"{NAMESPACE}/services", f"{NAMESPACE}/endpoints"
BOARD, DESK = ("/t9k/tensorboards/projects/default/name/curves", "/t9k/notebooks/projects/default/name/desk")
WEB = [{"name": "main", "image": "i", "ports": [{"containerPort": 6006}]}]


async def serve(client, name, *, is_up=True):
    """Make a service with a pod behind it."""
    spec = {"selector": {"a": "b"}, "ports": [{"name": "http", "port": 80, "targetPort": 6006}]}
    assert (await client.post(SERVICES, {"metadata": {"name": name}, "spec": spec})).code == 201
    address = {"ip": "10.0.0.1", "targetRef": {"kind": "Pod", "namespace": "default", "name": "p"}}
    subsets = [{"addresses": [address], "ports": [{"name": "http", "port": 6006}]}] if is_up else []
    body = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name}, "subsets": subsets}
    assert (await client.post(ENDPOINTS, body)).code == 201


@pytest.fixture
async def there(client):
    await client.post(PODS, pod("p", nodeName="n1", containers=WEB))
    for name in ("tb-curves", "nb-desk"):
        await serve(client, name)
    return client


PATHS = {
    f"{BOARD}/": "/",
    f"{BOARD}/data/a%2Fb": "/data/a%2Fb",
    **{path: path for path in (f"{DESK}/lab", f"{DESK}/api/contents/a//b", DESK)},
}


@pytest.mark.parametrize(("path", "asked"), PATHS.items())
async def test_a_page_is_asked_for_at_its_own_path(there, nodes, path, asked):
    """JupyterLab knows the path at which it lies; TensorBoard need not, for its links are relative."""
    said = await there.get(path)

    assert said.code == 200
    (passed,) = nodes.passed
    assert passed["raw_path"] == f"/proxy/http/default/p/6006{asked}".encode()
    assert dict(passed["headers"])[b"x-forwarded-uri"] == path.encode()


async def test_a_websocket_of_a_page_is_passed_on_too(there, nodes):
    nodes.answer = [{"type": "websocket.accept"}]

    assert await meet(there, f"{DESK}/api/kernels/1/channels") == nodes.answer
    assert nodes.passed[0]["raw_path"] == f"/proxy/http/default/p/6006{DESK}/api/kernels/1/channels".encode()


async def test_a_redirection_of_a_page_is_left_as_it_is(there, nodes):
    for told, seen in ((f"{DESK}/login", f"{DESK}/login"), (f"https://{HOST}{DESK}/login", f"{DESK}/login")):
        head = {"type": "http.response.start", "status": 302, "headers": [(b"location", told.encode())]}
        nodes.answer = [head, {"type": "http.response.body", "body": b""}]
        assert (await there.get(f"{DESK}/lab")).header("location") == [seen]


async def test_a_redirection_of_a_page_that_does_not_know_its_path_leads_below_it(there, nodes):
    assert (await there.get(BOARD)).header("location") == [f"{BOARD}/"]
    for told, seen in (("/x", f"{BOARD}/x"), (f"https://{HOST}/x", f"{BOARD}/x"), ("x", "x")):
        head = {"type": "http.response.start", "status": 302, "headers": [(b"location", told.encode())]}
        nodes.answer = [head, {"type": "http.response.body", "body": b""}]
        assert (await there.get(f"{BOARD}/")).header("location") == [seen]


NOWHERE = [
    "/t9k",
    "/t9k/tensorboards",
    "/t9k/explorers/projects/default/name/curves/",
    "/t9k/tensorboards/projects/default/name/",
    "/t9k/tensorboards/projects/default/name/other/",
    "/t9k/tensorboards/projects/default/name/desk/",
    "/t9k/tensorboards/projects/other/name/curves/",
    "/t9k/tensorboards/projects/default%2Fx/name/curves/",
    "/t9k/tensorboards/projects/default/name/curves:http/",
]


@pytest.mark.parametrize("path", NOWHERE)
async def test_a_page_that_is_not_there_is_not_found(there, nodes, path):
    said = await there.get(path)

    assert said.code in {400, 404}
    assert nodes.passed == []


async def test_nobody_sees_a_page_without_a_token(there, nodes):
    said = await there.send("GET", f"{BOARD}/", headers={"authorization": None})

    assert said.code == 401
    assert nodes.passed == []


# Counting


HTML, ANY = {"accept": "text/html,*/*"}, {"accept": "*/*"}
OPENINGS = {
    "the front page of a TensorBoard": (("GET", f"{BOARD}/", ANY), True),
    "the front page of a notebook": (("GET", f"{DESK}/lab", ANY), True),
    "another page, in a browser": (("GET", f"{DESK}/lab/tree/a.ipynb", HTML), True),
    "what an open page asks for": (("GET", f"{DESK}/api/sessions", ANY), False),
    "what a page writes": (("PUT", f"{DESK}/lab", HTML), False),
    "by the proxy of the service": (("GET", f"{SERVICES}/tb-curves:http/proxy/", ANY), True),
}


@pytest.mark.parametrize(("asked", "is_opening"), OPENINGS.values(), ids=OPENINGS)
async def test_a_visit_is_counted(there, world, visits, asked, is_opening):
    method, path, headers = asked
    service = "tb-curves" if "curves" in path else "nb-desk"

    await there.send(method, path, headers=headers)

    now = world.clock.now()
    assert visits.used("default", service) == now
    assert visits.opened("default", service) == (now if is_opening else None)


async def test_what_does_not_answer_is_counted_too(client, world, visits):
    await serve(client, "tb-curves", is_up=False)

    said = await client.get(f"{BOARD}/")

    assert said.code == 503
    assert visits.opened("default", "tb-curves") == world.clock.now()


async def test_what_is_not_there_is_not_counted(client, visits):
    await client.get(f"{BOARD}/")

    assert visits.used("default", "tb-curves") is None


async def test_while_an_answer_is_under_way_it_is_in_use(there, world, nodes, visits):
    seen = []

    async def pass_on(_scope, _receive, send):
        world.clock.advance(60)
        seen.append(visits.used("default", "nb-desk") == world.clock.now())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    nodes.pass_on = pass_on
    await there.get(f"{DESK}/api")
    ended = world.clock.now()
    world.clock.advance(60)

    assert seen == [True]
    assert visits.used("default", "nb-desk") == ended


def test_those_who_listen_hear_of_every_opening_and_now_and_then_of_use(world, visits):
    heard = []
    visits.listen(lambda *service: heard.append(service))

    for seconds, is_opening, count in ((0, False, 1), (4, False, 1), (0, True, 2), (4, False, 2), (1, False, 3)):
        world.clock.advance(seconds)
        visits.note("default", "s", is_opening=is_opening)
        assert heard == [("default", "s")] * count


def test_the_service_that_was_used_longest_ago_is_forgotten_first(world, visits):
    visits.note("default", "first", is_opening=False)
    for number in range(MAX_SERVICES - 1):
        visits.note("default", str(number), is_opening=False)
    visits.note("default", "first", is_opening=False)
    visits.note("default", "last", is_opening=False)

    assert visits.used("default", "0") is None
    assert world.clock.now() - visits.used("default", "first") == timedelta(0)
