"""metrics.k8s.io: the agent's words become Kubernetes'."""

import pytest

from tests.unit.apiserver.client import PODS, pod

METRICS = "/apis/metrics.k8s.io/v1beta1"
AT = "2030-01-01T00:00:00Z"


def used(nanocores, size):
    return {
        "cpu": {"time": AT, "usageNanoCores": nanocores},
        "memory": {"time": AT, "workingSetBytes": size},
        "windowSeconds": 10.5,
    }


@pytest.fixture
async def busy(client, nodes):
    """Two pods that are measured, one of them gone by now, and their node."""
    body = pod("p", nodeName="n1")
    body["metadata"]["labels"] = {"app": "x"}
    await client.post(PODS, body)
    await client.post("/api/v1/nodes", {"metadata": {"name": "n1", "labels": {"zone": "a"}}})
    nodes.summary = {
        "node": {"nodeName": "n1", **used(1_500_000_000, 4096)},
        "pods": [
            {
                "podRef": {"name": name, "namespace": "default"},
                "containers": [{"name": "main", **used(250_000_000, 1025)}, {"name": "new"}],
            }
            for name in ("p", "gone")
        ],
    }
    return client


POD = {
    "kind": "PodMetrics",
    "apiVersion": "metrics.k8s.io/v1beta1",
    "metadata": {"name": "p", "namespace": "default", "labels": {"app": "x"}},
    "timestamp": AT,
    "window": "10.5s",
    "containers": [{"name": "main", "usage": {"cpu": "250000000n", "memory": "2Ki"}}],
}


async def test_what_a_pod_uses_is_told_by_container(busy):
    assert (await busy.get(f"{METRICS}/namespaces/default/pods/p")).json == POD


async def test_what_a_node_uses_is_told(busy):
    told = (await busy.get(f"{METRICS}/nodes/n1")).json

    assert told["metadata"] == {"name": "n1", "labels": {"zone": "a"}}
    assert told["usage"] == {"cpu": "1500000000n", "memory": "4Ki"}


SELECTED = {
    "everywhere": ("/pods", {}, ["p"]),
    "in the namespace": ("/namespaces/default/pods", {}, ["p"]),
    "in another namespace": ("/namespaces/other/pods", {}, []),
    "by label": ("/pods", {"labelSelector": "app=x"}, ["p"]),
    "by another label": ("/pods", {"labelSelector": "app=y"}, []),
    "by name": ("/pods", {"fieldSelector": "metadata.name=p"}, ["p"]),
    "by another name": ("/pods", {"fieldSelector": "metadata.name=q"}, []),
    "nodes": ("/nodes", {}, ["n1"]),
    "nodes by label": ("/nodes", {"labelSelector": "zone=b"}, []),
}


@pytest.mark.parametrize(("path", "query", "names"), SELECTED.values(), ids=SELECTED)
async def test_only_those_that_are_meant_and_still_there_are_listed(busy, path, query, names):
    listed = (await busy.get(f"{METRICS}{path}", **query)).json

    assert listed["kind"] in {"PodMetricsList", "NodeMetricsList"}
    assert [each["metadata"]["name"] for each in listed["items"]] == names


async def test_what_is_not_measured_is_not_found_in_the_words_of_kubernetes(busy):
    """A pod that is there and not measured yet is another case than one that is not there."""
    await busy.post(PODS, pod("new", nodeName="n1"))

    new = await busy.get(f"{METRICS}/namespaces/default/pods/new")
    gone = await busy.get(f"{METRICS}/namespaces/default/pods/no")
    node = await busy.get(f"{METRICS}/nodes/no")

    assert (new.code, new.message) == (404, 'podmetrics.metrics.k8s.io "default/new" not found')
    assert (gone.code, gone.message) == (404, 'pods "no" not found')
    assert (node.code, node.message) == (404, 'node "no" not found')


async def test_nothing_measured_yet_is_an_empty_list(client):
    assert (await client.get(f"{METRICS}/nodes")).json["items"] == []


async def test_metrics_are_only_read(busy):
    assert (await busy.post(f"{METRICS}/namespaces/default/pods", {})).code == 405
    assert (await busy.delete(f"{METRICS}/nodes/n1")).code == 405


async def test_discovery_lists_them(client):
    listed = (await client.get(METRICS)).json["resources"]

    assert [(each["name"], each["verbs"]) for each in listed] == [("nodes", ["get", "list"]), ("pods", ["get", "list"])]
