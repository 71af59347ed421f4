"""Hostile documents and requests: a clear 4xx, never a 5xx, never a crash."""

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paceline.apiserver.encoding.request_body import MAX_DEPTH
from tests.unit.apiserver.client import (
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE,
    PODS,
    STRATEGIC,
    WIDGETS,
    config_map,
    pod,
    widget,
)

DOCUMENTS = {
    "nothing": b"",
    "blanks": b"   ",
    "half a document": b'{"metadata": {"name": "a"',
    "two documents": b"{}{}",
    "a list": b"[]",
    "text": b'"text"',
    "a number": b"5",
    "null": b"null",
    "NaN": b'{"metadata": {"name": "a"}, "data": NaN}',
    "Infinity": b'{"metadata": {"name": "a"}, "data": Infinity}',
    "a number too large for a float": b'{"metadata": {"name": "a"}, "data": 1e999}',
    "a number of 10,000 digits": b'{"metadata": {"name": "a"}, "data": ' + b"9" * 10_000 + b"}",
    "a million brackets": b"[" * 1_000_000,
    "nesting beyond the bound": b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1),
    "nesting just below a parser's own bound": b"[" * 1000 + b"]" * 1000,
    "bytes that are not UTF-8": b'{"metadata": {"name": "\xff"}}',
    "UTF-16": '{"metadata": {"name": "a"}}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"metadata": {"name": "a"}}',
    "a lone surrogate": b'{"metadata": {"name": "\\ud800"}}',
    "a NUL in a name": b'{"metadata": {"name": "a\\u0000b"}}',
    "metadata that is a list": b'{"metadata": []}',
    "metadata that is null": b'{"metadata": null}',
    "data that is a number": b'{"metadata": {"name": "a"}, "data": 5}',
    "a name that is a number": b'{"metadata": {"name": 5}}',
    "a name that is an object": b'{"metadata": {"name": {"a": "b"}}}',
    "a namespace that is a number": b'{"metadata": {"name": "a", "namespace": 5}}',
    "a kind that is a list": b'{"kind": [], "metadata": {"name": "a"}, "apiVersion": {}}',
    "YAML": b"metadata:\n  name: a\n",
}


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
async def test_a_hostile_document_is_refused(client, store, document):
    before = store.revision

    said = await client.post(CONFIG_MAPS, document)

    assert said.code in {400, 413, 422}, said.body
    assert said.json["kind"] == "Status"
    assert store.revision == before


@pytest.mark.parametrize("sort", [MERGE, STRATEGIC, JSON_PATCH])
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
async def test_a_hostile_patch_is_refused_or_harmless(client, document, sort):
    await client.post(CONFIG_MAPS, config_map("a"))

    said = await client.patch(f"{CONFIG_MAPS}/a", document, sort=sort)

    assert said.code < 500
    assert (await client.get(f"{CONFIG_MAPS}/a")).json["metadata"]["name"] == "a"


async def test_copies_of_copies_are_bounded(client):
    """Each operation doubles the object; a hundred of them would fill any memory."""
    await client.post(CONFIG_MAPS, config_map("a", k="x" * 100))
    steps = [{"op": "copy", "from": "/data", "path": f"/data/k{n}"} for n in range(100)]

    said = await client.patch(f"{CONFIG_MAPS}/a", steps, sort=JSON_PATCH)

    assert said.code == 422


async def test_a_deep_patch_on_a_deep_object_is_bounded(client):
    deep = {}
    for _ in range(MAX_DEPTH - 10):
        deep = {"a": deep}
    await client.post(WIDGETS, widget("w", anything=deep))
    path = "/spec/anything" + "/a" * (MAX_DEPTH - 10)

    said = await client.patch(f"{WIDGETS}/w", [{"op": "add", "path": f"{path}/b", "value": deep}], sort=JSON_PATCH)

    assert said.code == 400


PATHS = [
    "/foo",
    "/api/v1/namespaces/default/podz",
    "/api/v2/pods",
    "/apis/none.test/v1/things",
    "/apis/toys.test/v2/widgets",
    f"{PODS}/a/foo",
    f"{PODS}/a/log/b",
    f"{PODS}/a/b/c/d",
    "/api/v1/pods/a",
    f"{PODS}/..%2f..%2fsecrets",
    f"{PODS}/%00",
    "/api/v1/nodes/a/log",
    "/api/v1/namespaces/default/nodes/a",
    "/openapi/v4",
    "/openapi/v3/api/v2",
    "/api/v1/watch",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "FOO"])
async def test_a_path_that_leads_nowhere_is_said_to(client, path, method):
    said = await client.send(method, path)

    assert said.code in {400, 404, 405, 415}, said.body
    # Where Kubernetes has nothing at all it answers as a web server does.
    assert said.body in {b"404 page not found\n", b""} or said.json["kind"] == "Status"


QUERIES = [
    {"limit": "x"},
    {"limit": "9" * 30},
    {"continue": "abc"},
    {"continue": "e30"},
    {"continue": "bnVsbA"},
    {"continue": "W10"},
    {"continue": "\udcff".encode("utf-8", "surrogateescape")},
    {"resourceVersion": "abc"},
    {"resourceVersion": "-1"},
    {"resourceVersion": "9" * 40},
    {"labelSelector": "a==b==c"},
    {"labelSelector": "a in b"},
    {"labelSelector": "," * 1000},
    {"labelSelector": "a in (" * 1000},
    {"labelSelector": "x" * 20_000},
    {"fieldSelector": "xx"},
    {"fieldSelector": "spec.foo=x"},
    {"watch": "1", "timeoutSeconds": "x"},
    {"watch": "1", "sendInitialEvents": "true"},
    {"includeObject": "Everything", "accept": "table"},
]


@pytest.mark.parametrize("query", QUERIES, ids=str)
async def test_a_query_that_cannot_be_read_is_refused(client, query):
    table = query.pop("accept", None) and "application/json;as=Table;v=v1;g=meta.k8s.io"

    said = await client.get(PODS, accept=table, **query)

    assert (said.code, said.json["reason"]) in {(400, "BadRequest"), (422, "Invalid")}, said.body


@pytest.mark.parametrize("sign", ["a", "%61"])
async def test_a_query_of_too_many_fields_is_refused(client, sign):
    said = await client.send("GET", PODS, query={f"{sign}{number}": "1" for number in range(101)})

    assert (said.code, said.json["message"]) == (400, "the query cannot be read")


async def test_a_query_of_bytes_that_are_not_utf8_is_refused(client):
    said = await client.send("GET", PODS, query={b"labelSelector": b"\xff"})

    assert said.code == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMESPACED = "/api/v1/namespaces/default"
SAMPLES = {
    PODS: pod(
        "p",
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        initContainers=[
            {
                "name": "i",
                "image": "x",
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            }
        ],
        containers=[
            {
                "name": "c",
                "image": "x",
                "ports": [{"containerPort": 1, "name": "a"}],
                "volumeMounts": [{"name": "v", "mountPath": "/m", "subPath": "s"}],
                "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
                "livenessProbe": {"httpGet": {"port": 80}},
            }
        ],
    ),
    WIDGETS: widget("w", parts=[{"name": "a", "count": 1}], limits={"cpu": "1"}, anything={"a": [1]}, config="c"),
    CONFIG_MAPS: config_map("c", labels={"a": "b"}, k="v"),
    f"{NAMESPACED}/secrets": {"metadata": {"name": "s"}, "data": {"a": "YQ=="}, "stringData": {"b": "c"}},
    f"{NAMESPACED}/services": {
        "metadata": {"name": "s"},
        "spec": {"type": "ClusterIP", "clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 1, "name": "a"}]},
    },
    f"{NAMESPACED}/persistentvolumeclaims": {
        "metadata": {"name": "s", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    f"{NAMESPACED}/events": {
        "metadata": {"name": "e", "finalizers": ["a/b"]},
        "involvedObject": {"kind": "Pod", "namespace": "default"},
        "count": 1,
    },
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": {
        "metadata": {"name": "l"},
        "spec": {"leaseDurationSeconds": 5, "renewTime": "2030-01-01T00:00:00.000000Z"},
    },
    "/api/v1/nodes": {
        "metadata": {"name": "n", "annotations": {"a": "b"}},
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
    },
    "/api/v1/namespaces": {"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}},
    "/api/v1/persistentvolumes": {
        "metadata": {"name": "v"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}},
    },
}


def places(value, path=()):
    """Every place in a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in inside:
        yield (*path, step)
        yield from places(inner, (*path, step))


PLACES = [(path, place) for path, sample in SAMPLES.items() for place in places(sample)]
FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def mutated(sample, place, value):
    """A copy of a sample with another value at a place."""
    body = copy.deepcopy(sample)
    holder = body
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    return body


@FUZZ
@given(where=st.sampled_from(PLACES), value=JSON)
async def test_any_value_anywhere_in_an_object_is_taken_or_refused(client, where, value):
    path, place = where

    said = await client.post(path, mutated(SAMPLES[path], place, value), dryRun="All")

    assert said.code in {201, 400, 409, 422}, (place, value, said.body)


@FUZZ
@given(where=st.sampled_from(PLACES), value=JSON, sort=st.sampled_from([MERGE, STRATEGIC]))
async def test_any_value_anywhere_in_a_patch_is_taken_or_refused(client, where, value, sort):
    path, place = where
    await client.post(CONFIG_MAPS, config_map("c"))
    made = await client.post(path, SAMPLES[path])
    name = SAMPLES[path]["metadata"]["name"]
    assert made.code in {201, 409}

    said = await client.patch(f"{path}/{name}", mutated(SAMPLES[path], place, value), sort=sort, dryRun="All")

    assert said.code in {200, 400, 409, 415, 422}, (place, value, said.body)


@pytest.mark.parametrize("names", [[f"field{number}" for number in range(5000)], ["x" * 100_000]])
async def test_warnings_are_bounded_however_many_a_body_gives_cause_for(client, names):
    said = await client.post(CONFIG_MAPS, {**config_map("a"), **dict.fromkeys(names, 1)})

    assert said.code == 201
    assert 0 < sum(map(len, said.header("warning"))) < 10_000
