"""Get and list: forms, selections, pages, revisions."""

import asyncio
import json
from base64 import urlsafe_b64encode

import orjson
import pytest
import yaml

from paceline.apiserver import http_types
from paceline.apiserver.encoding.negotiation import SOME
from tests.unit.apiserver.client import CONFIG_MAPS, NAMESPACE, PODS, TABLE, WIDGETS, config_map, pod, scope_of, widget

# As many revisions does the store of these tests keep.
HISTORY = 50

METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def names(said):
    return [item["metadata"]["name"] for item in said.json["items"]]


async def fill(client, count):
    for number in range(count):
        await client.post(CONFIG_MAPS, config_map(f"c{number}", labels={"odd": str(number % 2)}))


async def test_a_missing_object_is_said_to_be_missing(client):
    said = await client.get(f"{WIDGETS}/nope")

    assert said.code == 404
    assert said.message == 'widgets.toys.test "nope" not found'
    assert said.json["details"] == {"name": "nope", "group": "toys.test", "kind": "widgets"}


async def test_a_list_is_whole_sorted_and_at_one_revision(client, store):
    await fill(client, 3)

    said = await client.get(CONFIG_MAPS)

    assert (said.json["kind"], said.json["apiVersion"]) == ("ConfigMapList", "v1")
    assert said.json["metadata"] == {"resourceVersion": str(store.revision)}
    assert names(said) == ["c0", "c1", "c2"]


async def test_a_list_over_all_namespaces_holds_them_all(client):
    await client.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    await client.post("/api/v1/namespaces/other/configmaps", config_map("there"))
    await client.post(CONFIG_MAPS, config_map("here"))

    assert names(await client.get("/api/v1/configmaps")) == ["here", "there"]
    assert names(await client.get(CONFIG_MAPS)) == ["here"]


async def test_namespaces_are_listed_like_anything_else(client):
    assert names(await client.get("/api/v1/namespaces")) == ["default"]
    assert (await client.get("/api/v1/namespaces/default")).json["status"] == {"phase": "Active"}


LABELS = {
    "odd=1": ["c1", "c3"],
    "odd==1": ["c1", "c3"],
    "odd!=1": ["c0", "c2"],
    "odd in (0,1)": ["c0", "c1", "c2", "c3"],
    "odd notin (0)": ["c1", "c3"],
    "odd": ["c0", "c1", "c2", "c3"],
    "!odd": [],
    "odd>0": ["c1", "c3"],
    "odd=1,odd=0": [],
}


@pytest.mark.parametrize(("selector", "expected"), LABELS.items(), ids=LABELS)
async def test_labels_select(client, selector, expected):
    await fill(client, 4)

    assert names(await client.get(CONFIG_MAPS, labelSelector=selector)) == expected


async def test_fields_select(client):
    await client.post(PODS, pod("a"))
    await client.post(PODS, pod("b", restartPolicy="Never"))
    await client.post(f"{PODS}/b/binding", {"target": {"name": "node-1"}})

    selected = {
        selector: names(await client.get(PODS, fieldSelector=selector))
        for selector in ("metadata.name=a", "metadata.name!=a", "spec.nodeName=node-1", "spec.nodeName=")
    }
    everywhere = await client.get("/api/v1/pods", fieldSelector="metadata.namespace=default,status.phase=Pending")

    assert selected == {
        "metadata.name=a": ["a"],
        "metadata.name!=a": ["b"],
        "spec.nodeName=node-1": ["b"],
        "spec.nodeName=": ["a"],
    }
    assert names(everywhere) == ["a", "b"]


async def test_events_are_selected_by_what_they_are_about(client):
    for name, uid in (("one", "u1"), ("two", "u2")):
        about = {"kind": "Pod", "name": name, "namespace": "default", "uid": uid}
        await client.post(f"{NAMESPACE}/events", {"metadata": {"generateName": "e-"}, "involvedObject": about})

    said = await client.get(f"{NAMESPACE}/events", fieldSelector="involvedObject.uid=u2,involvedObject.kind=Pod")

    assert [item["involvedObject"]["name"] for item in said.json["items"]] == ["two"]


async def test_pages_together_are_the_list(client):
    await fill(client, 5)

    first = await client.get(CONFIG_MAPS, limit=2)
    second = await client.get(CONFIG_MAPS, limit=2, **{"continue": first.json["metadata"]["continue"]})
    third = await client.get(CONFIG_MAPS, limit=2, **{"continue": second.json["metadata"]["continue"]})

    assert [names(each) for each in (first, second, third)] == [["c0", "c1"], ["c2", "c3"], ["c4"]]
    assert first.json["metadata"]["remainingItemCount"] == 3
    assert "continue" not in third.json["metadata"]


async def test_pages_show_the_moment_of_the_first_whatever_happens_meanwhile(client):
    await fill(client, 4)
    first = await client.get(CONFIG_MAPS, limit=2)
    await client.delete(f"{CONFIG_MAPS}/c2")
    await client.post(CONFIG_MAPS, config_map("c3a"))
    await client.patch(f"{CONFIG_MAPS}/c3", {"data": {"k": "new"}})

    second = await client.get(CONFIG_MAPS, **{"continue": first.json["metadata"]["continue"]})

    assert names(second) == ["c2", "c3"]
    assert "k" not in (second.json["items"][1].get("data") or {})
    assert second.json["metadata"]["resourceVersion"] == first.json["metadata"]["resourceVersion"]


async def test_a_page_of_a_selection_is_as_long_as_was_asked(client):
    await fill(client, 6)

    first = await client.get(CONFIG_MAPS, limit=2, labelSelector="odd=1")
    after = first.json["metadata"]["continue"]
    second = await client.get(CONFIG_MAPS, limit=2, labelSelector="odd=1", **{"continue": after})

    assert (names(first), names(second)) == (["c1", "c3"], ["c5"])
    assert "remainingItemCount" not in first.json["metadata"]


async def test_a_list_that_is_not_kept_any_more_expires_and_says_how_to_go_on(client):
    await fill(client, 4)
    first = await client.get(CONFIG_MAPS, limit=2)
    for number in range(HISTORY + 1):
        await client.patch(f"{CONFIG_MAPS}/c3", {"data": {"k": str(number)}})
        await client.get(CONFIG_MAPS, limit=1)

    expired = await client.get(CONFIG_MAPS, **{"continue": first.json["metadata"]["continue"]})
    rest = await client.get(CONFIG_MAPS, **{"continue": expired.json["metadata"]["continue"]})

    assert (expired.code, expired.json["reason"]) == (410, "Expired")
    assert names(rest) == ["c2", "c3"]


async def test_a_revision_to_come_is_refused_and_one_that_passed_is_shown_newest(client, store):
    await fill(client, 2)

    ahead = await client.get(CONFIG_MAPS, resourceVersion=store.revision + 1)
    passed = await client.get(CONFIG_MAPS, resourceVersion=store.revision - 1)
    exactly = await client.get(CONFIG_MAPS, resourceVersion=store.revision - 1, resourceVersionMatch="Exact")

    assert (ahead.code, ahead.json["reason"], ahead.json["details"]["retryAfterSeconds"]) == (504, "Timeout", 1)
    assert names(passed) == ["c0", "c1"]
    assert names(exactly) == ["c0"]
    assert exactly.json["metadata"]["resourceVersion"] == str(store.revision - 1)


async def test_a_table_has_the_columns_people_know(client, world):
    await client.post(PODS, pod("p"))
    world.clock.advance(75)

    table = (await client.get(PODS, accept=TABLE)).json

    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    shown = [column["name"] for column in table["columnDefinitions"] if column["priority"] == 0]
    assert shown == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert table["rows"][0]["cells"][:5] == ["p", "0/1", "Pending", "0", "75s"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert table["rows"][0]["object"]["metadata"]["name"] == "p"


async def test_a_kind_of_ours_shows_its_own_columns(client):
    await client.post(WIDGETS, widget("w"))
    await client.patch(f"{WIDGETS}/w/status", {"status": {"phase": "Up"}})

    one = (await client.get(f"{WIDGETS}/w", accept=TABLE)).json
    whole = (await client.get(WIDGETS, accept=TABLE, includeObject="Object")).json
    bare = (await client.get(WIDGETS, accept=TABLE, includeObject="None")).json

    assert [column["name"] for column in one["columnDefinitions"]] == ["Name", "Phase", "Size"]
    assert one["columnDefinitions"][0]["format"] == "name"
    assert one["rows"][0]["cells"] == ["w", "Up", 1]
    assert whole["rows"][0]["object"]["spec"] == {"size": 1}
    assert bare["rows"][0]["object"] is None


async def test_metadata_alone_can_be_asked_for(client):
    await client.post(PODS, pod("p"))

    one, all_of_them = await client.get(f"{PODS}/p", accept=METADATA), await client.get(PODS, accept=METADATA_LIST)

    assert set(one.json) == {"kind", "apiVersion", "metadata"}
    assert all_of_them.json["kind"] == "PartialObjectMetadataList"
    assert names(all_of_them) == ["p"]


FORMS = {
    "nothing said": (None, 200),
    "anything": ("*/*", 200),
    "JSON among others": ("application/vnd.kubernetes.protobuf,application/json", 200),
    "a table to come or JSON": ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", 200),
    "a page for people": ("text/html", 406),
    "a form of YAML that is not there": ("application/yaml;as=Nothing;v=v1;g=meta.k8s.io", 406),
}


@pytest.mark.parametrize(("accept", "code"), FORMS.values(), ids=FORMS)
async def test_the_form_is_agreed_on(client, accept, code):
    said = await client.get(PODS, accept=accept)

    assert said.code == code
    assert yaml.safe_load(said.body)["kind"] == ("PodList" if code == 200 else "Status")


async def test_any_kept_revision_can_be_listed_exactly(client, store):
    seen = {}
    for step in range(12):
        name = f"c{step % 4}"
        if step in {5, 7}:
            await client.delete(f"{CONFIG_MAPS}/{name}")
        elif step >= 4 and step not in {9, 11}:
            await client.patch(f"{CONFIG_MAPS}/{name}", {"data": {"k": str(step)}})
        else:
            await client.post(CONFIG_MAPS, config_map(name, labels={"step": str(step)}))
        seen[store.revision] = (await client.get(CONFIG_MAPS)).json["items"]

    for revision, items in seen.items():
        said = await client.get(CONFIG_MAPS, resourceVersion=revision, resourceVersionMatch="Exact")
        assert said.json["metadata"]["resourceVersion"] == str(revision)
        assert said.json["items"] == items


async def test_pages_of_an_older_list_are_as_of_its_revision(client, store):
    await fill(client, 3)
    revision = store.revision
    await client.delete(f"{CONFIG_MAPS}/c2")

    first = await client.get(CONFIG_MAPS, resourceVersion=revision, limit=2)
    rest = await client.get(CONFIG_MAPS, **{"continue": first.json["metadata"]["continue"]})

    assert (names(first), names(rest)) == (["c0", "c1"], ["c2"])
    assert rest.json["metadata"]["resourceVersion"] == str(revision)


async def test_an_exact_list_that_is_too_old_has_expired(client, store):
    await fill(client, 1)
    revision = store.revision
    for number in range(HISTORY + 1):
        await client.patch(f"{CONFIG_MAPS}/c0", {"data": {"k": str(number)}})

    said = await client.get(CONFIG_MAPS, resourceVersion=revision, resourceVersionMatch="Exact")

    assert (said.code, said.json["reason"]) == (410, "Expired")
    assert said.message == "the resourceVersion of the list is too old; list again"


# The words are those of a real kube-apiserver.
def continue_token(**wire):
    """A token that somebody made up."""
    text = json.dumps({"v": "meta.k8s.io/v1", "start": "/core/configmaps/default/a", **wire})
    return urlsafe_b64encode(text.encode()).decode()


ASKED_BADLY = {
    "a match without a revision": (
        {"resourceVersionMatch": "Exact"},
        422,
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
    ),
    "exactly anything": (
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        422,
        'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    ),
    "a match that is none": (
        {"resourceVersionMatch": "foo", "resourceVersion": "1"},
        422,
        'resourceVersionMatch: Unsupported value: "foo": supported values: "Exact", "NotOlderThan", ""',
    ),
    "initial events of a list": ({"sendInitialEvents": "true"}, 422, "sendInitialEvents is forbidden for list"),
    "a revision that is no number": (
        {"resourceVersion": "-1"},
        400,
        'resourceVersion must be an unsigned 64-bit integer, not "-1"',
    ),
    "a revision that is too large": (
        {"resourceVersion": "9" * 20},
        400,
        "resourceVersion must be an unsigned 64-bit integer",
    ),
    "a limit that is no number": ({"limit": "x"}, 400, 'limit must be an integer, not "x"'),
    "a timeout that is no number": ({"timeoutSeconds": "x"}, 400, 'timeoutSeconds must be an integer, not "x"'),
    "a token of another sort": ({"continue": "e30"}, 400, "server does not recognize this encoded version"),
    "a token without a number": ({"continue": continue_token(rv=True)}, 400, "continue key is not valid"),
    "a token of a time to come": ({"continue": continue_token(rv=10**18)}, 410, "continue token is too old"),
}


@pytest.mark.parametrize(("query", "code", "told"), ASKED_BADLY.values(), ids=ASKED_BADLY)
async def test_what_cannot_be_listed_is_refused_in_the_usual_words(client, query, code, told):
    said = await client.get(CONFIG_MAPS, **query)

    assert said.code == code
    assert told in said.message


async def test_a_list_goes_on_from_its_own_revision_only(client, store):
    await fill(client, 3)
    token = (await client.get(CONFIG_MAPS, limit=1)).json["metadata"]["continue"]

    said = await client.get(CONFIG_MAPS, **{"continue": token, "resourceVersion": store.revision})

    assert (said.code, said.message) == (400, "resourceVersion must not be set together with continue")


@pytest.mark.parametrize("query", [{"limit": "-1"}, {"limit": "1", "resourceVersion": "0"}])
async def test_a_list_that_may_be_of_any_age_and_one_without_a_sensible_limit_come_whole(client, query):
    await fill(client, 3)

    assert names(await client.get(CONFIG_MAPS, **query)) == ["c0", "c1", "c2"]


async def test_one_object_is_always_the_newest(client, store):
    await fill(client, 2)

    said = await client.get(f"{CONFIG_MAPS}/c0", resourceVersion=store.revision - 1, resourceVersionMatch="Exact")

    assert said.code == 200


@pytest.mark.parametrize("size", [0, 1, SOME - 1, SOME, SOME + 1, 3 * SOME, 3 * SOME + 1])
@pytest.mark.parametrize("path", [CONFIG_MAPS, WIDGETS])
async def test_a_list_of_any_length_says_how_long_it_is(client, store, size, path):
    group, plural = path.split("/")[2] if path.startswith("/apis") else "core", path.rpartition("/")[2]
    kind = (await client.get(path)).json["kind"].removesuffix("List")
    version = "toys.test/v1" if group != "core" else "v1"
    for number in range(size):
        body = orjson.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": f"c{number:04}"}})
        # One in ten as another program might have written it.
        odd = orjson.dumps({"metadata": {"name": f"c{number:04}"}, "kind": kind, "apiVersion": version})
        await store.create(f"/{group}/{plural}/default/c{number:04}", lambda _, b=odd if number % 10 == 3 else body: b)

    said = await client.get(path)

    assert said.header("content-length") == [str(len(said.body))]
    assert names(said) == [f"c{number:04}" for number in range(size)]
    assert all(("kind" in item) == (path == WIDGETS) for item in said.json["items"])


async def test_whoever_does_not_read_a_long_list_is_cut_off(client, store, monkeypatch):
    monkeypatch.setattr(http_types, "STALL_SECONDS", 0.01)
    for number in range(3 * SOME):
        await store.create(f"/core/configmaps/default/c{number}", lambda _: b'{"metadata":{"name":"x"}}')
    heard, cut = [], asyncio.Event()

    async def send(message):
        heard.append(message)
        if len(heard) > 3:
            await asyncio.Event().wait()

    scope = scope_of("GET", CONFIG_MAPS) | {"state": {"abort": cut.set}}
    async with asyncio.timeout(30):
        await client.app(scope, None, send)

    assert cut.is_set()
