"""A user's own kind owns things and goes after them, before them or without them, with the real kubectl."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.manifests import text

APPS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "apps.training.example.com"},
    "spec": {
        "group": "training.example.com",
        "scope": "Namespaced",
        "names": {"kind": "App", "plural": "apps"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
# Nobody takes it off but the test.
HELD = "test.example.com/hold"
OWNED = (
    "configmap/settings",
    "secret/token",
    "genericjob.batch.tensorstack.dev/work",
    "app.training.example.com/child",
)


def named(api_version: str, kind: str, name: str, **meta: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **meta}}


def create(cluster: Embedded, *objects: dict[str, Any]) -> None:
    for each in objects:
        made = cluster.kubectl("create", "-f", "-", stdin=text(each))
        assert made.code == 0, made.err


def owner_of(cluster: Embedded, kind: str, name: str) -> list[dict[str, Any]]:
    found = json.loads(cluster.kubectl("get", kind, name, "-o", "json").out)
    parts = {"apiVersion": found["apiVersion"], "kind": found["kind"], "name": name, "uid": found["metadata"]["uid"]}
    return [{**parts, "controller": True, "blockOwnerDeletion": True}]


def is_there(cluster: Embedded, what: str) -> bool:
    return cluster.kubectl("get", what, "--ignore-not-found", "-o", "name").out != ""


@pytest.fixture
def family(cluster: Embedded) -> Iterator[Embedded]:
    """A cluster with a kind that nobody knew before, an object of it, and what that owns."""
    create(cluster, APPS)
    established = cluster.kubectl("wait", "--for=condition=Established", "crd/apps.training.example.com")
    assert established.code == 0, established.err
    create(cluster, named("training.example.com/v1", "App", "parent"))
    owners = owner_of(cluster, "app", "parent")
    member = {"containers": [{"name": "main", "image": "python:3", "command": ["true"]}]}
    replica = {"type": "worker", "replicas": 1, "restartPolicy": "Never", "template": {"spec": member}}
    spec = {"runMode": {"pause": {"enabled": True}}, "replicaSpecs": [replica]}
    rules = {"successRules": [{"worker": [0]}], "failureRules": [{"worker": [0]}]}
    job = named("batch.tensorstack.dev/v1beta1", "GenericJob", "work", ownerReferences=owners)
    create(
        cluster,
        named("v1", "ConfigMap", "settings", ownerReferences=owners),
        named("v1", "Secret", "token", ownerReferences=owners),
        job | {"spec": spec | rules},
        named("training.example.com/v1", "App", "child", ownerReferences=owners),
    )
    create(cluster, named("v1", "ConfigMap", "leaf", ownerReferences=owner_of(cluster, "app", "child")))
    yield cluster
    cluster.kubectl("delete", "crd", "apps.training.example.com")
    cluster.kubectl("delete", "--ignore-not-found", *OWNED[:3], "configmap/leaf")


def test_in_the_background_what_is_owned_goes_after_its_owner(family: Embedded) -> None:
    assert family.kubectl("delete", "app", "parent").code == 0

    for what in (*OWNED, "configmap/leaf"):
        wait_until(f"{what} is gone", lambda what=what: not is_there(family, what))


def test_in_the_foreground_what_is_owned_goes_before_its_owner(family: Embedded) -> None:
    patch = json.dumps({"metadata": {"finalizers": [HELD]}})
    assert family.kubectl("patch", "configmap", "leaf", "--type=merge", "-p", patch).code == 0

    assert family.kubectl("delete", "app", "parent", "--cascade=foreground", "--wait=false").code == 0

    for what in OWNED[:3]:
        wait_until(f"{what} is gone", lambda what=what: not is_there(family, what))
    assert is_there(family, "app/child")
    assert is_there(family, "app/parent")
    patch = json.dumps({"metadata": {"finalizers": None}})
    assert family.kubectl("patch", "configmap", "leaf", "--type=merge", "-p", patch).code == 0
    gone = family.kubectl("wait", "--for=delete", "app/parent", "--timeout=60s")
    assert gone.code == 0, gone.err
    assert not is_there(family, "app/child")
    assert not is_there(family, "configmap/leaf")


def test_orphans_stay_without_an_owner(family: Embedded) -> None:
    gone = family.kubectl("delete", "app", "parent", "--cascade=orphan")

    assert gone.code == 0, gone.err
    assert not is_there(family, "app/parent")
    for what in OWNED:
        owners = family.kubectl("get", what, "-o", "jsonpath={.metadata.name}{.metadata.ownerReferences}")
        assert (owners.code, owners.out) == (0, what.partition("/")[2])
    assert is_there(family, "configmap/leaf")
