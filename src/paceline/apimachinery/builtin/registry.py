"""The built-in kinds that are served, put together; the node agent knows some of their words and none of this."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from paceline.apimachinery.builtin.defaults import DEFAULTS
from paceline.apimachinery.builtin.printers.builtin import PRINTED
from paceline.apimachinery.builtin.validation.builtin import CHANGES, CHECKS
from paceline.apimachinery.crd.validation import ruled
from paceline.apimachinery.metrics import metrics_resources
from paceline.apimachinery.scheme import Resource, no_change_faults, no_defaults, no_faults

# What is served, by its path, with the subresources that are.
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


# Nothing here keeps to these, so none can be made: who asks is told truly that there are none.
UNENFORCED = frozenset({"v1/limitranges", "v1/resourcequotas"})
_READ = ("get", "list", "watch")


def builtin_resources() -> tuple[Resource, ...]:
    """Give every built-in kind that is served."""
    described = _read("resources.json")["resources"]
    return (*(_resource(path, described[path]) for path in SERVED), *metrics_resources())


@cache
def builtin_components() -> Mapping[str, Any]:
    """Give the schemas of all built-in kinds and their parts, by the names Kubernetes gives them."""
    schemas: Mapping[str, Any] = _read("schemas.json")["schemas"]
    return schemas


@cache
def kubernetes_version() -> str:
    """Tell which Kubernetes the data is from."""
    return str(_read("schemas.json")["version"])


@cache
def _read(name: str) -> Any:
    return orjson.loads(files(__package__).joinpath(name).read_bytes())


def _resource(path: str, described: Mapping[str, Any]) -> Resource:
    group, _, version = str(described["apiVersion"]).rpartition("/")
    kind = str(described["kind"])
    name = _schema_name(group, version, kind)
    columns, cells = PRINTED.get((group, kind), ((), None))
    made = Resource(
        group=group,
        version=version,
        kind=kind,
        plural=described["name"],
        singular=described["singularName"],
        short_names=tuple(described.get("shortNames", ())),
        categories=tuple(described.get("categories", ())),
        namespaced=described["namespaced"],
        subresources=SERVED[path],
        verbs=_READ if path in UNENFORCED else tuple(described["verbs"]),
        schema_name=name,
        schema=builtin_components()[name],
        is_builtin=True,
        columns=columns,
        cells=cells,
        check=CHECKS.get((group, kind), no_faults),
        check_change=CHANGES.get((group, kind), no_change_faults),
        default=DEFAULTS.get((group, kind), no_defaults),
    )
    return ruled(made) if kind == "CustomResourceDefinition" else made


def _schema_name(group: str, version: str, kind: str) -> str:
    wanted = {"group": group, "version": version, "kind": kind}
    for name, schema in builtin_components().items():
        if wanted in schema.get("x-kubernetes-group-version-kind", ()):
            return name
    raise LookupError(f"no schema for {wanted}")
