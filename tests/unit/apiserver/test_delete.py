"""Delete: at once, in time, or when the last finalizer is gone."""

import pytest

from paceline.apiserver.handlers.delete import TOGETHER
from tests.unit.apiserver.client import CONFIG_MAPS, NAMESPACE, PODS, WIDGETS, config_map, pod, widget


async def test_a_deleted_object_is_gone_and_its_name_is_free(client):
    uid = (await client.post(WIDGETS, widget("w"))).json["metadata"]["uid"]

    said = await client.delete(f"{WIDGETS}/w")

    assert said.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "w", "group": "toys.test", "kind": "widgets", "uid": uid},
    }
    assert (await client.get(f"{WIDGETS}/w")).code == 404
    assert (await client.delete(f"{WIDGETS}/w")).code == 404
    assert (await client.post(WIDGETS, widget("w"))).json["metadata"]["uid"] != uid


async def test_only_the_object_that_was_meant_is_deleted(client):
    made = (await client.post(CONFIG_MAPS, config_map("a"))).json["metadata"]
    wrong_uid = {"preconditions": {"uid": "other"}}
    wrong_revision = {"preconditions": {"resourceVersion": "1"}}

    refused = [await client.delete(f"{CONFIG_MAPS}/a", each) for each in (wrong_uid, wrong_revision)]
    right = {"preconditions": {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}}

    assert [(each.code, each.json["reason"]) for each in refused] == [(409, "Conflict")] * 2
    assert "the uid in the precondition is other" in refused[0].message
    assert (await client.delete(f"{CONFIG_MAPS}/a", right)).code == 200


async def test_a_finalizer_holds_a_deletion_up(client):
    body = config_map("a")
    body["metadata"]["finalizers"] = ["toys.test/wait"]
    await client.post(CONFIG_MAPS, body)

    marked = (await client.delete(f"{CONFIG_MAPS}/a")).json["metadata"]
    again = (await client.delete(f"{CONFIG_MAPS}/a")).json["metadata"]
    added = await client.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": ["toys.test/wait", "toys.test/more"]}})
    released = await client.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": []}})

    assert (marked["deletionTimestamp"], marked["deletionGracePeriodSeconds"]) == ("2030-01-01T00:00:00Z", 0)
    assert again == marked
    assert (added.code, released.code) == (422, 200)
    assert "no new finalizers can be added" in added.message
    assert (await client.get(f"{CONFIG_MAPS}/a")).code == 404


POLICIES = {"Foreground": ["foregroundDeletion"], "Orphan": ["orphan"], "Background": None}


@pytest.mark.parametrize(("policy", "finalizers"), POLICIES.items(), ids=POLICIES)
async def test_a_policy_is_left_to_whoever_cleans_up_after_owners(client, policy, finalizers):
    await client.post(CONFIG_MAPS, config_map("a"))

    said = await client.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": policy})

    assert said.json.get("metadata", {}).get("finalizers") == finalizers
    assert (await client.get(f"{CONFIG_MAPS}/a")).code == (200 if finalizers else 404)


async def bound_pod(client, phase="Running", **spec):
    await client.post(PODS, pod("p", **spec))
    await client.post(f"{PODS}/p/binding", {"target": {"name": "n1"}})
    await client.patch(f"{PODS}/p/status", {"status": {"phase": phase}})


async def test_a_running_pod_is_given_time_to_end(client):
    await bound_pod(client, terminationGracePeriodSeconds=20)

    marked = (await client.delete(f"{PODS}/p")).json["metadata"]
    longer = (await client.delete(f"{PODS}/p", {"gracePeriodSeconds": 60})).json["metadata"]
    shorter = (await client.delete(f"{PODS}/p", {"gracePeriodSeconds": 5})).json["metadata"]

    assert (marked["deletionTimestamp"], marked["deletionGracePeriodSeconds"]) == ("2030-01-01T00:00:20Z", 20)
    assert longer == marked
    assert (shorter["deletionTimestamp"], shorter["deletionGracePeriodSeconds"]) == ("2030-01-01T00:00:05Z", 5)
    assert marked["generation"] == shorter["generation"] == 2


async def test_a_pod_in_its_grace_period_can_still_tell_its_status(client):
    await bound_pod(client)
    await client.delete(f"{PODS}/p")

    said = await client.patch(f"{PODS}/p/status", {"status": {"phase": "Failed"}})

    assert (said.code, said.json["status"]["phase"]) == (200, "Failed")
    assert (await client.get(f"{PODS}/p")).code == 200


async def test_a_pod_goes_at_once_when_nothing_of_it_runs(client):
    await client.post(PODS, pod("unbound"))
    await client.delete(f"{PODS}/unbound")
    await bound_pod(client, "Succeeded")
    await client.delete(f"{PODS}/p")

    assert (await client.get(PODS)).json["items"] == []


async def test_a_pod_goes_at_once_when_that_is_said(client):
    await bound_pod(client)
    await client.delete(f"{PODS}/p")

    said = await client.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})

    assert (said.code, said.json["kind"]) == (200, "Pod")
    assert (await client.get(f"{PODS}/p")).code == 404


async def test_a_selection_is_deleted_together(client):
    for name, team in (("a", "x"), ("b", "x"), ("c", "y")):
        await client.post(CONFIG_MAPS, config_map(name, labels={"team": team}))

    said = await client.delete(CONFIG_MAPS, labelSelector="team=x")

    assert [item["metadata"]["name"] for item in said.json["items"]] == ["a", "b"]
    assert [item["metadata"]["name"] for item in (await client.get(CONFIG_MAPS)).json["items"]] == ["c"]


async def test_more_than_go_together_are_all_deleted_and_no_more_than_were_asked_for(client):
    names = [f"many-{number:03}" for number in range(TOGETHER * 2 + 20)]
    for name in names:
        await client.post(CONFIG_MAPS, config_map(name))

    first = await client.delete(CONFIG_MAPS, limit=str(TOGETHER + 10))
    left = [each["metadata"]["name"] for each in (await client.get(CONFIG_MAPS)).json["items"]]
    rest = await client.delete(CONFIG_MAPS)

    assert [each["metadata"]["name"] for each in first.json["items"]] == names[: TOGETHER + 10]
    assert left == names[TOGETHER + 10 :]
    assert [each["metadata"]["name"] for each in rest.json["items"]] == left
    assert (await client.get(CONFIG_MAPS)).json["items"] == []


async def test_the_namespaces_that_a_cluster_needs_stay(client):
    said = await client.delete("/api/v1/namespaces/default")

    assert (said.code, said.message) == (403, 'namespaces "default" is forbidden: this namespace may not be deleted')


async def test_an_empty_namespace_goes_at_once(client):
    await client.post("/api/v1/namespaces", {"metadata": {"name": "empty"}})

    assert (await client.delete("/api/v1/namespaces/empty")).code == 200
    assert (await client.get("/api/v1/namespaces/empty")).code == 404


async def test_a_namespace_goes_when_it_is_finalized(client):
    await client.post("/api/v1/namespaces", {"metadata": {"name": "full"}})
    await client.post("/api/v1/namespaces/full/configmaps", config_map("a"))
    going = (await client.delete("/api/v1/namespaces/full")).json

    kept = await client.put("/api/v1/namespaces/full", {**going, "spec": {}})
    done = await client.put("/api/v1/namespaces/full/finalize", {**going, "spec": {"finalizers": []}})

    assert (going["spec"], kept.json["spec"]) == ({"finalizers": ["kubernetes"]}, {"finalizers": ["kubernetes"]})
    assert done.code == 200
    assert (await client.get("/api/v1/namespaces/full")).code == 404


BAD_OPTIONS = {
    "a policy that is none": ({"propagationPolicy": "Foo"}, 422),
    "two policies": ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422),
    "a dry run that is none": ({"dryRun": ["Some"]}, 422),
    "a grace period that is text": ({"gracePeriodSeconds": "5"}, 400),
    "preconditions that are a list": ({"preconditions": ["uid"]}, 400),
    "options of another kind": ({"kind": "Pod", "apiVersion": "v1"}, 400),
    "a list": ([], 400),
    "half a document": (b"{", 400),
}


@pytest.mark.parametrize(("options", "code"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
async def test_wishes_that_make_no_sense_are_refused(client, options, code):
    await client.post(CONFIG_MAPS, config_map("a"))

    assert (await client.delete(f"{CONFIG_MAPS}/a", options)).code == code
    assert (await client.get(f"{CONFIG_MAPS}/a")).code == 200


async def test_all_claims_of_all_namespaces_cannot_be_deleted_by_one_call(client):
    assert (await client.delete("/api/v1/configmaps")).code == 405
    assert (await client.delete("/api/v1/namespaces")).code == 405
    assert (await client.delete(f"{NAMESPACE}/persistentvolumeclaims")).code == 200
