"""The data about built-in kinds is whole, small and of the version that the tools pin."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.testing.real.kube import ETCD_VERSION, KUBERNETES_VERSION

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "src/paceline/apimachinery/builtin"
CORE, META = "io.k8s.api.core.v1.", "io.k8s.apimachinery.pkg.apis.meta.v1."
REF = "#/components/schemas/"
# Where the keys are names of fields, one called "description" is a field like any other.
NAMED = ("properties", "patternProperties", "definitions")

SCHEMAS = json.loads((FOLDER / "schemas.json").read_text(encoding="utf-8"))
RESOURCES = json.loads((FOLDER / "resources.json").read_text(encoding="utf-8"))

KINDS = {
    "v1/bindings": "Binding",
    "v1/configmaps": "ConfigMap",
    "v1/endpoints": "Endpoints",
    "v1/events": "Event",
    "v1/limitranges": "LimitRange",
    "v1/namespaces": "Namespace",
    "v1/nodes": "Node",
    "v1/persistentvolumeclaims": "PersistentVolumeClaim",
    "v1/persistentvolumes": "PersistentVolume",
    "v1/pods": "Pod",
    "v1/resourcequotas": "ResourceQuota",
    "v1/secrets": "Secret",
    "v1/serviceaccounts": "ServiceAccount",
    "v1/services": "Service",
    "apiextensions.k8s.io/v1/customresourcedefinitions": "CustomResourceDefinition",
    "authentication.k8s.io/v1/selfsubjectreviews": "SelfSubjectReview",
    "authorization.k8s.io/v1/selfsubjectaccessreviews": "SelfSubjectAccessReview",
    "authorization.k8s.io/v1/selfsubjectrulesreviews": "SelfSubjectRulesReview",
    "coordination.k8s.io/v1/leases": "Lease",
    "discovery.k8s.io/v1/endpointslices": "EndpointSlice",
    "events.k8s.io/v1/events": "Event",
    "scheduling.k8s.io/v1/priorityclasses": "PriorityClass",
    "storage.k8s.io/v1/storageclasses": "StorageClass",
}

MERGE_KEYS = {
    ("PodSpec", "containers"): "name",
    ("PodSpec", "initContainers"): "name",
    ("PodSpec", "volumes"): "name",
    ("Container", "env"): "name",
    ("Container", "ports"): "containerPort",
    ("Container", "volumeMounts"): "mountPath",
    ("PodStatus", "conditions"): "type",
    ("ServiceSpec", "ports"): "port",
}


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema and every schema written out inside it."""
    yield schema
    for name, value in schema.items():
        inner = list(value.values()) if name in NAMED else value
        for one in inner if isinstance(inner, list) else [inner]:
            if isinstance(one, dict) and name not in {"default", "enum"}:
                yield from parts(one)


@pytest.mark.parametrize("page", [SCHEMAS, RESOURCES], ids=["schemas", "resources"])
def test_data_is_of_the_version_that_the_tests_run(page):
    assert page["version"] == KUBERNETES_VERSION


@pytest.mark.parametrize(
    ("file", "pin"),
    [
        ("go.mod", f"k8s.io/kubernetes {KUBERNETES_VERSION}"),
        ("etcd/go.mod", f"go.etcd.io/etcd/server/v3 {ETCD_VERSION}"),
    ],
)
def test_built_programs_are_found_where_the_build_puts_them(file, pin):
    """The folder's name has the versions in it, and each side knows them by itself."""
    assert pin in (ROOT / "tools/kube" / file).read_text(encoding="utf-8")


def test_every_reference_resolves_inside_the_file():
    schemas = SCHEMAS["schemas"]
    wanted = {part["$ref"] for one in schemas.values() for part in parts(one) if "$ref" in part}

    assert len(wanted) > 100
    assert {ref.removeprefix(REF) for ref in wanted} <= schemas.keys()


def test_no_schema_carries_a_description():
    described = [name for name, schema in SCHEMAS["schemas"].items() for part in parts(schema) if "description" in part]

    assert described == []


def test_a_field_called_description_is_still_a_field():
    assert "description" in schema_of("io.k8s.api.scheduling.v1.PriorityClass")


@pytest.mark.parametrize(("kind", "field"), MERGE_KEYS, ids=map(".".join, MERGE_KEYS))
def test_lists_merge_by_their_key(kind, field):
    assert schema_of(CORE + kind)[field]["x-kubernetes-patch-strategy"].startswith("merge")
    assert schema_of(CORE + kind)[field]["x-kubernetes-patch-merge-key"] == MERGE_KEYS[kind, field]


def test_a_port_may_be_a_number_or_a_name():
    port = schema_of(CORE + "ServicePort")["targetPort"]["allOf"][0]["$ref"].removeprefix(REF)

    assert SCHEMAS["schemas"][port]["format"] == "int-or-string"


@pytest.mark.parametrize("kind", ["DeleteOptions", "LabelSelector", "ListMeta", "ObjectMeta"])
def test_shapes_without_a_path_are_there(kind):
    assert META + kind in SCHEMAS["schemas"]


def test_every_kind_has_its_path_and_its_schema():
    served = {path: resource["kind"] for path, resource in RESOURCES["resources"].items()}
    declared = {
        f"{gvk['group']}/{gvk['version']} {gvk['kind']}".removeprefix("/")
        for schema in SCHEMAS["schemas"].values()
        for gvk in schema.get("x-kubernetes-group-version-kind", ())
    }

    assert served == KINDS
    assert {f"{path.rpartition('/')[0]} {kind}" for path, kind in KINDS.items()} <= declared


def test_pods_are_what_kubectl_expects():
    pods = RESOURCES["resources"]["v1/pods"]

    assert (pods["singularName"], pods["namespaced"]) == ("pod", True)
    assert (pods["shortNames"], pods["categories"]) == (["po"], ["all"])
    assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(pods["verbs"])
    assert {"binding", "log", "status"} <= pods["subresources"].keys()


def schema_of(name: str) -> dict[str, Any]:
    fields: dict[str, Any] = SCHEMAS["schemas"][name]["properties"]
    return fields


def test_the_types_are_of_the_same_version_as_the_schemas():
    structs = json.loads((FOLDER / "structs.json").read_text(encoding="utf-8"))

    assert structs["version"] == SCHEMAS["version"] == KUBERNETES_VERSION
