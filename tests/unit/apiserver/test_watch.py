"""Watch: ordered, whole, resumable, filtered right, and over when the client is gone."""

import asyncio
import itertools

import orjson
import pytest

from paceline.apimachinery.selector import LabelMatcher, parse_labels
from paceline.apiserver.encoding.negotiation import Representation
from paceline.apiserver.handlers import watch
from paceline.apiserver.handlers.list_options import Selection
from paceline.store.backend import Op, Record
from paceline.store.watch_hub import WatchHub
from paceline.testing.fixed_kinds import full_scheme
from tests.unit.apiserver.client import CONFIG_MAPS, PODS, TABLE, config_map, pod, scope_of

LISTEN = {"watch": "1"}


async def test_without_a_revision_what_is_there_comes_first(client):
    await client.post(CONFIG_MAPS, config_map("a"))
    async with client.stream(CONFIG_MAPS, **LISTEN) as stream:
        assert await stream.told(1) == [("ADDED", "a")]

        await client.post(CONFIG_MAPS, config_map("b"))
        await client.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
        await client.delete(f"{CONFIG_MAPS}/b")

        assert await stream.told(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_from_a_revision_only_what_came_after_is_told(client):
    await client.post(CONFIG_MAPS, config_map("a"))
    since = (await client.get(CONFIG_MAPS)).json["metadata"]["resourceVersion"]
    await client.post(CONFIG_MAPS, config_map("b"))

    async with client.stream(CONFIG_MAPS, resourceVersion=since, **LISTEN) as stream:
        assert await stream.told(1) == [("ADDED", "b")]


async def test_a_deleted_object_is_told_with_the_revision_of_its_end(client, store):
    made = (await client.post(CONFIG_MAPS, config_map("a"))).json
    since = made["metadata"]["resourceVersion"]
    async with client.stream(CONFIG_MAPS, resourceVersion=since, **LISTEN) as stream:
        await client.delete(f"{CONFIG_MAPS}/a")
        event = await stream.event()

    assert event["type"] == "DELETED"
    assert event["object"]["metadata"]["resourceVersion"] == str(store.revision)
    assert int(since) < store.revision


async def test_other_namespaces_and_kinds_are_not_told(client):
    await client.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    async with client.stream(CONFIG_MAPS, resourceVersion="2", **LISTEN) as stream:
        await client.post("/api/v1/namespaces/other/configmaps", config_map("there"))
        await client.post(PODS, pod("p"))
        await client.post(CONFIG_MAPS, config_map("here"))

        assert await stream.told(1) == [("ADDED", "here")]


async def test_an_object_that_enters_or_leaves_the_selection_is_told_as_added_or_deleted(client):
    await client.post(CONFIG_MAPS, config_map("in", labels={"team": "a"}))
    await client.post(CONFIG_MAPS, config_map("out", labels={"team": "b"}))
    async with client.stream(CONFIG_MAPS, labelSelector="team=a", **LISTEN) as stream:
        assert await stream.told(1) == [("ADDED", "in")]

        await client.patch(f"{CONFIG_MAPS}/out", {"data": {"k": "1"}})
        await client.patch(f"{CONFIG_MAPS}/out", {"metadata": {"labels": {"team": "a"}}})
        await client.patch(f"{CONFIG_MAPS}/out", {"data": {"k": "2"}})
        await client.patch(f"{CONFIG_MAPS}/in", {"metadata": {"labels": {"team": "b"}}})
        await client.delete(f"{CONFIG_MAPS}/in")
        await client.delete(f"{CONFIG_MAPS}/out")

        assert await stream.told(4) == [("ADDED", "out"), ("MODIFIED", "out"), ("DELETED", "in"), ("DELETED", "out")]


async def test_what_left_the_selection_between_list_and_watch_is_told_as_deleted(client):
    """A client that lists, waits and then watches must not keep what is no longer meant."""
    for name in ("moved", "gone", "stays"):
        await client.post(CONFIG_MAPS, config_map(name, labels={"team": "a"}))
    since = (await client.get(CONFIG_MAPS)).json["metadata"]["resourceVersion"]
    await client.patch(f"{CONFIG_MAPS}/moved", {"metadata": {"labels": {"team": "b"}}})
    await client.delete(f"{CONFIG_MAPS}/gone")
    await client.post(CONFIG_MAPS, config_map("new", labels={"team": "b"}))
    await client.post(CONFIG_MAPS, config_map("passing", labels={"team": "a"}))

    async with client.stream(CONFIG_MAPS, labelSelector="team=a", resourceVersion=since, **LISTEN) as stream:
        assert await stream.told(3) == [("DELETED", "moved"), ("DELETED", "gone"), ("ADDED", "passing")]

        await client.patch(f"{CONFIG_MAPS}/moved", {"data": {"k": "v"}})
        await client.delete(f"{CONFIG_MAPS}/stays")

        assert await stream.told(1) == [("DELETED", "stays")]


async def test_what_leaves_the_selection_is_told_as_it_last_was_in_it(client):
    made = (await client.post(CONFIG_MAPS, config_map("a", labels={"team": "a"}))).json
    since = made["metadata"]["resourceVersion"]
    async with client.stream(CONFIG_MAPS, labelSelector="team=a", resourceVersion=since, **LISTEN) as stream:
        left = (await client.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"team": "b"}}})).json
        told = (await stream.event())["object"]["metadata"]

    assert told["labels"] == {"team": "a"}
    assert told["resourceVersion"] == left["metadata"]["resourceVersion"]


async def test_what_a_start_forgot_counts_as_known_once(limits):
    """After a restart the kept history begins somewhere: a DELETED too many is harmless, one too few is not."""
    selection = Selection(labels=LabelMatcher(parse_labels("team=a")))
    blue = orjson.dumps(config_map("x", labels={"team": "b"}))
    feed = WatchHub(limits)
    steps = [Record(revision=n, key="/core/configmaps/default/x", op=Op.REPLACE, value=blue, created=1) for n in (5, 6)]

    feed.load(steps, floor=4, revision=6)
    records = await feed.watch("/core/", 4).take()

    assert [watch.event_type_of(record, selection) for record in records] == [b"DELETED", None]


async def test_fields_are_followed_too(client):
    await client.post(PODS, pod("p"))
    async with client.stream(PODS, fieldSelector="spec.nodeName=n1", **LISTEN) as stream:
        await client.post(f"{PODS}/p/binding", {"target": {"name": "n1"}})

        assert await stream.told(1) == [("ADDED", "p")]


async def test_one_object_can_be_watched_by_its_name(client):
    await client.post(CONFIG_MAPS, config_map("a"))
    await client.post(CONFIG_MAPS, config_map("ab"))
    async with client.stream(CONFIG_MAPS, fieldSelector="metadata.name=a", **LISTEN) as stream:
        await client.delete(f"{CONFIG_MAPS}/ab")
        await client.delete(f"{CONFIG_MAPS}/a")

        assert await stream.told(2) == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_revision_that_is_too_old_is_an_error_in_the_stream(client):
    await client.post(CONFIG_MAPS, config_map("a"))
    for number in range(80):
        await client.patch(f"{CONFIG_MAPS}/a", {"data": {"k": str(number)}})

    async with client.stream(CONFIG_MAPS, resourceVersion="1", **LISTEN) as stream:
        event = await stream.event()
        end = await stream.chunk()

    assert (stream.code, event["type"], end) == (200, "ERROR", None)
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


async def test_a_reader_that_falls_behind_the_history_is_told_so_and_gets_no_gap(client):
    async with client.stream(CONFIG_MAPS, resourceVersion="1", **LISTEN) as stream:
        assert await stream.chunk() == b""
        stream.reads.clear()
        await client.post(CONFIG_MAPS, config_map("a"))
        for number in range(80):
            await client.patch(f"{CONFIG_MAPS}/a", {"data": {"k": str(number)}})
        stream.reads.set()

        events = []
        while (event := await stream.event()) is not None:
            events.append(event)

    revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events[:-1]]
    assert revisions == list(range(2, 2 + len(revisions)))
    assert (events[-1]["type"], events[-1]["object"]["reason"]) == ("ERROR", "Expired")


async def test_a_revision_to_come_is_waited_for_and_nothing_before_it_is_told(client, store):
    async with client.stream(CONFIG_MAPS, resourceVersion=store.revision + 2, **LISTEN) as stream:
        for name in "abc":
            await client.post(CONFIG_MAPS, config_map(name))

        assert await stream.told(1) == [("ADDED", "c")]


async def test_what_is_there_cannot_be_told_as_of_a_revision_to_come(client, store):
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with client.stream(CONFIG_MAPS, resourceVersion=store.revision + 5, **query, **LISTEN) as stream:
        event = await stream.event()

    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 504, "Timeout")


async def test_the_initial_events_end_with_a_mark_when_asked(client, store):
    await client.post(CONFIG_MAPS, config_map("a"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}

    async with client.stream(CONFIG_MAPS, **query, **LISTEN) as stream:
        added, mark = await stream.event(), await stream.event()

    assert added["type"] == "ADDED"
    assert mark == {
        "type": "BOOKMARK",
        "object": {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "resourceVersion": str(store.revision),
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
        },
    }


async def test_bookmarks_tell_how_far_a_quiet_watch_is(client, store, monkeypatch):
    monkeypatch.setattr(watch, "BOOKMARK_SECONDS", 0.01)
    async with client.stream(PODS, resourceVersion="1", allowWatchBookmarks="true", **LISTEN) as stream:
        await client.post(CONFIG_MAPS, config_map("elsewhere"))
        while (mark := await stream.event())["object"]["metadata"]["resourceVersion"] != str(store.revision):
            assert mark["type"] == "BOOKMARK"

    assert mark["type"] == "BOOKMARK"


async def test_a_watch_ends_when_its_time_is_up(client, monkeypatch):
    monkeypatch.setattr(watch, "DEFAULT_SECONDS", 0.01)
    async with client.stream(CONFIG_MAPS, resourceVersion="1", **LISTEN) as stream:
        assert await stream.chunk() == b""
        assert await stream.chunk() is None


async def test_a_watch_is_let_go_of_when_the_client_hangs_up(client, store):
    prefix = "/core/configmaps/default/"
    async with client.stream(CONFIG_MAPS, **LISTEN) as stream:
        await stream.chunk()
        assert prefix in store._feed._watches

    assert prefix not in store._feed._watches


async def test_a_watch_ends_when_the_store_closes(client, store):
    async with client.stream(CONFIG_MAPS, resourceVersion="1", **LISTEN) as stream:
        assert await stream.chunk() == b""
        store._feed.close()
        assert await stream.chunk() is None


async def test_what_waits_goes_into_one_write(client):
    async with client.stream(CONFIG_MAPS, resourceVersion="1", **LISTEN) as stream:
        await stream.chunk()
        before = stream.writes
        await asyncio.gather(*(client.post(CONFIG_MAPS, config_map(f"c{number}")) for number in range(16)))
        await stream.told(16)

        assert stream.writes - before < 8


async def test_tables_are_told_row_by_row_with_the_columns_once(client):
    await client.post(PODS, pod("p"))
    async with client.stream(PODS, accept=TABLE, **LISTEN) as stream:
        first = await stream.event()
        await client.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
        second = await stream.event()

    assert first["object"]["columnDefinitions"][0]["name"] == "Name"
    assert second["object"]["columnDefinitions"] is None
    assert (first["object"]["rows"][0]["cells"][2], second["object"]["rows"][0]["cells"][2]) == ("Pending", "Running")


@pytest.mark.parametrize("size", [0, 1, 2000])
async def test_any_number_of_objects_is_told_first(client, store, size):
    body = b'{"metadata":{"name":"x","resourceVersion":"1"},"data":{"k":"' + b"v" * 500 + b'"}}'
    await asyncio.gather(
        *(store.create(f"/core/configmaps/default/c{number}", lambda _: body) for number in range(size))
    )
    async with client.stream(CONFIG_MAPS, **LISTEN) as stream:
        await client.post(CONFIG_MAPS, config_map("last"))
        events = [await stream.event() for _ in range(size + 1)]

    assert [event["type"] for event in events] == ["ADDED"] * (size + 1)
    assert events[-1]["object"]["metadata"]["name"] == "last"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"resourceVersionMatch": "NotOlderThan"}, "is forbidden for watch unless sendInitialEvents is provided"),
        ({"sendInitialEvents": "true"}, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        (
            {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
            'Unsupported value: "Exact": supported values: "NotOlderThan"',
        ),
    ],
)
async def test_options_that_contradict_each_other_are_refused(client, query, told):
    said = await client.get(CONFIG_MAPS, **query, **LISTEN)

    assert said.code == 422
    assert told in said.message
    assert said.message.startswith('ListOptions.meta.k8s.io "" is invalid: ')


async def test_without_initial_events_a_watch_begins_now(client):
    await client.post(CONFIG_MAPS, config_map("before"))
    query = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    async with client.stream(CONFIG_MAPS, **query, **LISTEN) as stream:
        assert await stream.chunk() == b""
        await client.post(CONFIG_MAPS, config_map("after"))

        assert await stream.told(1) == [("ADDED", "after")]


async def test_a_watch_that_is_told_nothing_of_much_still_gets_bookmarks(client, store, monkeypatch):
    """Else it would fall behind what is kept without a chance to know."""
    monkeypatch.setattr(watch, "BOOKMARK_SECONDS", 0.01)
    query = {"allowWatchBookmarks": "1", "labelSelector": "team=nobody", "resourceVersion": str(store.revision)}
    async with client.stream(CONFIG_MAPS, **query, **LISTEN) as stream, asyncio.TaskGroup() as group:

        async def keep_busy():
            for number in itertools.count():
                await client.post(CONFIG_MAPS, config_map(f"c{number}"))

        busy = group.create_task(keep_busy())
        marks = [await stream.event() for _ in range(3)]
        busy.cancel()

    assert [mark["type"] for mark in marks] == ["BOOKMARK"] * 3
    revisions = [int(mark["object"]["metadata"]["resourceVersion"]) for mark in marks]
    assert revisions == sorted(set(revisions))


async def test_a_bookmark_in_a_table_is_a_row_of_nothing(client):
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with client.stream(CONFIG_MAPS, accept=TABLE, **query, **LISTEN) as stream:
        mark = await stream.event()

    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["kind"] == "Table"
    assert mark["object"]["rows"][0]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


class Deaf:
    """A client that takes the head of an answer, and then nothing."""

    def __init__(self):
        self.heard = []
        self.is_cut = False

    async def receive(self):
        return await asyncio.Event().wait()

    async def send(self, message):
        self.heard.append(message)
        if len(self.heard) > 1:
            await asyncio.Event().wait()

    def abort(self):
        self.is_cut = True


async def test_a_client_that_does_not_read_is_cut_off(client, store, monkeypatch):
    monkeypatch.setattr(watch, "STALL_SECONDS", 0.01)
    await client.post(CONFIG_MAPS, config_map("a"))
    deaf = Deaf()
    scope = scope_of("GET", CONFIG_MAPS, query=LISTEN) | {"state": {"abort": deaf.abort}}

    async with asyncio.timeout(30):
        await client.app(scope, deaf.receive, deaf.send)

    assert deaf.is_cut
    assert all(message.get("more_body", True) for message in deaf.heard), "it was told that this is all"
    assert "/core/configmaps/default/" not in store._feed._watches


async def test_those_who_read_are_told_all_while_others_do_not(client):
    deaf = Deaf()
    scope = scope_of("GET", CONFIG_MAPS, query=LISTEN)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(client.app(scope, deaf.receive, deaf.send)) for _ in range(3)]
        async with client.stream(CONFIG_MAPS, **LISTEN) as stream:
            for number in range(50):
                await client.post(CONFIG_MAPS, config_map(f"c{number}"))
            assert await stream.told(50) == [("ADDED", f"c{number}") for number in range(50)]
        for task in tasks:
            task.cancel()


def test_a_line_is_written_once_for_all_who_follow():
    cache = watch.EventCache()
    value = orjson.dumps(config_map("x"))
    record = Record(revision=5, key="/core/configmaps/default/x", op=Op.REPLACE, value=value, created=1)
    resource = full_scheme().find("", "v1", "configmaps")

    first, second = (cache.one(record, b"MODIFIED", form=Representation.OBJECT, resource=resource) for _ in range(2))

    assert first is second
    assert cache.one(record, b"ADDED", form=Representation.OBJECT, resource=resource) != first
    assert b'"data"' not in cache.one(record, b"MODIFIED", form=Representation.METADATA, resource=resource)


def test_lines_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr(watch, "CACHE_BYTES", 1000)
    cache = watch.EventCache()
    resource = full_scheme().find("", "v1", "configmaps")
    for revision in range(100):
        record = Record(revision=revision, key="/core/configmaps/default/x", op=Op.REPLACE, value=b"{}", created=1)
        cache.one(record, b"MODIFIED", form=Representation.OBJECT, resource=resource)

    assert sum(map(len, cache._lines.values())) <= 1000
