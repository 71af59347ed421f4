"""`/api/usage`: what a job's containers, or the nodes, used over time, from the best source that the cluster has.

The nodes of the embedded cluster keep it. Elsewhere Prometheus is asked, if the console was given one; or the metrics
API, which knows only what is used now, so that the page gathers points while it is open.
"""

import asyncio
from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from paceline.apimachinery.meta import Object, controller_of, name_of
from paceline.apimachinery.name_validation import subdomain_problem
from paceline.client.http.cluster import HttpCluster
from paceline.client.interface import NODES, PODS, Collection, Select
from paceline.client.requests import Request as ApiRequest
from paceline.client.responses import read_object
from paceline.client.rest_config import Access
from paceline.console.config import ConsoleConfig
from paceline.console.people import person_of
from paceline.console.responses import json_response
from paceline.console.runtime import runtime_of
from paceline.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound, PacelineError
from paceline.model import well_known_labels
from paceline.presentation.usage_series import (
    PROMETHEUS_QUERIES,
    metrics_items,
    metrics_node_item,
    prometheus_items,
    prometheus_query,
)

POD_METRICS = Collection(group="metrics.k8s.io", version="v1beta1", plural="pods")
NODE_METRICS = Collection(group="metrics.k8s.io", version="v1beta1", plural="nodes", namespaced=False)
NUMBERS = ("from", "to", "seconds", "points")
NAMES = ("namespace", "job", "uid")
DEFAULT_SECONDS, DEFAULT_POINTS = 3600.0, 300
LEAST_STEP_SECONDS = 15
# The nodes that are asked: of a cluster with more, the metrics are elsewhere.
MAX_NODES = 50


async def usage(request: Request) -> Response:
    """Answer with series of a job's containers, or of the nodes, and say where they come from."""
    query, client = read_query(request.query_params), person_of(request).client
    config = runtime_of(request).config
    node_series = await from_nodes(client, query)
    if node_series is not None:
        return json_response({"source": "node", **node_series})
    pods = [] if query.get("node") else await pods_of(client, query)
    if config.prometheus and not query.get("node"):
        return json_response({"source": "prometheus", **await from_prometheus(config, query, pods)})
    now = config.clock.now().timestamp()
    items = await metrics_now(client, query, pods, now)
    return json_response({"source": "metrics", "from": now, "to": now, "step": LEAST_STEP_SECONDS, "items": items})


def read_query(params: Mapping[str, str]) -> dict[str, str]:
    """Return the checked parameters of a request; BadRequest says what is wrong."""
    if unknown := params.keys() - {*NUMBERS, *NAMES, "node"}:
        raise BadRequest(f"{min(unknown)} is not supported; use one of: {', '.join((*NUMBERS, *NAMES, 'node'))}")
    for name in NUMBERS:
        if name in params and not params[name].replace(".", "", 1).isdecimal():
            raise BadRequest(f"{name}: {params[name][:40]!r} is not a number")
    for name in NAMES:
        if params.get(name) and (problem := subdomain_problem(params[name])):
            raise BadRequest(f"{name}: {params[name][:80]!r} {problem}")
    if not params.get("node") and not (params.get("namespace") and params.get("job")):
        raise BadRequest("specify namespace and job, or node=true")
    return dict(params)


async def from_nodes(client: HttpCluster, query: Mapping[str, str]) -> Object | None:
    """Return the series that the nodes store; None if no node stores any, or the person may not read nodes."""
    try:
        nodes = (await client.list(NODES)).items[:MAX_NODES]
    except Forbidden:
        return None
    # `uid` is the job's: it separates its pods from those of an earlier job of the same name.
    node_query = urlencode({name: value for name, value in query.items() if name != "uid"})
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_ask_node(client, name_of(node), node_query)) for node in nodes]
    answers = [answer for task in tasks if (answer := task.result()) is not None]
    if not answers:
        return None
    items = [{"node": answer["node"], **item} for answer in answers for item in answer["items"]]
    uid = query.get("uid", "")
    job_items = [item for item in items if not uid or item.get("ownerUid") == uid]
    return {**{name: answers[0][name] for name in ("from", "to", "step")}, "items": job_items}


async def _ask_node(client: HttpCluster, node: str, query: str) -> Object | None:
    try:
        return await _read(client, f"{NODES.path('', node)}/proxy/stats/series?{query}")
    except (NotFound, Forbidden, MethodNotAllowed, BadRequest):
        return None  # A kubelet, which keeps nothing.


async def pods_of(client: HttpCluster, query: Mapping[str, str]) -> list[Object]:
    """Return the pods of a job; the person must be allowed to list them."""
    select = Select(namespace=query["namespace"], labels=f"{well_known_labels.OWNER_NAME}={query['job']}")
    pods, uid = (await client.list(PODS, select)).items, query.get("uid", "")
    return [pod for pod in pods if not uid or (controller_of(pod) or {}).get("uid") == uid]


async def from_prometheus(config: ConsoleConfig, query: Mapping[str, str], pods: list[Object]) -> Object:
    """Return what Prometheus knows of pods."""
    end = float(query.get("to") or config.clock.now().timestamp())
    start = float(query.get("from") or end - float(query.get("seconds") or DEFAULT_SECONDS))
    points = max(int(float(query.get("points") or DEFAULT_POINTS)), 1)
    step = max(int((end - start) / points), LEAST_STEP_SECONDS)
    span = {"start": f"{start:.0f}", "end": f"{end:.0f}", "step": str(step)}
    answers: dict[str, Object] = {}
    if pods:
        async with HttpCluster(Access(server=config.prometheus), config.chance) as prometheus:
            for field in PROMETHEUS_QUERIES:
                text = prometheus_query(field, query["namespace"], map(name_of, pods), step)
                answers[field] = await _read(prometheus, f"/api/v1/query_range?{urlencode({'query': text, **span})}")
    return {"from": start, "to": end, "step": step, "items": prometheus_items(pods, answers)}


async def metrics_now(client: HttpCluster, query: Mapping[str, str], pods: list[Object], now: float) -> list[Object]:
    """Return what the metrics API says; nothing if the cluster has none."""
    try:
        if query.get("node"):
            nodes, metrics = (await client.list(NODES)).items, (await client.list(NODE_METRICS)).items
            return [metrics_node_item(nodes, metrics, now)]
        select = Select(namespace=query["namespace"])
        return metrics_items(pods, (await client.list(POD_METRICS, select)).items, now) if pods else []
    except PacelineError as error:
        if isinstance(error, Forbidden):
            raise
        return []


async def _read(client: HttpCluster, path: str) -> Object:
    return read_object(await client.transport.send(ApiRequest(method="GET", path=path)))


ROUTES: tuple[BaseRoute, ...] = (Route("/api/usage", usage),)
