"""metrics.k8s.io: resource usage, read from the node agent for every request and never stored."""

import orjson

from paceline.apimachinery.builtin.registry import METRICS_GROUP as GROUP
from paceline.apimachinery.builtin.registry import METRICS_VERSION as VERSION
from paceline.apimachinery.meta import Object
from paceline.apiserver.config import Server
from paceline.apiserver.handlers.list_options import Selection, selection_of
from paceline.apiserver.http_types import HttpRequest, HttpResponse, object_response
from paceline.apiserver.object_strategy import lookup
from paceline.apiserver.paths import Target, key_for
from paceline.apiserver.status_errors import StatusError, not_found_kind


class MetricsHandler:
    def __init__(self, server: Server) -> None:
        self._server = server

    async def serve(self, request: HttpRequest, target: Target) -> HttpResponse:
        selection = selection_of(request, target)
        summary = await self._server.nodes.stats()
        is_node = target.resource.kind == "NodeMetrics"
        metrics = self._nodes(summary) if is_node else self._pods(summary, target.namespace)
        if target.name:
            key = (target.namespace, target.name)
            if key not in metrics:
                if self._metadata("nodes" if is_node else "pods", *key):
                    raise _missing(target)
                raise not_found_kind("node" if is_node else "pods", target.name)
            return object_response(metrics[key])
        items = [item for key, item in sorted(metrics.items()) if self._is_selected(selection, target, item)]
        kind = f"{target.resource.kind}List"
        return object_response({"kind": kind, "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items})

    def _is_selected(self, selection: Selection, target: Target, item: Object) -> bool:
        meta = item["metadata"]
        key = key_for(target.resource, meta.get("namespace", ""), meta["name"])
        return selection.takes(key, orjson.dumps(item))

    def _nodes(self, summary: Object) -> dict[tuple[str, str], Object]:
        node = summary["node"]
        if "cpu" not in node:
            return {}
        name = str(node["nodeName"])
        about = self._metadata("nodes", "", name)
        if about is None:
            return {}
        return {("", name): {**_head("NodeMetrics", about), **_timestamp(node), "usage": _usage(node)}}

    def _pods(self, summary: Object, namespace: str) -> dict[tuple[str, str], Object]:
        metrics = {}
        for pod in summary["pods"]:
            where, name = str(pod["podRef"]["namespace"]), str(pod["podRef"]["name"])
            about = self._metadata("pods", where, name)
            containers = [container for container in pod["containers"] if "cpu" in container]
            if (namespace and where != namespace) or about is None or not containers:
                continue
            metrics[where, name] = {
                **_head("PodMetrics", about),
                **_timestamp(containers[0]),
                "containers": [{"name": container["name"], "usage": _usage(container)} for container in containers],
            }
        return metrics

    def _metadata(self, plural: str, namespace: str, name: str) -> Object | None:
        """Return the metadata of a measured object; None if it is gone."""
        obj = lookup(self._server.store, self._server.scheme.find("", "v1", plural), namespace, name)
        if obj is None:
            return None
        meta = obj["metadata"]
        labels = {"labels": meta["labels"]} if meta.get("labels") else {}
        return {"name": name, **({"namespace": namespace} if namespace else {}), **labels}


def _head(kind: str, metadata: Object) -> Object:
    return {"kind": kind, "apiVersion": f"{GROUP}/{VERSION}", "metadata": metadata}


def _timestamp(measured: Object) -> Object:
    return {"timestamp": measured["cpu"]["time"], "window": f"{measured['windowSeconds']}s"}


def _usage(measured: Object) -> Object:
    memory = -(-measured["memory"]["workingSetBytes"] // 1024)
    return {"cpu": f"{measured['cpu']['usageNanoCores']}n", "memory": f"{memory}Ki"}


def _missing(target: Target) -> StatusError:
    """Return metrics-server's error for an object without measurements."""
    name = f"{target.namespace}/{target.name}" if target.namespace else target.name
    return not_found_kind(target.resource.kind.lower(), name, GROUP)
