"""The old description of all kinds, which kubectl reads when the new one does not know a kind."""

import json

from tests.unit.apiserver.definitions import CRDS, definition

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def messages(raw):
    """The parts of a protobuf message that have a length, by number."""
    at, found = 0, {}
    while at < len(raw):
        tag, at = varint(raw, at)
        assert tag & 7 == 2
        size, at = varint(raw, at)
        assert at + size <= len(raw)
        found.setdefault(tag >> 3, []).append(raw[at : at + size])
        at += size
    return found


def varint(raw, at):
    number = shift = 0
    while True:
        byte = raw[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def named(raw):
    """The named parts of a message."""
    pairs = (messages(each) for each in messages(raw)[1])
    return {pair[1][0].decode(): messages(pair[2][0]) if pair[2][0] else {} for pair in pairs}


async def test_kubectl_gets_every_kind_in_protobuf(client):
    await client.post(CRDS, definition())
    said = await client.get("/openapi/v2", accept=PROTOBUF)
    schemas = named(messages(said.body)[9][0])
    fields = named(schemas["io.k8s.api.core.v1.ConfigMap"][25][0])
    extension = messages(schemas["test.home.v1.Lamp"][31][0])

    assert said.header("content-type") == ["application/com.github.proto-openapi.spec.v2.v1.0+protobuf"]
    assert {"apiVersion", "data", "immutable", "kind", "metadata"} <= set(fields)
    assert fields["metadata"][1] == [b"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
    assert extension[1] == [b"x-kubernetes-group-version-kind"]
    assert json.loads(messages(extension[2][0])[2][0]) == [{"group": "home.test", "kind": "Lamp", "version": "v1"}]


async def test_others_get_it_in_json(client):
    before = (await client.get("/openapi/v2")).json
    await client.post(CRDS, definition())
    after = (await client.get("/openapi/v2")).json

    assert before["swagger"] == "2.0"
    assert set(after["definitions"]) - set(before["definitions"]) == {"test.home.v1.Lamp"}
    spec = after["definitions"]["test.home.v1.Lamp"]["properties"]["spec"]["properties"]
    assert spec["color"] == {"type": "string", "description": "Its color.", "enum": ["red", "green"]}
    # Anything may be there, which this version can say only by saying nothing.
    assert "type" not in spec["port"]
    assert "properties" not in spec["free"]
