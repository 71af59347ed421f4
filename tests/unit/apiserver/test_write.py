"""Create, replace and patch: what is stored, what is refused, and in which words."""

import asyncio
import tracemalloc

import pytest

from paceline.apiserver.object_strategy import is_same, write
from tests.unit.apiserver.client import (
    CONFIG_MAPS,
    JSON_PATCH,
    NAMESPACE,
    PODS,
    STRATEGIC,
    WIDGETS,
    config_map,
    pod,
    widget,
)


def test_an_object_takes_no_more_memory_than_its_bytes():
    """The store keeps ten thousand of them, and the encoder's own buffers are up to fourteen times as large."""
    tracemalloc.start()
    try:
        value = write({"metadata": {"name": "w"}, "data": {"text": "x" * 4500}}, 7)
        used_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(value) > 4500
    assert used_bytes < 1.1 * len(value)


async def test_a_new_object_gets_what_only_the_server_may_set(client):
    written = widget("w")
    written["metadata"] |= {"uid": "mine", "generation": 7, "creationTimestamp": None, "labels": {"a": "b"}}

    said = await client.post(WIDGETS, {**written, "status": {"phase": "Done"}})

    made = said.json
    assert said.code == 201
    assert made["metadata"].pop("uid") != "mine"
    del made["metadata"]["managedFields"]
    assert made["metadata"] == {
        "name": "w",
        "namespace": "default",
        "generation": 1,
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "labels": {"a": "b"},
        "resourceVersion": "2",
    }
    assert "status" not in made
    assert (await client.get(f"{WIDGETS}/w")).json["spec"] == {"size": 1}


async def test_a_name_can_be_left_to_the_server(client):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "run-"}}

    names = {(await client.post(CONFIG_MAPS, body)).json["metadata"]["name"] for _ in range(3)}

    assert len(names) == 3
    assert all(name.startswith("run-") and len(name) == 9 for name in names)


async def test_a_taken_name_is_refused(client):
    await client.post(PODS, pod("p"))

    said = await client.post(PODS, pod("p"))

    assert said.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods "p" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "p", "kind": "pods"},
        "code": 409,
    }


async def test_of_many_who_want_one_name_one_gets_it(client):
    answers = await asyncio.gather(*(client.post(CONFIG_MAPS, config_map("same")) for _ in range(10)))

    assert sorted(each.code for each in answers) == [201] + [409] * 9


async def test_what_is_in_no_namespace_may_name_one_all_the_same(client):
    made = await client.post(
        "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "namespace": "x"}}
    )

    assert made.code == 201
    assert "namespace" not in made.json["metadata"]


REFUSED_CREATES = {
    "into a namespace that is not there": (
        "/api/v1/namespaces/nope/pods",
        pod("p"),
        (404, 'namespaces "nope" not found'),
    ),
    "into another namespace than the path's": (
        PODS,
        {**pod("p"), "metadata": {"name": "p", "namespace": "x"}},
        (400, "metadata.namespace is x, but the URL says default"),
    ),
    "with a revision": (
        PODS,
        {**pod("p"), "metadata": {"name": "p", "resourceVersion": "5"}},
        (400, "metadata.resourceVersion must not be set on objects to be created"),
    ),
    "of another version": (
        PODS,
        {**pod("p"), "apiVersion": "v2"},
        (400, "the object must be a v1 Pod, not a v2 Pod"),
    ),
    "of another kind": (
        PODS,
        {**pod("p"), "kind": "ConfigMap"},
        (400, "the object must be a v1 Pod, not a v1 ConfigMap"),
    ),
    "without any name": (
        CONFIG_MAPS,
        {"metadata": {}},
        (422, 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'),
    ),
    "on an object's path": (
        f"{PODS}/p",
        pod("p"),
        (405, "the server does not allow this method on the requested resource"),
    ),
    "over all namespaces": (
        "/api/v1/pods",
        pod("p"),
        (405, "the server does not allow this method on the requested resource"),
    ),
    "with an unknown wish": (
        f"{PODS}?fieldValidation=Foo",
        pod("p"),
        (
            422,
            (
                'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Foo": '
                'supported values: "", "Ignore", "Strict", "Warn"'
            ),
        ),
    ),
}


@pytest.mark.parametrize(("path", "body", "refusal"), REFUSED_CREATES.values(), ids=REFUSED_CREATES)
async def test_a_create_is_refused(client, store, path, body, refusal):
    path, _, query = path.partition("?")
    before = store.revision

    said = await client.post(path, body, **dict([query.split("=")] if query else []))

    assert (said.code, said.message) == refusal
    assert store.revision == before


async def test_nothing_new_comes_into_a_namespace_that_goes(client):
    await client.post("/api/v1/namespaces", {"metadata": {"name": "old"}})
    await client.post("/api/v1/namespaces/old/configmaps", config_map("a"))
    gone = await client.delete("/api/v1/namespaces/old")

    said = await client.post("/api/v1/namespaces/old/configmaps", config_map("b"))

    assert gone.json["status"]["phase"] == "Terminating"
    assert said.code == 403
    assert said.message == (
        'configmaps "b" is forbidden: unable to create new content in namespace old because it is being terminated'
    )


async def test_a_dry_run_says_what_would_be_and_stores_nothing(client, store):
    before = store.revision

    made = await client.post(CONFIG_MAPS, config_map("a", key="value"), dryRun="All")

    assert (made.code, made.json["data"]) == (201, {"key": "value"})
    assert "resourceVersion" not in made.json["metadata"]
    assert (store.revision, (await client.get(f"{CONFIG_MAPS}/a")).code) == (before, 404)


async def test_a_dry_run_of_a_change_stores_nothing(client, store):
    await client.post(CONFIG_MAPS, config_map("a", key="old"))
    before = store.revision

    patched = await client.patch(f"{CONFIG_MAPS}/a", {"data": {"key": "new"}}, dryRun="All")
    taken = await client.post(CONFIG_MAPS, config_map("a"), dryRun="All")
    gone = await client.delete(f"{CONFIG_MAPS}/a", dryRun="All")

    assert patched.json["data"] == {"key": "new"}
    assert (taken.code, gone.code) == (409, 200)
    assert store.revision == before


async def test_each_door_changes_its_own_half_only(client):
    await client.post(WIDGETS, widget("w"))

    by_status = await client.patch(f"{WIDGETS}/w/status", {"status": {"phase": "Up"}, "spec": {"paused": True}})
    by_spec = await client.patch(f"{WIDGETS}/w", {"status": {"phase": "Down"}, "spec": {"paused": True}})

    assert (by_status.json["spec"], by_status.json["status"]) == ({"size": 1}, {"phase": "Up"})
    assert by_status.json["metadata"]["generation"] == 1
    assert (by_spec.json["spec"], by_spec.json["status"]) == ({"size": 1, "paused": True}, {"phase": "Up"})
    assert by_spec.json["metadata"]["generation"] == 2


async def test_only_the_spec_makes_a_generation(client):
    await client.post(WIDGETS, widget("w"))

    labelled = await client.patch(f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}})

    assert labelled.json["metadata"]["generation"] == 1


async def test_a_write_that_changes_nothing_makes_no_revision(client, store):
    made = (await client.post(WIDGETS, widget("w"))).json
    before = store.revision

    same = await client.put(f"{WIDGETS}/w", made)
    empty = await client.patch(f"{WIDGETS}/w", {"metadata": {"annotations": {}}})

    assert (same.json, empty.json, store.revision) == (made, made, before)


async def test_a_stale_write_is_a_conflict(client):
    made = (await client.post(CONFIG_MAPS, config_map("a"))).json
    await client.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})

    put = await client.put(f"{CONFIG_MAPS}/a", made)
    patched = await client.patch(f"{CONFIG_MAPS}/a", {"metadata": {"resourceVersion": "1"}, "data": {"k": "x"}})

    for said in (put, patched):
        assert (said.code, said.json["reason"]) == (409, "Conflict")
        assert said.message == (
            'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )


async def test_a_replace_of_an_object_of_ours_says_which_revision_it_replaces(client):
    await client.post(WIDGETS, widget("w"))

    said = await client.put(f"{WIDGETS}/w", widget("w"))

    assert said.code == 422
    assert said.causes == {"metadata.resourceVersion": "Invalid value: 0: must be specified for an update"}


async def test_many_patches_at_once_all_count(client):
    await client.post(CONFIG_MAPS, config_map("a"))

    answers = await asyncio.gather(*(client.patch(f"{CONFIG_MAPS}/a", {"data": {f"k{n}": "v"}}) for n in range(6)))

    assert {each.code for each in answers} == {200}
    assert len((await client.get(f"{CONFIG_MAPS}/a")).json["data"]) == 6


async def test_a_json_patch_is_applied(client):
    await client.post(CONFIG_MAPS, config_map("a", old="1"))
    steps = [{"op": "test", "path": "/data/old", "value": "1"}, {"op": "add", "path": "/data/new", "value": "2"}]

    said = await client.patch(f"{CONFIG_MAPS}/a", steps, sort=JSON_PATCH)

    assert said.json["data"] == {"old": "1", "new": "2"}


async def test_lists_of_built_in_kinds_merge_by_their_keys(client):
    await client.post(PODS, pod("p"))
    containers = [{"name": "main", "image": "busybox:2"}]

    said = await client.patch(f"{PODS}/p", {"spec": {"containers": containers}}, sort=STRATEGIC)

    assert said.code == 200
    assert said.json["spec"]["containers"][0]["image"] == "busybox:2"
    assert said.json["spec"]["containers"][0]["terminationMessagePolicy"] == "File"


async def test_kinds_of_ours_do_not_say_how_their_lists_merge(client):
    await client.post(WIDGETS, widget("w"))

    assert (await client.patch(f"{WIDGETS}/w", {}, sort=STRATEGIC)).code == 415


REFUSED_PATCHES = {
    "of a missing object": ("nope", {}, {}, 404),
    "that is not JSON": ("a", b"{", {}, 400),
    "that is a list": ("a", [], {}, 400),
    "that renames": ("a", {"metadata": {"name": "b"}}, {}, 400),
    "that moves": ("a", {"metadata": {"namespace": "b"}}, {}, 400),
    "that gives another uid": ("a", {"metadata": {"uid": "x"}}, {}, 422),
    "that takes the metadata away": ("a", {"metadata": None}, {}, 400),
    "with an unknown field": ("a", {"dat": {}}, {"fieldValidation": "Strict"}, 422),
    "of a type that is not known": ("a", {}, {"sort": "application/apply-patch+cbor"}, 415),
    "of a type that only plain bodies have": ("a", {}, {"sort": "application/json"}, 415),
    "that merges a list and names no key": (
        "a",
        {"metadata": {"ownerReferences": [{"name": "x"}]}},
        {"sort": STRATEGIC},
        400,
    ),
    "by operations that do not fit": ("a", [{"op": "remove", "path": "/no"}], {"sort": JSON_PATCH}, 422),
}


@pytest.mark.parametrize("case", REFUSED_PATCHES.values(), ids=REFUSED_PATCHES)
async def test_a_patch_is_refused(client, store, case):
    name, body, how, code = case
    await client.post(CONFIG_MAPS, config_map("a"))
    before = store.revision

    said = await client.patch(f"{CONFIG_MAPS}/{name}", body, **how)

    assert (said.code, said.json["kind"], store.revision) == (code, "Status", before)


async def test_a_replace_under_another_name_is_refused(client):
    said = await client.put(f"{CONFIG_MAPS}/b", config_map("a"))

    assert (said.code, said.message) == (400, "metadata.name is a, but the URL says b")


async def test_only_what_is_said_to_be_mutable_may_change(client):
    await client.post(WIDGETS, widget("w", parts=[{"name": "a", "count": 1}]))

    paused = await client.patch(f"{WIDGETS}/w", {"spec": {"paused": True}})
    said = await client.patch(f"{WIDGETS}/w", {"spec": {"size": 2, "parts": [{"name": "a", "count": 5}]}})

    assert paused.code == 200
    assert said.code == 422
    assert said.causes == {
        "spec.size": "Invalid value: 2: field is immutable; only spec.paused may change",
        "spec.parts[0].count": "Invalid value: 5: field is immutable; only spec.paused may change",
    }


async def test_a_pod_keeps_its_spec(client):
    await client.post(PODS, pod("p"))

    said = await client.patch(f"{PODS}/p", {"spec": {"nodeName": "elsewhere"}})

    assert said.code == 422
    assert said.causes["spec"].startswith("Forbidden: pod updates may not change fields other than")


async def test_an_immutable_config_map_keeps_its_data(client):
    await client.post(CONFIG_MAPS, {**config_map("a", k="v"), "immutable": True})

    assert (await client.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "w"}})).code == 422
    assert (await client.patch(f"{CONFIG_MAPS}/a", {"immutable": None})).code == 422
    assert (await client.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"a": "b"}}})).code == 200


async def test_a_secret_written_as_text_is_kept_as_base64(client):
    body = {"metadata": {"name": "s"}, "stringData": {"user": "me"}}

    said = await client.post(f"{NAMESPACE}/secrets", body)

    assert (said.json["data"], said.json["type"]) == ({"user": "bWU="}, "Opaque")
    assert "stringData" not in said.json


async def test_an_object_that_is_too_large_is_refused(client, store):
    before = store.revision

    said = await client.post(WIDGETS, {**widget("a"), "spec": {"size": 1, "anything": {"note": "x" * 1_600_000}}})

    assert (said.code, said.json["reason"], store.revision) == (413, "RequestEntityTooLarge", before)


def test_true_is_not_one():
    one, true = ({"metadata": {"name": "w"}, "spec": {"a": value}} for value in (1, True))

    assert is_same(one, {**one, "metadata": {"resourceVersion": "7", "name": "w"}})
    assert not is_same(one, true)
