"""Bodies in JSON and YAML: what is read, and what is said about the rest."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.apiserver.encoding.request_body import duplicate_fields, read_yaml
from tests.unit.apiserver.client import CONFIG_MAPS, config_map

YAML = "application/yaml"

NOT_JSON = (
    *(b"", b"{", b'{"a":NaN}', b"[1,]", b'{"a":1,}', b"{'a':1}", b'{"a" 1}', b'{"a":1 "b":2}', b"[1 2]"),
    *(b'{"a":trux}', b'"a\nb"', b'"\\x"', b'"\\u12g4"', b"-a", b"1.a", b"1ea", b"{} x", b"[" * 50_000, b"\xff"),
)


@pytest.mark.parametrize("body", NOT_JSON, ids=lambda body: repr(body[:20]))
async def test_what_is_no_json_is_a_bad_request(client, body):
    said = await client.send("POST", CONFIG_MAPS, body, headers={"content-type": "application/json"})

    assert (said.code, said.json["kind"], said.json["reason"]) == (400, "Status", "BadRequest")
    assert "is not valid JSON" in said.message


async def test_yaml_makes_what_json_makes(client):
    body = b"# a comment\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  text: |\n    two\n    lines\n"

    said = await client.send("POST", CONFIG_MAPS, body, headers={"content-type": YAML})

    assert (said.code, said.json["data"]) == (201, {"text": "two\nlines\n"})


@pytest.mark.parametrize("sort", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/json;x=y", None])
async def test_json_is_known_by_many_spellings(client, sort):
    said = await client.send("POST", CONFIG_MAPS, config_map("a"), headers={"content-type": sort} if sort else None)

    assert said.code == 201


@pytest.mark.parametrize("sort", ["text/plain", "application/cbor", "nonsense", "application/x-www-form-urlencoded"])
async def test_other_bodies_are_turned_away(client, sort):
    said = await client.send("POST", CONFIG_MAPS, config_map("a"), headers={"content-type": sort})

    assert said.code == 415
    assert said.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


UNREADABLE = {
    "nothing": (b"", "is not valid JSON"),
    "half a document": (b"{", "is not valid JSON"),
    "a list": (b"[]", "must be an object"),
    "a kind that is a number": (b'{"kind":1}', "kind must be a string"),
    "metadata that is text": (b'{"metadata":"x"}', "metadata must be an object"),
}


@pytest.mark.parametrize("case", UNREADABLE.values(), ids=UNREADABLE)
async def test_a_body_that_cannot_be_read_is_refused(client, case):
    body, words = case

    said = await client.send("POST", CONFIG_MAPS, body, headers={"content-type": "application/json"})

    assert (said.code, said.json["reason"]) == (400, "BadRequest")
    assert words in said.message


async def test_a_field_that_stands_twice_is_told_or_refused(client):
    body = b'{"metadata":{"name":"a"},"data":{"x":"1","x":"2"}}'
    sort = {"content-type": "application/json"}

    warned = await client.send("POST", CONFIG_MAPS, body, headers=sort)
    refused = await client.send("POST", CONFIG_MAPS, body, headers=sort, query={"fieldValidation": "Strict"})

    assert (warned.code, warned.header("warning")) == (201, ['299 - "duplicate field \\"data.x\\""'])
    assert refused.code == 400
    assert refused.message.endswith('strict decoding error: duplicate field "data.x"')


# What a field that stands twice may hide behind: spaces, texts that look like names, numbers that are written shorter.
HIDDEN = {
    "spaces before a colon": b'{"metadata" : {"name" : "a"}, "data" : {"x" : "1", "x" : "2"}}',
    "a text with the end of a name": b'{"metadata":{"name":"a"},"data":{"x":"1","x":"2","y":"\\u0022:"}}',
    "a number that grows": b'{"metadata":{"name":"a","generation":1e11},"data":{"x":"","x":""}}',
    "texts that begin with a colon": b'{"metadata":{"name":"a"},"data":{"x":":","x":":","y":": \\":"}}',
}


@pytest.mark.parametrize("body", HIDDEN.values(), ids=HIDDEN)
def test_a_field_that_stands_twice_is_found_wherever_it_hides(body):
    assert duplicate_fields(body, orjson.loads(body)) == ("data.x",)


values = st.recursive(
    st.text() | st.integers(-9, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=9,
)


@given(values, st.booleans(), st.sampled_from(((",", ":"), (", ", ": "), (" ,", " :\n"))))
def test_fields_that_stand_once_are_not_said_to_stand_twice(value, is_ascii, marks):
    body = json.dumps(value, ensure_ascii=is_ascii, separators=marks).encode()

    assert duplicate_fields(body, orjson.loads(body)) == ()


async def test_owners_that_stand_twice_are_taken_once(client):
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
    body = {**config_map("a"), "metadata": {"name": "a", "ownerReferences": [owner, owner]}}

    said = await client.post(CONFIG_MAPS, body)

    assert said.json["metadata"]["ownerReferences"] == [owner]
    assert "duplicate UIDs: u" in said.header("warning")[0]


async def test_an_update_cannot_say_when_an_object_ends(client):
    await client.post(CONFIG_MAPS, config_map("a"))

    said = await client.patch(f"{CONFIG_MAPS}/a", {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}})

    assert said.code == 422
    assert said.message.startswith('ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value')


async def test_a_body_of_many_yaml_documents_is_bounded_as_one_is(client):
    body = b"metadata: {name: a}\n" + b"--- 1\n" * 20_000

    said = await client.send("POST", CONFIG_MAPS, body, headers={"content-type": YAML})

    assert said.code == 400
    assert "20000 values" in said.message


MERGES = {
    b"{<<: {k: 1}, <<: {k: 2}}": {"k": 1},
    b"{<<: [{k: 1, l: 1}, {k: 2}], <<: {l: 3, m: 3}, m: 4}": {"k": 1, "l": 1, "m": 4},
    b"{k: 0, <<: [{k: 1}]}": {"k": 0},
}


@pytest.mark.parametrize("text", MERGES)
def test_of_several_merged_mappings_the_first_wins(text):
    assert read_yaml(text, "")[0] == MERGES[text]
