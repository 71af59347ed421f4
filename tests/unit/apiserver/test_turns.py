"""Long answers are made in slices: between them everybody else has a turn."""

import asyncio

import pytest

from paceline.apimachinery.builtin.registry import builtin_components, builtin_resources
from paceline.apimachinery.scheme import Scheme
from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.config import Server
from paceline.apiserver.crd.registry import LiveKinds
from paceline.apiserver.slicing import LARGE_BYTES
from paceline.host.effects import OneThread
from tests.unit.apiserver.client import CONFIG_MAPS, HOST, TABLE, TOKEN, Client
from tests.unit.apiserver.test_linear import owner

MANY = 1200
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


async def turns_during(work):
    """Count how often others have a turn while something is done."""
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    try:
        await asyncio.sleep(0)
        before = turns
        answer = await work
    finally:
        counting.cancel()
    return turns - before, answer


@pytest.fixture
async def many(client):
    for number in range(MANY):
        await client.post(CONFIG_MAPS, {"metadata": {"name": f"c{number}", "labels": {"a": "b"}}})
    return client


LISTS = {
    "a table": {"accept": TABLE},
    "metadata alone": {"accept": PARTIAL},
    "a selection by label": {"labelSelector": "a!=c"},
    "a selection by field": {"fieldSelector": "metadata.name!=c"},
    "a selection that finds nothing": {"labelSelector": "x"},
}


@pytest.mark.parametrize("case", LISTS)
async def test_a_long_list_gives_others_their_turn(many, case):
    turns, answer = await turns_during(many.get(CONFIG_MAPS, **LISTS[case]))

    assert answer.code == 200
    # A slice has 256 small objects at most.
    assert turns >= MANY // 256 - 1
    found = answer.json.get("items", answer.json.get("rows"))
    assert len(found) == (0 if "nothing" in case else MANY)


async def test_a_sliced_list_is_of_one_moment(many):
    """Whatever is written while it is made is not in it."""
    async with asyncio.TaskGroup() as group:
        listing = group.create_task(many.get(CONFIG_MAPS, accept=TABLE))
        await asyncio.sleep(0)
        await many.delete(f"{CONFIG_MAPS}/c{MANY - 1}")
        await many.post(CONFIG_MAPS, {"metadata": {"name": "zzz"}})

    names = [row["object"]["metadata"]["name"] for row in listing.result().json["rows"]]
    assert len(names) == MANY
    assert "zzz" not in names


async def test_a_page_of_a_selection_is_followed_by_the_rest(many):
    first = (await many.get(CONFIG_MAPS, labelSelector="a=b", limit="800")).json
    go_on = {"continue": first["metadata"]["continue"]}
    rest = (await many.get(CONFIG_MAPS, labelSelector="a=b", limit="800", **go_on)).json

    assert len(first["items"]) + len(rest["items"]) == MANY
    assert "continue" not in rest["metadata"]


@pytest.mark.parametrize("size", [10, LARGE_BYTES])
async def test_a_large_body_is_checked_on_another_thread(store, world, nodes, size):
    threads = set()

    class Spy(OneThread):
        async def run(self, call):
            threads.add("another")
            return await super().run(call)

    spy = Spy("large")
    kinds = LiveKinds(Scheme(resources=builtin_resources(), components=builtin_components()), store)
    gate = Authenticator(tokens={hash_token(TOKEN): "tester"}, hosts=frozenset({HOST}))
    made = {"store": store, "kinds": kinds, "clock": world.clock, "ids": world.ids, "nodes": nodes}
    client = Client(make_app(Server(gate=gate, blocking=spy, **made)))
    await client.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
    owners = [owner(number) for number in range(max(1, size // 60))]

    answer = await client.post(CONFIG_MAPS, {"metadata": {"name": "a", "ownerReferences": owners}})
    patched = await client.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
    spy.close()

    assert (answer.code, patched.code) == (201, 200)
    assert patched.json["data"] == {"k": "v"}
    assert bool(threads) is (size >= LARGE_BYTES)


PADDING = "x" * LARGE_BYTES
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
SERVICES = "/api/v1/namespaces/default/services"
PROTOBUF = {"content-type": "application/vnd.kubernetes.protobuf"}
LARGE_BODIES = {
    "protobuf": ("POST", "/nothing", b"k8s\x00" + PADDING.encode(), PROTOBUF),
    "a review": ("POST", REVIEWS, {"metadata": {"annotations": {"a": PADDING}}}, {}),
    "options of a deletion": ("DELETE", f"{CONFIG_MAPS}/a", {"apiVersion": PADDING}, {}),
    "options of many deletions": ("DELETE", CONFIG_MAPS, {"apiVersion": PADDING}, {}),
    "an eviction": ("POST", "/api/v1/namespaces/default/pods/a/eviction", {"metadata": {"name": PADDING}}, {}),
    "an event": ("POST", EVENTS, {"note": PADDING}, {}),
    "a service": ("POST", SERVICES, {"metadata": PADDING}, {}),
}


@pytest.mark.parametrize("case", LARGE_BODIES)
async def test_every_large_body_is_read_on_another_thread(store, world, nodes, case):
    """Also those that are not stored: YAML and protobuf take a second for each MiB."""
    method, path, body, headers = LARGE_BODIES[case]
    calls = []

    class Spy(OneThread):
        async def run(self, call):
            calls.append(call)
            return await super().run(call)

    spy = Spy("large")
    kinds = LiveKinds(Scheme(resources=builtin_resources(), components=builtin_components()), store)
    gate = Authenticator(tokens={hash_token(TOKEN): "tester"}, hosts=frozenset({HOST}))
    made = {"store": store, "kinds": kinds, "clock": world.clock, "ids": world.ids, "nodes": nodes}
    client = Client(make_app(Server(gate=gate, blocking=spy, **made)))
    await client.post("/api/v1/namespaces", {"metadata": {"name": "default"}})

    headers = {"content-type": "application/json", **headers}
    answer = await client.send(method, path, body, headers=headers)
    spy.close()

    assert answer.code < 500
    assert calls
