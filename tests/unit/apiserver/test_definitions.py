"""Definitions are objects like any other; what they define is served from the moment they are acknowledged."""

import pytest

from paceline.apimachinery.builtin.registry import builtin_components, builtin_resources
from paceline.apimachinery.scheme import Scheme
from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.config import Server
from paceline.apiserver.crd.registry import LiveKinds
from tests.unit.apiserver.client import HOST, MERGE, TABLE, TOKEN, Client
from tests.unit.apiserver.definitions import CRDS, LAMPS, conditions, definition, lamp, version

OURS = f"{CRDS}/lamps.home.test"


@pytest.fixture
async def lamps(client):
    """A client whose server has lamps."""
    said = await client.post(CRDS, definition())
    assert said.code == 201
    return client


async def test_a_definition_is_served_when_it_is_acknowledged(client):
    before = await client.get(LAMPS)
    made = await client.post(CRDS, definition(shortNames=["lp"], categories=["all"]))
    after = await client.post(LAMPS, lamp())

    assert (before.code, made.code, after.code) == (404, 201, 201)
    found = (await client.get(OURS)).json
    assert found["spec"]["names"] | {"singular": "lamp", "listKind": "LampList"} == found["spec"]["names"]
    assert found["spec"]["conversion"] == {"strategy": "None"}
    assert found["status"]["acceptedNames"] == found["spec"]["names"]
    assert found["status"]["storedVersions"] == ["v1"]
    assert conditions(found) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }


async def test_a_dry_run_defines_nothing(client):
    said = await client.post(CRDS, definition(), dryRun="All")

    assert said.code == 201
    assert (await client.get(OURS)).code == 404
    assert (await client.get(LAMPS)).code == 404


async def test_a_server_that_starts_serves_what_is_defined(lamps, store, world, nodes):
    await lamps.post(LAMPS, lamp())
    scheme = Scheme(resources=builtin_resources(), components=builtin_components())
    gate = Authenticator(tokens={hash_token(TOKEN): "tester"}, hosts=frozenset({HOST}))
    again = Server(
        store=store, kinds=LiveKinds(scheme, store), clock=world.clock, ids=world.ids, gate=gate, nodes=nodes
    )

    assert (await Client(make_app(again)).get(f"{LAMPS}/a")).json["spec"] == {"color": "red"}


@pytest.mark.usefixtures("lamps")
async def test_a_definition_is_noticed_however_much_comes_after_it(store):
    stored = store.get("/apiextensions.k8s.io/customresourcedefinitions/-/lamps.home.test")
    await store.delete(stored.key, lambda _: stored.value, expected=None)
    kinds = LiveKinds(Scheme(resources=(), components={}), store)
    before = kinds.scheme
    await store.create(stored.key, lambda _: stored.value)
    for number in range(200):
        await store.create(f"/core/other/-/{number}", lambda _: b"{}")

    assert before.find("home.test", "v1", "lamps") is None
    assert kinds.scheme.find("home.test", "v1", "lamps") is not None
    assert kinds.scheme is kinds.scheme


async def test_a_new_schema_counts_from_the_next_request_on(lamps):
    refused = await lamps.post(LAMPS, lamp("b", color="blue"))
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}}}
    changed = version(schema={"openAPIV3Schema": schema}, subresources={"status": {}})
    said = await lamps.patch(OURS, {"spec": {"versions": [changed]}})
    taken = await lamps.post(LAMPS, lamp("b", color="blue", replicas=2))

    assert (refused.code, said.code, taken.code) == (422, 200, 201)
    assert taken.json["spec"] == {"color": "blue"}
    assert said.json["metadata"]["generation"] == 2
    assert (await lamps.get(f"{LAMPS}/b/scale")).code == 404


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("spec.names.kind", {"names": {"kind": "Torch"}}),
        ("spec.scope", {"scope": "Cluster"}),
        ("status.storedVersions[0]", {"versions": [version("v2")]}),
    ],
)
async def test_what_others_know_a_kind_by_stays(lamps, path, change):
    said = await lamps.patch(OURS, {"spec": change})

    assert said.code == 422
    assert path in said.causes


async def test_names_are_given_once(lamps):
    second = await lamps.post(CRDS, definition("lanterns", "Lantern", shortNames=["lamp"]))
    found = (await lamps.get(f"{CRDS}/lanterns.home.test")).json

    assert second.code == 201
    assert conditions(found) == {
        "NamesAccepted": ("False", "ShortNamesConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert (await lamps.get("/apis/home.test/v1/namespaces/default/lanterns")).code == 404


async def test_a_name_that_is_free_again_goes_to_who_waits_for_it(lamps):
    await lamps.post(CRDS, definition("lanterns", "Lantern", shortNames=["lamp"]))
    await lamps.delete(OURS)

    found = (await lamps.get(f"{CRDS}/lanterns.home.test")).json
    assert conditions(found)["Established"][0] == "True"
    assert (await lamps.get("/apis/home.test/v1/namespaces/default/lanterns")).code == 200


async def test_objects_go_with_their_definition(lamps):
    for name in ("a", "b"):
        await lamps.post(LAMPS, lamp(name))
    said = await lamps.delete(OURS)
    again = await lamps.post(CRDS, definition())

    assert said.json["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert conditions(said.json)["Terminating"] == ("True", "InstanceDeletionPending")
    assert again.code == 201
    assert (await lamps.get(LAMPS)).json["items"] == []


async def test_a_definition_waits_for_objects_that_are_held_back(lamps):
    held = lamp("held")
    held["metadata"]["finalizers"] = ["test/hold"]
    await lamps.post(LAMPS, held)
    await lamps.delete(OURS)
    there = await lamps.get(OURS)
    late = await lamps.post(LAMPS, lamp("late"))
    await lamps.patch(f"{LAMPS}/held", {"metadata": {"finalizers": None}})

    assert there.code == 200
    assert late.code == 405
    assert (await lamps.get(OURS)).code == 404
    assert (await lamps.get(LAMPS)).code == 404


async def test_a_deletion_that_was_cut_short_is_finished_by_the_next_server(lamps, store, world, nodes):
    held = lamp("held")
    held["metadata"]["finalizers"] = ["test/hold"]
    await lamps.post(LAMPS, held)
    await lamps.delete(OURS)
    stored = store.get("/home.test/lamps/default/held")
    await store.delete(stored.key, lambda _: stored.value, expected=None)
    scheme = Scheme(resources=builtin_resources(), components=builtin_components())
    gate = Authenticator(tokens={hash_token(TOKEN): "tester"}, hosts=frozenset({HOST}))
    again = Server(
        store=store, kinds=LiveKinds(scheme, store), clock=world.clock, ids=world.ids, gate=gate, nodes=nodes
    )

    assert (await Client(make_app(again)).get(CRDS)).json["items"] == []


async def test_every_version_shows_the_same_objects(client):
    both = [version("v1"), version("v1beta1", storage=False)]
    await client.post(CRDS, definition(versions=both))
    made = (await client.post(LAMPS, lamp())).json
    old = LAMPS.replace("/v1/", "/v1beta1/")

    seen = (await client.get(f"{old}/a")).json
    listed = (await client.get(old)).json
    changed = (await client.patch(f"{old}/a", {"spec": {"replicas": 2}}, sort=MERGE)).json
    assert seen == made | {"apiVersion": "home.test/v1beta1"}
    assert [each["apiVersion"] for each in listed["items"]] == ["home.test/v1beta1"]
    assert (changed["apiVersion"], changed["metadata"]["generation"]) == ("home.test/v1beta1", 2)
    assert (await client.get(f"{LAMPS}/a")).json["apiVersion"] == "home.test/v1"
    assert (await client.get("/apis/home.test")).json["preferredVersion"]["version"] == "v1"


async def test_a_version_that_is_not_served_is_not_there(client):
    await client.post(CRDS, definition(versions=[version("v1"), version("v2", storage=False, served=False)]))

    assert (await client.get("/apis/home.test/v2/lamps")).code == 404


async def test_rules_that_are_not_run_are_said_so(client):
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "has(self.spec)"}]}
    said = await client.post(CRDS, definition(versions=[version(schema={"openAPIV3Schema": schema})]))

    assert said.code == 201
    assert "not enforced" in said.header("warning")[0]


async def test_columns_are_shown_as_the_definition_says(client):
    columns = [
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Born", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Wanted", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
    ]
    await client.post(CRDS, definition(versions=[version(additionalPrinterColumns=columns)]))
    await client.post(LAMPS, lamp(replicas=2))
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await client.patch(f"{LAMPS}/a/status", ready)

    table = (await client.get(LAMPS, accept=TABLE)).json
    heads = [(each["name"], each["priority"]) for each in table["columnDefinitions"]]
    assert heads == [("Name", 0), ("Color", 0), ("Ready", 0), ("Born", 0), ("Wanted", 1)]
    assert [row["cells"] for row in table["rows"]] == [["a", "red", "True", "0s", 2]]


async def test_definitions_are_listed_with_the_time_they_were_made(lamps):
    table = (await lamps.get(CRDS, accept=TABLE)).json

    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Created At"]
    assert table["rows"][0]["cells"][1].endswith("Z")


async def test_fields_that_are_selectable_can_be_selected_by(client):
    fields = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.replicas"}]
    await client.post(CRDS, definition(versions=[version(selectableFields=fields)]))
    await client.post(LAMPS, lamp("a", color="green", replicas=0))
    await client.post(LAMPS, lamp("b"))

    async def names(selector):
        found = (await client.get(LAMPS, fieldSelector=selector)).json
        return [each["metadata"]["name"] for each in found["items"]]

    assert await names("spec.color=green") == ["a"]
    assert await names("spec.color!=green") == ["b"]
    assert await names("spec.replicas=0") == ["a"]
    assert (await client.get(LAMPS, fieldSelector="spec.note=x")).code == 400


async def test_a_kind_can_be_of_the_whole_cluster(client):
    await client.post(CRDS, definition(scope="Cluster"))

    assert (await client.post("/apis/home.test/v1/lamps", lamp())).code == 201
    assert (await client.get(LAMPS)).code == 404
