"""Every verb has one spelling, the one a Kubernetes API server reads."""

from urllib.parse import parse_qsl, unquote

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.client import requests
from paceline.client.interface import NODES, PODS, Collection, PatchType, Select
from paceline.errors import BadRequest

JOBS = Collection(group="batch.tensorstack.dev", version="v1beta1", plural="genericjobs")
JOB = {"metadata": {"namespace": "team", "name": "demo"}}
JOB_PATH = "/apis/batch.tensorstack.dev/v1beta1/namespaces/team/genericjobs"

CASES = {
    "get names the object": (
        requests.get(PODS, "team", "a"),
        ("GET", "/api/v1/namespaces/team/pods/a"),
    ),
    "an object without a namespace has none in its path": (
        requests.get(NODES, "", "n1"),
        ("GET", "/api/v1/nodes/n1"),
    ),
    "list over all namespaces": (
        requests.page(JOBS, Select(), limit=2),
        ("GET", "/apis/batch.tensorstack.dev/v1beta1/genericjobs?limit=2"),
    ),
    "list goes on after a page": (
        requests.page(PODS, Select(namespace="team"), limit=2, after="to/ken=="),
        ("GET", "/api/v1/namespaces/team/pods?limit=2&continue=to%2Fken%3D%3D"),
    ),
    "a selection is quoted": (
        requests.page(PODS, Select(labels="a=b,c!=d", fields="metadata.name=x"), limit=0),
        (
            "GET",
            "/api/v1/pods?labelSelector=a%3Db%2Cc%21%3Dd&fieldSelector=metadata.name%3Dx",
        ),
    ),
    "watch asks for bookmarks and a time limit": (
        requests.watch(PODS, Select(namespace="team"), since="7", timeout_seconds=300),
        (
            "GET",
            "/api/v1/namespaces/team/pods?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=300",
        ),
    ),
    "create is strict": (
        requests.create(JOBS, JOB),
        ("POST", f"{JOB_PATH}?fieldValidation=Strict"),
    ),
    "replace of the status is strict": (
        requests.replace(JOBS, JOB, subresource="status"),
        ("PUT", f"{JOB_PATH}/demo/status?fieldValidation=Strict"),
    ),
    "patch is strict": (
        requests.patch(JOBS, ("team", "demo"), {}),
        ("PATCH", f"{JOB_PATH}/demo?fieldValidation=Strict"),
    ),
    "delete names the object": (
        requests.delete(JOBS, ("team", "demo")),
        ("DELETE", f"{JOB_PATH}/demo"),
    ),
    "a name cannot leave its place in the path": (
        requests.get(PODS, "team", "../nodes?x"),
        ("GET", "/api/v1/namespaces/team/pods/..%2Fnodes%3Fx"),
    ),
}


@pytest.mark.parametrize(("request_", "expected"), CASES.values(), ids=CASES)
def test_spelling(request_, expected):
    assert (request_.method, request_.target) == expected


@pytest.mark.parametrize("kind", PatchType)
def test_a_patch_says_how_it_is_to_be_read(kind):
    request = requests.patch(PODS, ("team", "a"), {"spec": None}, kind=kind)

    assert dict(request.headers)["Content-Type"] == kind.value
    assert orjson.loads(request.body) == {"spec": None}


def test_a_delete_carries_its_options():
    request = requests.delete(PODS, ("team", "a"), {"preconditions": {"uid": "u"}})

    assert orjson.loads(request.body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u"},
    }


def test_the_client_waits_longer_than_the_server():
    request = requests.watch(PODS, Select(), since="1", timeout_seconds=300)

    assert request.silence_seconds > 300


def test_an_object_without_the_namespace_it_needs_is_not_sent():
    with pytest.raises(BadRequest, match=r"metadata\.namespace is empty"):
        requests.create(PODS, {"metadata": {"name": "a"}})


def test_a_get_without_a_name_is_not_sent_as_a_list():
    with pytest.raises(BadRequest, match=r"metadata\.name is empty"):
        requests.get(PODS, "team", "")


def test_only_reading_is_safe_to_repeat():
    assert requests.get(PODS, "team", "a").is_safe
    assert not requests.create(PODS, JOB).is_safe
    assert not requests.patch(PODS, ("team", "a"), {}).is_safe
    assert not requests.delete(PODS, ("team", "a")).is_safe


def test_only_ties_are_asked_for_as_metadata():
    select = Select(only_ties=True)

    assert dict(requests.page(PODS, select, limit=0).headers)["Accept"] == (
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    )
    assert dict(requests.watch(PODS, select, since="1").headers)["Accept"] == (
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    )


WORDS = st.text(st.characters(codec="utf-8"), max_size=6)


@given(name=WORDS.filter(bool), labels=WORDS, after=WORDS)
def test_whatever_is_asked_for_arrives_as_it_was_meant(name, labels, after):
    path, _, query = requests.page(PODS, Select(namespace=name, labels=labels), limit=3, after=after).target.partition(
        "?"
    )

    assert unquote(path) == f"/api/v1/namespaces/{name}/pods"
    assert "/" not in path.removeprefix("/api/v1/namespaces/").removesuffix("/pods")
    assert dict(parse_qsl(query)) == {
        **({"labelSelector": labels} if labels else {}),
        "limit": "3",
        **({"continue": after} if after else {}),
    }
