"""Small things that clients of a real server rely on, each held against one in tests/differential."""

import pytest

from tests.unit.apiserver.client import CONFIG_MAPS, NAMESPACE, PODS, TABLE, config_map, pod

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/livez/ping", "/readyz/ping", "/healthz/ping"])
async def test_anyone_may_ask_whether_the_server_is_well(client, path):
    said = await client.send("GET", path, headers={"authorization": None})

    assert (said.code, said.body) == (200, b"ok")


async def test_a_group_that_is_not_there_is_answered_as_a_web_server_does(client):
    said = await client.get("/apis/none.test/v1/things")

    assert (said.code, said.body) == (404, b"404 page not found\n")
    assert said.header("content-type") == ["text/plain; charset=utf-8"]


async def test_a_list_says_once_what_its_items_are(client):
    await client.post(CONFIG_MAPS, config_map("a", k="v"))

    (item,) = (await client.get(CONFIG_MAPS)).json["items"]

    assert item["data"] == {"k": "v"}
    assert not {"apiVersion", "kind"} & item.keys()


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"resourceVersionMatch": "Bogus", "resourceVersion": "1"},
        {"sendInitialEvents": "true"},
        {"watch": "1", "resourceVersionMatch": "NotOlderThan"},
        {"watch": "1", "sendInitialEvents": "true"},
        {"watch": "1", "continue": "abc"},
    ],
)
async def test_options_of_a_list_that_contradict_each_other_are_refused(client, query):
    said = await client.get(PODS, **query)

    assert (said.code, said.json["reason"], said.json["details"]["kind"]) == (422, "Invalid", "ListOptions")


async def test_a_lease_comes_into_being_by_an_update_and_a_config_map_does_not(client):
    lease = await client.put(f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
    other = await client.put(f"{CONFIG_MAPS}/c", config_map("c"))

    assert (lease.code, lease.json["spec"]) == (201, {"holderIdentity": "me"})
    assert other.code == 404


async def test_a_pod_that_runs_nowhere_ends_at_once_and_says_so(client):
    await client.post(PODS, pod("p"))

    said = await client.delete(f"{PODS}/p")

    assert said.json["metadata"]["deletionGracePeriodSeconds"] == 0
    assert said.json["metadata"]["deletionTimestamp"]
    assert (await client.get(f"{PODS}/p")).code == 404


async def test_the_row_of_a_pod_that_is_done_says_how_it_ended(client):
    await client.post(PODS, pod("p"))
    await client.patch(f"{PODS}/p/status", {"status": {"phase": "Failed"}})

    (row,) = (await client.get(PODS, accept=TABLE)).json["rows"]

    assert [(each["type"], each["reason"]) for each in row["conditions"]] == [("Completed", "Failed")]


@pytest.mark.parametrize("name", ["..", "%2e%2e", "a%25b"])
async def test_a_name_that_no_object_can_have_is_refused(client, name):
    said = await client.get(f"{NAMESPACE}/configmaps/{name}")

    assert (said.code, said.json["reason"]) == (400, "BadRequest")


async def test_the_many_unknown_fields_of_a_huge_object_cost_little(client):
    body = {**config_map("a"), **{f"dat{number}": 1 for number in range(20_000)}}

    said = await client.post(CONFIG_MAPS, body, fieldValidation="Strict", dryRun="All")

    assert said.code == 400
    assert said.message.count("did you mean") <= 20
