"""The kinds of metrics.k8s.io: what nodes and pods use right now. Nothing of them is stored."""

from collections.abc import Mapping
from typing import Any

from paceline.apimachinery.scheme import Resource

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
_TEXT: Mapping[str, Any] = {"type": "string"}
_USAGE: Mapping[str, Any] = {"type": "object", "additionalProperties": _TEXT}
_MOMENT: Mapping[str, Any] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object"},
    "timestamp": {"type": "string", "format": "date-time"},
    "window": _TEXT,
}
_CONTAINER: Mapping[str, Any] = {"type": "object", "properties": {"name": _TEXT, "usage": _USAGE}}


def metrics_resources() -> tuple[Resource, ...]:
    """Give both kinds."""
    return (
        _resource("NodeMetrics", "nodes", {"usage": _USAGE}, namespaced=False),
        _resource("PodMetrics", "pods", {"containers": {"type": "array", "items": _CONTAINER}}, namespaced=True),
    )


def _resource(kind: str, plural: str, fields: Mapping[str, Any], *, namespaced: bool) -> Resource:
    return Resource(
        group=GROUP,
        version=VERSION,
        kind=kind,
        plural=plural,
        singular="",
        namespaced=namespaced,
        verbs=("get", "list"),
        schema_name=f"io.k8s.metrics.pkg.apis.metrics.v1beta1.{kind}",
        schema={"type": "object", "properties": {**_MOMENT, **fields}},
        is_builtin=True,
    )
