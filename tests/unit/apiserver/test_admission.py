"""What is wrong with an object: every fault at once, with its path and what would be right."""

import pytest

from tests.unit.apiserver.client import CONFIG_MAPS, NAMESPACE, PODS, WIDGETS, config_map, pod, widget

UNKNOWN = {
    "a misspelled field of a container": (
        PODS,
        pod("p", containers=[{"name": "c", "image": "i", "commands": ["sh"]}]),
        'unknown field "spec.containers[0].commands", did you mean "command"?',
    ),
    "a misspelled field of a kind of ours": (
        WIDGETS,
        widget("w", seize=1),
        'unknown field "spec.seize", did you mean "size"?',
    ),
    "a field that nobody could have meant": (WIDGETS, widget("w", zzz=1), 'unknown field "spec.zzz"'),
    "a field of an item of a list": (
        WIDGETS,
        widget("w", parts=[{"name": "a"}, {"name": "b", "cuont": 1}]),
        'unknown field "spec.parts[1].cuont", did you mean "count"?',
    ),
    "a field of the metadata": (
        WIDGETS,
        {**widget("w"), "metadata": {"name": "w", "label": {}}},
        'unknown field "metadata.label", did you mean "labels"?',
    ),
    "a field beside the spec": (WIDGETS, {**widget("w"), "spce": {}}, 'unknown field "spce", did you mean "spec"?'),
}


@pytest.mark.parametrize(("path", "body", "said"), UNKNOWN.values(), ids=UNKNOWN)
async def test_an_unknown_field_is_refused_when_asked_to_be_strict(client, store, path, body, said):
    before = store.revision

    strict = await client.post(path, body, fieldValidation="Strict")

    kind = body["kind"]
    assert strict.code == 400
    assert strict.message == f"{kind}: strict decoding error: {said}"
    assert store.revision == before


@pytest.mark.parametrize(("path", "body", "said"), UNKNOWN.values(), ids=UNKNOWN)
async def test_an_unknown_field_is_dropped_with_a_warning_otherwise(client, path, body, said):
    warned = await client.post(path, body)

    escaped = said.replace('"', '\\"')
    assert warned.code == 201
    assert warned.header("warning") == [f'299 - "{escaped}"']
    assert not any(word in warned.body.decode() for word in ("commands", "seize", "zzz", "cuont", "spce", '"label"'))


async def test_an_unknown_field_is_dropped_silently_when_asked(client):
    said = await client.post(WIDGETS, widget("w", zzz=1), fieldValidation="Ignore")

    assert (said.code, said.header("warning"), said.json["spec"]) == (201, [], {"size": 1})


async def test_a_field_that_stands_twice_is_refused_when_asked_to_be_strict(client):
    body = b'{"metadata": {"name": "a"}, "data": {"k": "1", "k": "2"}}'

    strict = await client.post(CONFIG_MAPS, body, fieldValidation="Strict")
    warned = await client.post(CONFIG_MAPS, body)

    assert strict.message.endswith('strict decoding error: duplicate field "data.k"')
    assert warned.header("warning") == ['299 - "duplicate field \\"data.k\\""']


async def test_what_may_hold_anything_is_kept_as_it_is(client):
    said = await client.post(WIDGETS, widget("w", anything={"a": {"b": None}}), fieldValidation="Strict")

    assert said.json["spec"]["anything"] == {"a": {"b": None}}


async def test_a_null_counts_as_not_being_there(client):
    body = {**widget("w", mode=None), "status": None}
    body["metadata"]["creationTimestamp"] = None

    said = await client.post(WIDGETS, body, fieldValidation="Strict")

    assert (said.code, said.json["spec"]) == (201, {"size": 1})


async def test_every_fault_is_told_at_once(client):
    spec = {"size": 0, "mode": "Fsat", "parts": [{}, {"name": 5}], "limits": {"cpu": "1x"}, "paused": "yes"}

    said = await client.post(WIDGETS, {**widget("Bad_Name"), "spec": spec})

    assert said.code == 422
    assert said.json["details"]["kind"] == "Widget"
    assert said.json["details"]["group"] == "toys.test"
    name = said.causes.pop("metadata.name")
    assert name.startswith('Invalid value: "Bad_Name": must consist of lower case letters')
    assert {path: text for path, text in said.causes.items() if path != "metadata.name"} == {
        "spec.size": "Invalid value: 0: spec.size in body should be greater than or equal to 1",
        "spec.mode": 'Unsupported value: "Fsat": supported values: "Fast", "Slow", did you mean "Fast"?',
        "spec.parts[0].name": "Required value",
        "spec.parts[1].name": 'Invalid value: "integer": spec.parts[1].name in body must be of type string: "integer"'
        "; put it in quotes",
        "spec.limits.cpu": 'Invalid value: "1x": must be a number with an optional unit, like 2, 500m, 1.5Gi or 200M',
        "spec.paused": 'Invalid value: "string": spec.paused in body must be of type boolean: "string"',
    }


WRONG = {
    "a number in quotes": ({"size": "2"}, "spec.size", 'of type integer: "string"; write 2 without quotes'),
    "a number beyond 32 bits": ({"size": 2**31}, "spec.size", "should be less than or equal to 2147483647"),
    "a number beyond all bits": ({"size": 10**30}, "spec.size", "should be less than or equal to 2147483647"),
    "a fraction": ({"size": 1.5}, "spec.size", 'must be of type integer: "number"'),
    "a list for a mapping": ({"limits": []}, "spec.limits", 'must be of type object: "array"'),
    "a mapping for a list": ({"parts": {}}, "spec.parts", 'must be of type array: "object"'),
    "a name that is not there": ({"config": "gone"}, "spec.config", 'Not found: "gone"'),
}


@pytest.mark.parametrize(("spec", "path", "said"), WRONG.values(), ids=WRONG)
async def test_a_value_that_is_not_allowed_is_refused_with_its_path(client, spec, path, said):
    answer = await client.post(WIDGETS, widget("w", **spec))

    assert answer.code == 422
    assert said in answer.causes[path]


async def test_a_rule_between_objects_is_satisfied_by_the_other_object(client):
    await client.post(CONFIG_MAPS, config_map("there"))

    assert (await client.post(WIDGETS, widget("w", config="there"))).code == 201


BAD_NAMES = [
    "UPPER",
    "a_b",
    "-a",
    "a-",
    ".",
    "..",
    "a..b",
    "ünï",
    "a b",
    "a/b",
    "x" * 254,
    "a;b",
    "a\\b",
    "CON.",
    "%2e",
]


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_a_bad_name_is_refused(client, store, name):
    before = store.revision

    said = await client.post(CONFIG_MAPS, config_map(name))

    assert (said.code, list(said.causes), store.revision) == (422, ["metadata.name"], before)


async def test_a_namespace_and_a_service_have_stricter_names(client):
    ports = {"ports": [{"port": 80}]}

    assert (await client.post("/api/v1/namespaces", {"metadata": {"name": "a.b"}})).code == 422
    assert (await client.post(f"{NAMESPACE}/services", {"metadata": {"name": "1a"}, "spec": ports})).code == 422
    assert (await client.post(CONFIG_MAPS, config_map("1.a"))).code == 201


METADATA = {
    "a label key": ({"labels": {"a b": "c"}}, "metadata.labels"),
    "a label value": ({"labels": {"a": "b c"}}, "metadata.labels"),
    "an annotation key": ({"annotations": {"a b": "c"}}, "metadata.annotations"),
    "too many annotations": ({"annotations": {"a": "x" * 300_000}}, "metadata.annotations"),
    "a finalizer without a domain": ({"finalizers": ["mine"]}, "metadata.finalizers[0]"),
    "an owner without a uid": (
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]},
        "metadata.ownerReferences.uid",
    ),
    "a generated name that no name can begin with": ({"generateName": "A_"}, "metadata.generateName"),
}


@pytest.mark.parametrize(("metadata", "path"), METADATA.values(), ids=METADATA)
async def test_metadata_is_checked_too(client, metadata, path):
    body = config_map("a")
    body["metadata"] |= metadata

    said = await client.post(CONFIG_MAPS, body)

    assert said.code == 422
    assert path in said.causes


async def test_a_long_value_is_shown_shortened(client):
    said = await client.post(WIDGETS, widget("w", mode="x" * 100_000))

    assert said.code == 422
    assert len(said.body) < 5000
