"""What the server tells about itself, as kubectl reads it."""

import json

from paceline.apimachinery.builtin.registry import kubernetes_version

ALL = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


async def test_the_version_is_the_one_whose_kinds_are_served(client):
    version = (await client.get("/version")).json

    assert version["gitVersion"] == f"{kubernetes_version()}+paceline"
    assert f"v{version['major']}.{version['minor']}." in kubernetes_version()


async def test_groups_and_versions_are_listed(client):
    groups = (await client.get("/apis")).json

    assert (await client.get("/api")).json["versions"] == ["v1"]
    names = [group["name"] for group in groups["groups"]]
    assert names.index("apiextensions.k8s.io") < names.index("coordination.k8s.io") < names.index("toys.test")
    assert (await client.get("/apis/toys.test")).json["preferredVersion"] == {
        "groupVersion": "toys.test/v1",
        "version": "v1",
    }


async def test_kinds_are_listed_with_their_names_and_verbs(client):
    kinds = {each["name"]: each for each in (await client.get("/api/v1")).json["resources"]}
    own = (await client.get("/apis/toys.test/v1")).json["resources"]

    assert kinds["pods"]["shortNames"] == ["po"]
    assert (kinds["pods/log"]["verbs"], kinds["pods/binding"]["kind"]) == (["get"], "Binding")
    assert kinds["nodes"]["namespaced"] is False
    assert [(each["name"], each["kind"]) for each in own] == [("widgets", "Widget"), ("widgets/status", "Widget")]
    assert own[0]["singularName"] == "widget"


async def test_all_can_be_asked_for_at_once(client):
    said = await client.get("/apis", accept=ALL)
    core = await client.get("/api", accept=ALL)

    assert "as=APIGroupDiscoveryList" in said.header("content-type")[0]
    assert said.json["apiVersion"] == "apidiscovery.k8s.io/v2"
    toys = said.json["items"][-1]
    assert (toys["metadata"]["name"], toys["versions"][0]["resources"][0]["resource"]) == ("toys.test", "widgets")
    assert {each["resource"] for each in core.json["items"][0]["versions"][0]["resources"]} >= {"pods", "nodes"}


async def test_every_kind_is_described(client):
    index = (await client.get("/openapi/v3")).json["paths"]

    assert {"api/v1", "apis/coordination.k8s.io/v1", "apis/toys.test/v1"} <= set(index)
    for path, place in index.items():
        assert place["serverRelativeURL"].startswith(f"/openapi/v3/{path}?hash=")
        assert (await client.get(f"/openapi/v3/{path}")).json["openapi"].startswith("3.")


async def test_kubectl_finds_what_it_looks_for_before_it_writes(client):
    """It looks for a PATCH of the kind that takes dryRun and fieldValidation."""
    document = (await client.get("/openapi/v3/apis/toys.test/v1")).json
    patch = document["paths"]["/apis/toys.test/v1/namespaces/{namespace}/widgets/{name}"]["patch"]

    assert patch["x-kubernetes-group-version-kind"] == {"group": "toys.test", "version": "v1", "kind": "Widget"}
    assert {"dryRun", "fieldValidation"} <= {parameter["name"] for parameter in patch["parameters"]}


async def test_every_reference_of_a_description_leads_somewhere(client):
    for path in (await client.get("/openapi/v3")).json["paths"]:
        said = await client.get(f"/openapi/v3/{path}")
        schemas = said.json["components"]["schemas"]

        wanted = {text.partition('"')[0] for text in said.body.decode().split('"#/components/schemas/')[1:]}
        assert wanted <= schemas.keys()


async def test_a_description_names_the_kind_of_each_schema(client):
    document = (await client.get("/openapi/v3/api/v1")).json

    pod = document["components"]["schemas"]["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert len(json.dumps(document)) < 500_000
