"""`/api/usage`: use over time, from the nodes, from Prometheus, or from the metrics API."""

import json
from dataclasses import replace

import pytest

from tests.unit.console.console_site import OWN, console_site

PATH = "/api/usage?namespace=default&job=demo&uid=u1&seconds=600"
KEPT = {"from": 0, "to": 600, "step": 5, "node": "box"}


def item(owner, pod="demo-0", **values):
    return {"pod": pod, "uid": "p1", "ownerUid": owner, "container": "main", "times": [5], "values": values}


POD = {
    "metadata": {
        "name": "demo-0",
        "namespace": "default",
        "uid": "p1",
        "labels": {"tensorstack.dev/owner-name": "demo"},
        "ownerReferences": [{"apiVersion": "a/v1", "kind": "Job", "name": "demo", "uid": "u1", "controller": True}],
    },
    "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}}}]},
}


class Cluster:
    """Answers by path as a test says, 404 to everything else."""

    def __init__(self):
        self.answers = {"/api/v1/nodes": {"items": [{"metadata": {"name": "box"}}]}}
        self.asked = []

    async def __call__(self, scope, _receive, send):
        path = scope["path"]
        self.asked.append(f"{path}?{scope['query_string'].decode()}")
        missing = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"}
        code, body = (200, self.answers[path]) if path in self.answers else (404, missing)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps({"metadata": {}, **body}).encode()})


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
async def site(tmp_path, cluster):
    async with console_site(tmp_path, cluster) as console:
        yield console


async def ask(site, path=PATH):
    return await site.as_page("GET", path, Cookie=site.cookie("admin", OWN))


async def test_what_nodes_keep_is_passed_on_for_this_job_alone(site, cluster):
    series = {"items": [item("u1"), item("an earlier job")], **KEPT}
    cluster.answers["/api/v1/nodes/box/proxy/stats/series"] = series

    answer = (await ask(site)).json

    assert (answer["source"], answer["step"]) == ("node", 5)
    assert [entry["ownerUid"] for entry in answer["items"]] == ["u1"]
    assert "uid" not in cluster.asked[-1]


async def test_elsewhere_the_metrics_api_says_what_is_used_now(site, cluster):
    usage = {
        "metadata": {"name": "demo-0"},
        "containers": [{"name": "main", "usage": {"cpu": "250m", "memory": "1Mi"}}],
    }
    cluster.answers |= {
        "/api/v1/namespaces/default/pods": {"items": [POD]},
        "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods": {"items": [usage]},
    }

    answer = (await ask(site)).json

    assert answer["source"] == "metrics"
    (entry,) = answer["items"]
    assert (entry["values"]["cpu"]["mean"], entry["values"]["memory"]["mean"]) == ([0.25], [2**20])
    assert (entry["requests"], entry["limits"], len(entry["times"])) == ({"cpu": 0.5}, {"memory": 2**30}, 1)


async def test_a_cluster_without_any_metrics_has_no_points(site, cluster):
    cluster.answers["/api/v1/namespaces/default/pods"] = {"items": [POD]}

    assert (await ask(site)).json["items"] == []


async def test_prometheus_is_asked_if_there_is_one(site, cluster):
    runtime = site.gate.runtime
    runtime.config = replace(runtime.config, prometheus=runtime.config.access.server)
    result = {"metric": {"pod": "demo-0", "container": "main"}, "values": [[100, "0.5"], [115, "NaN"], [130, "1"]]}
    cluster.answers |= {
        "/api/v1/namespaces/default/pods": {"items": [POD]},
        "/api/v1/query_range": {"data": {"result": [result]}},
    }

    answer = (await ask(site)).json

    assert answer["source"] == "prometheus"
    (entry,) = answer["items"]
    assert (entry["times"], entry["values"]["cpu"]["mean"]) == ([100, 130], [0.5, 1.0])
    queries = [path for path in cluster.asked if "query_range" in path]
    assert len(queries) == 8
    assert "pod%3D~%22demo-0%22" in queries[0]


WRONG = {
    "namespace=default": "specify namespace and job, or node=true",
    "node=true&from=abc": "from: 'abc' is not a number",
    "namespace=A&job=demo": "namespace: 'A' ",
    "node=true&color=red": "color is not supported",
}


@pytest.mark.parametrize(("query", "message"), WRONG.items(), ids=WRONG)
async def test_a_wrong_request_is_refused(site, cluster, query, message):
    answer = await ask(site, f"/api/usage?{query}")

    assert answer.code == 400
    assert message in answer.json["message"]
    assert cluster.asked == []
