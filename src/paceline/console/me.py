"""`/api/me`: who is logged in, at which cluster, and what this person may do there."""

import asyncio
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from paceline import __version__
from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.name_validation import label_problem
from paceline.apimachinery.timestamps import to_wire
from paceline.client.http.cluster import HttpCluster
from paceline.client.interface import NAMESPACES, Select
from paceline.client.requests import Request as ApiRequest
from paceline.client.responses import read_object
from paceline.console.people import person_of
from paceline.console.responses import json_response
from paceline.console.runtime import runtime_of
from paceline.errors import BadRequest, Forbidden, NotFound, ServiceUnavailable

RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
REVIEW: Object = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
METRICS = "/apis/metrics.k8s.io/v1beta1"


async def me(request: Request) -> Response:
    """Return the person, the cluster, and the rights in one namespace, which the query may name."""
    runtime, person = runtime_of(request), person_of(request)
    namespace = request.query_params.get("namespace") or runtime.config.access.namespace
    if problem := label_problem(namespace):
        raise BadRequest(f"namespace {namespace!r}: {problem}")
    async with asyncio.TaskGroup() as group:
        namespaces = group.create_task(namespaces_of(person.client))
        rights = group.create_task(rights_in(person.client, namespace))
        version = group.create_task(read(person.client, "/version"))
        has_metrics = group.create_task(is_served(person.client, METRICS))
    config = runtime.config
    return json_response(
        {
            "name": person.name,
            "expires": to_wire(datetime.fromtimestamp(person.expires, UTC)),
            "namespace": namespace,
            "namespaces": namespaces.result(),
            "rights": rights.result(),
            "cluster": {
                "name": config.cluster_name,
                "embedded": config.is_embedded,
                "version": str(version.result().get("gitVersion") or ""),
                "server": config.access.server,
            },
            "features": {
                "metrics": has_metrics.result(),
                "history": config.is_embedded,
                "embeddedApps": bool(config.apps_host),
            },
            "version": __version__,
        }
    )


async def namespaces_of(cluster: HttpCluster) -> list[str] | None:
    """Return the names of all namespaces, sorted; None if the person may not list them."""
    try:
        page = await cluster.list(NAMESPACES, Select(only_ties=True))
    except Forbidden:
        return None
    return sorted(name_of(namespace) for namespace in page.items)


async def rights_in(cluster: HttpCluster, namespace: str) -> Object:
    """Return what the person may do in a namespace, as Kubernetes lists it; some authorizers cannot list everything."""
    review = await cluster.post(RULES, {**REVIEW, "spec": {"namespace": namespace}})
    status = review.get("status") or {}
    return {"resourceRules": status.get("resourceRules") or [], "incomplete": bool(status.get("incomplete"))}


async def is_served(cluster: HttpCluster, path: str) -> bool:
    """Return whether the cluster has an API group."""
    try:
        await read(cluster, path)
    except (NotFound, Forbidden, ServiceUnavailable):
        return False
    return True


async def read(cluster: HttpCluster, path: str) -> Object:
    """Return the JSON object at a path of the API."""
    return read_object(await cluster.transport.send(ApiRequest(method="GET", path=path)))


ROUTES = (Route("/api/me", me),)
