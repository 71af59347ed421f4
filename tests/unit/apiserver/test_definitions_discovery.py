"""What a defined kind looks like to those who ask what the server has."""

from tests.unit.apiserver.definitions import CRDS, definition, version
from tests.unit.apiserver.test_discovery import ALL

DOCUMENT = "/openapi/v3/apis/home.test/v1"


async def test_a_defined_kind_is_listed_with_all_its_names(client):
    both = [version("v1"), version("v1beta1", storage=False, subresources={})]
    await client.post(CRDS, definition(versions=both, shortNames=["lp"], categories=["all"]))
    lines = (await client.get("/apis/home.test/v1")).json["resources"]
    older = (await client.get("/apis/home.test/v1beta1")).json["resources"]

    assert [each["name"] for each in lines] == ["lamps", "lamps/status", "lamps/scale"]
    assert lines[0] | {"singularName": "lamp", "shortNames": ["lp"], "categories": ["all"]} == lines[0]
    assert (lines[2]["group"], lines[2]["version"], lines[2]["kind"]) == ("autoscaling", "v1", "Scale")
    assert [each["name"] for each in older] == ["lamps"]
    assert older[0]["storageVersionHash"] == lines[0]["storageVersionHash"]


async def test_a_defined_kind_is_among_all_that_is_told_at_once(client):
    before = (await client.get("/apis", accept=ALL)).json["items"]
    await client.post(CRDS, definition())
    after = (await client.get("/apis", accept=ALL)).json["items"]
    await client.delete(f"{CRDS}/lamps.home.test")
    (new,) = [group for group in after if group not in before]

    assert (new["metadata"]["name"], new["versions"][0]["freshness"]) == ("home.test", "Current")
    parts = new["versions"][0]["resources"][0]["subresources"]
    assert parts[1]["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert (await client.get("/apis", accept=ALL)).json["items"] == before
    assert (await client.get("/apis/home.test")).code == 404


async def test_a_defined_kind_is_described_in_the_words_of_its_schema(client):
    await client.post(CRDS, definition())
    schemas = (await client.get(DOCUMENT)).json["components"]["schemas"]
    lamp = schemas["test.home.v1.Lamp"]

    assert lamp["description"] == "It shines."
    assert lamp["x-kubernetes-group-version-kind"] == [{"group": "home.test", "kind": "Lamp", "version": "v1"}]
    assert lamp["properties"]["spec"]["properties"]["color"]["description"] == "Its color."
    assert lamp["properties"]["spec"]["properties"]["port"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert set(lamp["properties"]["spec"]["properties"]["inner"]["required"]) == {"apiVersion", "kind"}
    assert "io.k8s.api.autoscaling.v1.Scale" in schemas


async def test_a_document_is_named_anew_when_it_changes(client):
    async def url():
        return (await client.get("/openapi/v3")).json["paths"]["apis/home.test/v1"]["serverRelativeURL"]

    await client.post(CRDS, definition())
    first, same = await url(), await url()
    schema = {"openAPIV3Schema": {"type": "object", "description": "It glows."}}
    await client.patch(f"{CRDS}/lamps.home.test", {"spec": {"versions": [version(schema=schema)]}})

    assert first == same
    assert await url() != first
    assert (await client.get(DOCUMENT)).json["components"]["schemas"]["test.home.v1.Lamp"]["description"] == "It glows."


async def test_a_document_goes_with_its_kind(client):
    await client.post(CRDS, definition())
    await client.delete(f"{CRDS}/lamps.home.test")

    assert (await client.get(DOCUMENT)).code == 404
    assert "apis/home.test/v1" not in (await client.get("/openapi/v3")).json["paths"]
