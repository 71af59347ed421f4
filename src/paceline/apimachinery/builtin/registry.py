"""The built-in kinds that are served, assembled from their schemas, defaults, rules and printers."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from paceline.apimachinery.builtin.defaults import DEFAULTS
from paceline.apimachinery.builtin.printers import PRINTED
from paceline.apimachinery.builtin.validation.builtin import CHANGES, CHECKS
from paceline.apimachinery.crd.validation import with_crd_rules
from paceline.apimachinery.scheme import Resource, no_change_faults, no_defaults, no_faults

# Paths that are served, with their subresources.
SERVED: Mapping[str, tuple[str, ...]] = {
    "v1/configmaps": (),
    "v1/endpoints": (),
    "v1/events": (),
    "v1/limitranges": (),
    "v1/namespaces": ("finalize", "status"),
    "v1/nodes": ("proxy", "status"),
    "v1/persistentvolumeclaims": ("status",),
    "v1/persistentvolumes": ("status",),
    "v1/pods": ("attach", "binding", "eviction", "exec", "log", "proxy", "status"),
    "v1/resourcequotas": (),
    "v1/secrets": (),
    "v1/serviceaccounts": ("token",),
    "v1/services": ("proxy", "status"),
    "authentication.k8s.io/v1/selfsubjectreviews": (),
    "authorization.k8s.io/v1/selfsubjectaccessreviews": (),
    "authorization.k8s.io/v1/selfsubjectrulesreviews": (),
    "apiextensions.k8s.io/v1/customresourcedefinitions": ("status",),
    "coordination.k8s.io/v1/leases": (),
    "discovery.k8s.io/v1/endpointslices": (),
    "events.k8s.io/v1/events": (),
    "scheduling.k8s.io/v1/priorityclasses": (),
    "storage.k8s.io/v1/storageclasses": (),
}
# This server does not enforce them, so they can be read, but not created.
UNENFORCED = frozenset({"v1/limitranges", "v1/resourcequotas"})
_READ_VERBS = ("get", "list", "watch")

METRICS_GROUP, METRICS_VERSION = "metrics.k8s.io", "v1beta1"
_TEXT: Mapping[str, Any] = {"type": "string"}
_USAGE: Mapping[str, Any] = {"type": "object", "additionalProperties": _TEXT}
_CONTAINER_METRICS: Mapping[str, Any] = {"type": "object", "properties": {"name": _TEXT, "usage": _USAGE}}
_METRICS: Mapping[str, Any] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object"},
    "timestamp": {"type": "string", "format": "date-time"},
    "window": _TEXT,
}


def builtin_resources() -> tuple[Resource, ...]:
    """Return every built-in kind that is served."""
    described = _read("resources.json")["resources"]
    pod_fields = {"containers": {"type": "array", "items": _CONTAINER_METRICS}}
    return (
        *(_resource(path, described[path]) for path in SERVED),
        _metrics_resource("NodeMetrics", "nodes", {"usage": _USAGE}, namespaced=False),
        _metrics_resource("PodMetrics", "pods", pod_fields, namespaced=True),
    )


@cache
def builtin_components() -> Mapping[str, Any]:
    """Return the component schemas of all built-in kinds, by their names in Kubernetes."""
    schemas: Mapping[str, Any] = _read("schemas.json")["schemas"]
    return schemas


@cache
def kubernetes_version() -> str:
    """Return the version of Kubernetes that the schemas come from."""
    return str(_read("schemas.json")["version"])


@cache
def _read(name: str) -> Any:
    return orjson.loads(files(__package__).joinpath(name).read_bytes())


def _resource(path: str, described: Mapping[str, Any]) -> Resource:
    group, _, version = str(described["apiVersion"]).rpartition("/")
    kind = str(described["kind"])
    schema_name = _schema_name(group, version, kind)
    columns, cells = PRINTED.get((group, kind), ((), None))
    resource = Resource(
        group=group,
        version=version,
        kind=kind,
        plural=described["name"],
        singular=described["singularName"],
        short_names=tuple(described.get("shortNames", ())),
        categories=tuple(described.get("categories", ())),
        namespaced=described["namespaced"],
        subresources=SERVED[path],
        verbs=_READ_VERBS if path in UNENFORCED else tuple(described["verbs"]),
        schema_name=schema_name,
        schema=builtin_components()[schema_name],
        is_builtin=True,
        columns=columns,
        cells=cells,
        check=(lambda obj, _lookup: rule(obj)) if (rule := CHECKS.get((group, kind))) else no_faults,
        check_change=CHANGES.get((group, kind), no_change_faults),
        default=DEFAULTS.get((group, kind), no_defaults),
    )
    return with_crd_rules(resource) if kind == "CustomResourceDefinition" else resource


def _metrics_resource(kind: str, plural: str, fields: Mapping[str, Any], *, namespaced: bool) -> Resource:
    """Return a kind of current resource usage, whose objects are not stored."""
    return Resource(
        group=METRICS_GROUP,
        version=METRICS_VERSION,
        kind=kind,
        plural=plural,
        namespaced=namespaced,
        verbs=("get", "list"),
        schema_name=f"io.k8s.metrics.pkg.apis.metrics.v1beta1.{kind}",
        schema={"type": "object", "properties": {**_METRICS, **fields}},
        is_builtin=True,
    )


def _schema_name(group: str, version: str, kind: str) -> str:
    identity = {"group": group, "version": version, "kind": kind}
    for name, schema in builtin_components().items():
        if identity in schema.get("x-kubernetes-group-version-kind", ()):
            return name
    raise LookupError(f"no schema for {identity}")
