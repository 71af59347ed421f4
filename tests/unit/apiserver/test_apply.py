"""Applying through the API: what is said, what is refused and in which words, and whose the fields are then."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.apiserver.client import CONFIG_MAPS, JSON_PATCH, PODS, WIDGETS, config_map, pod, widget

APPLY = "application/apply-patch+yaml"


async def applied(client, path, body, author="me", **query):
    return await client.patch(path, body, sort=APPLY, fieldManager=author, **query)


def entries(said):
    return {entry["manager"]: entry for entry in said.json["metadata"].get("managedFields", ())}


async def test_yaml_is_applied_as_json_is(client):
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  text: 'yes'\n"

    said = await applied(client, f"{CONFIG_MAPS}/a", body)

    assert (said.code, said.json["data"]) == (201, {"text": "yes"})


async def test_a_change_is_answered_with_the_object(client):
    await applied(client, f"{CONFIG_MAPS}/a", config_map("a", x="1"))

    said = await applied(client, f"{CONFIG_MAPS}/a", config_map("a", x="2"))

    assert (said.code, said.json["data"]) == (200, {"x": "2"})
    assert (await client.get(f"{CONFIG_MAPS}/a")).json == said.json


async def test_a_conflict_names_every_field_and_its_owner(client):
    await applied(client, f"{CONFIG_MAPS}/a", config_map("a", x="1", y="1"))

    said = await applied(client, f"{CONFIG_MAPS}/a", config_map("a", x="2", y="2"), author="you")

    assert (said.code, said.json["reason"]) == (409, "Conflict")
    assert said.message == 'Apply failed with 2 conflicts: conflicts with "me":\n- .data.x\n- .data.y'
    assert said.causes == {".data.x": 'conflict with "me"', ".data.y": 'conflict with "me"'}


async def test_a_dry_run_changes_nothing(client, store):
    await applied(client, f"{CONFIG_MAPS}/a", config_map("a", x="1"))
    before = store.revision

    made = await applied(client, f"{CONFIG_MAPS}/b", config_map("b"), dryRun="All")
    said = await applied(client, f"{CONFIG_MAPS}/a", config_map("a", x="2"), dryRun="All")

    assert (made.code, said.code, said.json["data"], store.revision) == (201, 200, {"x": "2"}, before)


async def test_applying_the_same_again_writes_nothing(client, store):
    await applied(client, f"{PODS}/p", pod("p"))
    before = store.revision

    assert (await applied(client, f"{PODS}/p", pod("p"))).code == 200
    assert store.revision == before


async def test_what_the_server_fills_in_is_nobodys(client):
    said = await applied(client, f"{PODS}/p", pod("p"))

    assert entries(said)["me"]["fieldsV1"] == {
        "f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}}}}
    }


async def test_a_status_is_applied_through_its_own_door(client):
    await client.post(WIDGETS, widget("w"))
    body = {**widget("w"), "status": {"phase": "Done"}}

    plain = await applied(client, f"{WIDGETS}/w", body, author="one")
    said = await applied(client, f"{WIDGETS}/w/status", body, author="two")

    assert "status" not in plain.json
    assert said.json["status"] == {"phase": "Done"}
    assert "f:status" not in entries(plain)["one"]["fieldsV1"]
    assert entries(said)["two"] | {"time": ""} == {
        "manager": "two",
        "operation": "Apply",
        "apiVersion": "toys.test/v1",
        "time": "",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:phase": {}}},
        "subresource": "status",
    }


async def test_the_status_of_a_missing_object_cannot_be_applied(client):
    assert (await applied(client, f"{WIDGETS}/w/status", widget("w"))).code == 404


REFUSED = {
    "without an author": (config_map("a"), {"author": ""}, 422, "is required for apply patch"),
    "with an author of too many letters": (config_map("a"), {"author": "x" * 129}, 422, "Too long: may not be more"),
    "of another kind": (pod("a"), {}, 400, "must have apiVersion v1 and kind ConfigMap"),
    "of no kind": ({"metadata": {"name": "a"}}, {}, 400, "must have apiVersion v1 and kind ConfigMap"),
    "of another name": (config_map("b"), {}, 400, "metadata.name is b, but the URL says a"),
    "with entries": (
        {**config_map("a"), "metadata": {"name": "a", "managedFields": []}},
        {},
        400,
        "metadata.managedFields must not be set",
    ),
    "with an unknown field": ({**config_map("a"), "dat": {}}, {}, 400, ".dat: field not declared in schema"),
    "with a number for a text": (config_map("a", x=1), {}, 400, ".data.x: expected a string"),
    "at another revision": (
        {**config_map("a"), "metadata": {"name": "a", "resourceVersion": "1"}},
        {},
        409,
        "the object has been modified",
    ),
    "with another uid": ({**config_map("a"), "metadata": {"name": "a", "uid": "x"}}, {}, 422, "field is immutable"),
    "that is a list": ([], {}, 400, "must be an object"),
    "that is half a document": (b"a: [", {}, 400, "not valid YAML: yaml:1: line 1"),
    "that is not text": (b"\xff\xfe\xfa", {}, 400, "not UTF-8"),
    "that names itself": (b"a: &x [*x]", {}, 400, "contains itself"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
async def test_something_applied_is_refused(client, store, case):
    body, how, code, words = case
    await client.post(CONFIG_MAPS, config_map("a"))
    before = store.revision

    said = await applied(client, f"{CONFIG_MAPS}/a", body, **how)

    assert (said.code, store.revision) == (code, before)
    assert words in said.message


async def test_a_bomb_of_aliases_is_refused(client):
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 9)]

    for sort, method, path in ((APPLY, "PATCH", f"{CONFIG_MAPS}/a"), ("application/yaml", "POST", CONFIG_MAPS)):
        said = await client.send(
            method, path, b"\n".join(lines), query={"fieldManager": "x"}, headers={"content-type": sort}
        )
        assert (said.code, said.json["reason"]) == (400, "BadRequest")


async def test_a_key_that_stands_twice_is_told_or_refused(client):
    body = b"apiVersion: v1\nkind: ConfigMap\nkind: ConfigMap\nmetadata: {name: a}\n"

    warned = await applied(client, f"{CONFIG_MAPS}/a", body)
    refused = await applied(client, f"{CONFIG_MAPS}/a", body, fieldValidation="Strict")

    assert warned.header("warning") == ['299 - "line 3: key \\"kind\\" already set in map"']
    assert refused.code == 400
    assert 'line 3: key "kind" already set in map' in refused.message


async def test_a_plain_write_is_its_programs(client):
    made = await client.send(
        "POST",
        CONFIG_MAPS,
        config_map("a", x="1"),
        headers={"content-type": "application/json", "user-agent": "kubectl/v1.34 (linux)"},
    )
    named = await client.patch(f"{CONFIG_MAPS}/a", {"data": {"y": "1"}}, fieldManager="someone")

    assert entries(made)["kubectl"]["fieldsV1"] == {"f:data": {".": {}, "f:x": {}}}
    assert entries(named)["someone"]["fieldsV1"] == {"f:data": {"f:y": {}}}
    assert entries(named)["kubectl"] == entries(made)["kubectl"]


async def test_entries_that_a_client_sends_back_are_kept(client):
    made = (await client.post(CONFIG_MAPS, config_map("a", x="1"))).json
    made["data"]["x"] = "2"

    said = await client.put(f"{CONFIG_MAPS}/a", made, fieldManager="other")
    bare = {**made, "metadata": {"name": "a"}}
    kept = await client.put(f"{CONFIG_MAPS}/a", {**bare, "data": {"x": "2", "y": "3"}}, fieldManager="third")

    assert set(entries(said)) == {"unknown", "other"}
    assert set(entries(kept)) == {"unknown", "other", "third"}


async def test_a_write_that_changes_nothing_leaves_the_entries(client, store):
    made = await client.post(CONFIG_MAPS, config_map("a", x="1"))
    before = store.revision

    said = await client.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}}, fieldManager="other")

    assert (said.json, store.revision) == (made.json, before)


async def test_kubectl_can_move_its_entries_from_one_way_of_applying_to_the_other(client):
    await client.post(CONFIG_MAPS, config_map("a", x="1"), fieldManager="kubectl-client-side-apply")
    before = (await client.get(f"{CONFIG_MAPS}/a")).json["metadata"]
    moved = [{**before["managedFields"][0], "manager": "kubectl", "operation": "Apply"}]
    operations = [
        {"op": "replace", "path": "/metadata/managedFields", "value": moved},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": before["resourceVersion"]},
    ]

    said = await client.patch(f"{CONFIG_MAPS}/a", operations, sort=JSON_PATCH)

    assert (said.code, said.json["metadata"]["managedFields"]) == (200, moved)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text("ab$", max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(("a", "name", "spec", ".")), inner)
    ),
    max_leaves=6,
)
places = st.sampled_from(
    (
        ("spec",),
        ("spec", "containers"),
        ("spec", "containers", 0),
        ("spec", "containers", 0, "ports"),
        ("spec", "tolerations"),
        ("metadata",),
        ("metadata", "labels"),
        ("metadata", "finalizers"),
        ("metadata", "ownerReferences"),
        ("metadata", "managedFields"),
        ("status",),
        ("apiVersion",),
    )
)


@given(place=places, value=values, status=st.booleans())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
async def test_any_value_anywhere_is_taken_or_refused(client, place, value, status):
    body = pod("p")
    holder = body
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value

    said = await applied(client, f"{PODS}/p{'/status' if status else ''}", body, force="true")
    plain = await client.patch(f"{PODS}/p", {place[0]: body.get(place[0])}, fieldManager="x")

    assert said.code in {200, 201, 400, 404, 409, 422}
    assert plain.code in {200, 400, 404, 409, 422}
