"""Small things that a real server does too: what is said beside a no, old paths, YAML, what admission adds."""

import json

import pytest

from tests.unit.apiserver.client import CONFIG_MAPS, NAMESPACE, PODS, WIDGETS

YAML = "application/yaml"
ENDPOINTS = f"{NAMESPACE}/endpoints"
SERVICES = f"{NAMESPACE}/services"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def pod(name, **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "a:1"}], **spec}}


async def test_a_refusal_says_as_well_what_there_was_to_say_before(client):
    said = await client.post(CONFIG_MAPS, {"metadata": {"name": "X"}, "zzz": 1})

    assert said.code == 422
    assert said.header("warning") == ['299 - "unknown field \\"zzz\\""']


async def test_a_patch_that_is_refused_says_it_too(client):
    await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})

    said = await client.patch(f"{CONFIG_MAPS}/a", {"zzz": 1, "metadata": {"labels": {"no good": "x"}}})

    assert said.code == 422
    assert said.header("warning") == ['299 - "unknown field \\"zzz\\""']


async def test_a_kind_on_its_way_out_says_so_even_where_nothing_is(client):
    missing = await client.get(f"{ENDPOINTS}/nope")

    assert missing.code == 404
    assert "deprecated" in missing.header("warning")[0]


async def test_unknown_fields_of_a_defined_kind_are_told_in_order(client):
    wrong = {"apiVersion": "toys.test/v1", "kind": "Widget", "zzz": 1, "spec": {"size": 1, "yyy": 1, "qqq": 1}}

    said = await client.post(WIDGETS, wrong | {"metadata": {"name": "w", "xxx": 1}})

    told = [text.split(chr(92))[1].removeprefix('"') for text in said.header("warning")]
    assert told == ["metadata.xxx", "spec.qqq", "spec.yyy", "zzz"]


async def test_answers_come_in_json_only(client):
    await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})

    only_yaml = await client.get(f"{CONFIG_MAPS}/a", accept=YAML)
    either = await client.get(f"{CONFIG_MAPS}/a", accept=f"{YAML}, application/json")
    watch = await client.get(CONFIG_MAPS, accept=YAML, watch="true")

    assert (only_yaml.code, only_yaml.json["reason"]) == (watch.code, watch.json["reason"]) == (406, "NotAcceptable")
    assert (either.code, either.header("content-type")) == (200, ["application/json"])


async def test_the_old_paths_of_watches_are_not_served(client):
    for path in ("/api/v1/watch/pods", "/api/v1/watch/namespaces/default/configmaps"):
        assert (await client.get(path)).code == 404, path


async def test_no_name_of_a_namespace_means_all(client):
    await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})

    everywhere = await client.get("/api/v1/namespaces//configmaps")
    nowhere = await client.get("/api/v1//configmaps")

    assert [each["metadata"]["name"] for each in everywhere.json["items"]] == ["a"]
    assert nowhere.code == 404


async def test_a_pod_may_only_name_an_account_that_is_there(client):
    refused = await client.post(PODS, pod("a", serviceAccountName="robot"))
    await client.post(f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "robot"}})

    assert refused.code == 403
    assert 'service account "default/robot" not found' in refused.message
    assert (await client.post(PODS, pod("a", serviceAccountName="robot"))).code == 201
    # The one that every namespace has may come after the first pod.
    assert (await client.post(PODS, pod("b"))).code == 201


async def test_less_than_no_time_to_end_is_the_least(client):
    said = await client.post(PODS, pod("a", terminationGracePeriodSeconds=-5))

    assert said.json["spec"]["terminationGracePeriodSeconds"] == 1


async def test_no_pod_comes_to_a_new_node_before_it_is_ready(client):
    said = await client.post("/api/v1/nodes", {"metadata": {"name": "n"}})

    assert said.json["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert "managedFields" not in said.json["metadata"]


async def test_a_pod_can_be_evicted(client):
    await client.post(PODS, pod("a"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}

    dry = await client.post(f"{PODS}/a/eviction", eviction, dryRun="All")
    still = await client.get(f"{PODS}/a")
    other = await client.post(f"{PODS}/a/eviction", eviction | {"metadata": {"name": "b"}})
    done = await client.post(f"{PODS}/a/eviction", eviction)

    assert (dry.code, still.code, other.code, done.code) == (201, 200, 400, 201)
    assert (await client.get(f"{PODS}/a")).code == 404


async def test_a_pod_that_is_evicted_says_why_it_goes(client):
    await client.post(PODS, pod("a", nodeName="n"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}

    await client.post(f"{PODS}/a/eviction", eviction)
    await client.post(f"{PODS}/a/eviction", eviction)
    found = (await client.get(f"{PODS}/a")).json

    assert [(each["type"], each["reason"]) for each in found["status"]["conditions"]] == [
        ("DisruptionTarget", "EvictionByEvictionAPI")
    ]
    assert found["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_options_in_a_body_are_all_that_counts(client):
    await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})

    await client.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": "Background"}, dryRun="All")

    assert (await client.get(f"{CONFIG_MAPS}/a")).code == 404


async def test_the_port_that_a_service_is_given_is_not_its_author_s(client):
    said = await client.post(
        SERVICES, {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    )

    [entry] = said.json["metadata"]["managedFields"]
    assert said.json["spec"]["ports"][0]["nodePort"]
    assert "nodePort" not in json.dumps(entry)


BROKEN = {
    "the time": ({"eventTime": None}, "eventTime"),
    "who reports": ({"reportingController": ""}, "reportingController"),
    "what was done": ({"action": ""}, "action"),
    "a type": ({"type": "Odd"}, "type"),
    "nothing of old": ({"deprecatedCount": 3}, "count"),
}


@pytest.mark.parametrize(("change", "field"), BROKEN.values(), ids=BROKEN)
async def test_a_new_event_has_to_say(client, change, field):
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "a/b",
        "reportingInstance": "c",
        "action": "Do",
        "reason": "R",
        "type": "Normal",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    }

    refused = await client.post(NEW_EVENTS, event | change)
    made = await client.post(NEW_EVENTS, event)

    assert refused.code == 422
    assert field in refused.causes
    assert "f:regarding" in made.json["metadata"]["managedFields"][0]["fieldsV1"]


async def test_labels_told_with_a_status_are_noted_but_not_kept(client):
    await client.post(
        WIDGETS, {"apiVersion": "toys.test/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    )

    said = await client.patch(f"{WIDGETS}/w/status", {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Up"}})

    [noted] = [each for each in said.json["metadata"]["managedFields"] if each.get("subresource") == "status"]
    assert "labels" not in said.json["metadata"]
    assert "f:a" in noted["fieldsV1"]["f:metadata"]["f:labels"]
