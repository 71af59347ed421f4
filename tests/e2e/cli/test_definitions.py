"""A user brings a kind of their own, with the real kubectl; and finds ours described to the last field."""

import json
import os
import signal

import pytest

from paceline.cluster.crd_install import own_kinds
from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.manifests import text

SHORT_NAMES = ("pj", "tj", "mj", "gj", "dj", "caij", "bj", "xj")
LEAVES = (
    "pytorchtrainingjobs.spec.replicaSpecs.template.spec.containers.env.valueFrom.secretKeyRef.key",
    "genericjobs.spec.replicaSpecs.template.spec.volumes.persistentVolumeClaim.claimName",
    "pods.spec.containers.resources.limits",
    "customresourcedefinitions.spec.versions.schema.openAPIV3Schema",
)
LAMPS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "lamps.home.example.com"},
    "spec": {
        "group": "home.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Lamp", "plural": "lamps", "shortNames": ["lp"], "categories": ["home"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.bulbs", "statusReplicasPath": ".status.bulbs"},
                },
                "additionalPrinterColumns": [{"name": "Bulbs", "type": "integer", "jsonPath": ".spec.bulbs"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "It shines.",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "bulbs": {"type": "integer", "minimum": 0, "default": 1},
                                    "color": {"type": "string", "enum": ["red", "green"], "description": "Its color."},
                                },
                            },
                            "status": {"type": "object", "properties": {"bulbs": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}


def lamp(name: str, **spec: object) -> str:
    made = {"apiVersion": "home.example.com/v1", "kind": "Lamp", "metadata": {"name": name}, "spec": spec}
    return text(made)


def test_a_kind_of_a_users_own(cluster: Embedded) -> None:
    kubectl = cluster.kubectl
    applied = kubectl("apply", "-f", "-", stdin=text(LAMPS))
    assert applied.out.strip() == "customresourcedefinition.apiextensions.k8s.io/lamps.home.example.com created"
    assert kubectl("wait", "--for=condition=Established", "crd/lamps.home.example.com", "--timeout=30s").code == 0
    assert kubectl("create", "-f", "-", stdin=lamp("desk")).out.strip() == "lamp.home.example.com/desk created"
    assert kubectl("get", "lp", "--no-headers").out.split()[:2] == ["desk", "1"]
    assert kubectl("get", "home", "-o", "name").out.strip() == "lamp.home.example.com/desk"
    assert "Its color." in kubectl("explain", "lamp.spec.color").out

    assert kubectl("scale", "lamp/desk", "--replicas=3").out.strip() == "lamp.home.example.com/desk scaled"
    assert json.loads(kubectl("get", "lamp", "desk", "-o", "json").out)["spec"] == {"bulbs": 3}
    wrong = kubectl("apply", "-f", "-", stdin=lamp("wall", color="pink"))
    assert (wrong.code, 'spec.color: Unsupported value: "pink"' in wrong.err) == (1, True)
    unknown = kubectl("create", "-f", "-", stdin=lamp("wall", colour="red"))
    assert (unknown.code, 'unknown field "spec.colour"' in unknown.err) == (1, True)

    assert kubectl("delete", "crd", "lamps.home.example.com").code == 0
    gone = kubectl("get", "lp")
    assert (gone.code, "NotFound" in gone.err or "doesn't have a resource type" in gone.err) == (1, True)


def test_our_kinds_are_found_by_their_short_names(cluster: Embedded) -> None:
    listed = cluster.kubectl("api-resources", "--categories=paceline", "--no-headers").out.splitlines()

    assert set(SHORT_NAMES) <= {row.split()[1] for row in listed}
    assert cluster.kubectl("get", "paceline").code == 0


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_kind_is_explained_down_to_its_leaves(cluster: Embedded, leaf: str) -> None:
    explained = cluster.kubectl("explain", leaf)

    assert explained.code == 0, explained.err
    assert f"FIELD: {leaf.rpartition('.')[2]} <" in explained.out


@pytest.mark.slow
def test_kinds_are_there_after_a_kill(cluster: Embedded) -> None:
    before = cluster.kubectl("get", "crd", "-o", "name").out.split()
    pid = cluster.control_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until("it has ended", lambda: cluster.control_pid != pid)
    started = cluster.paceline("up", "-d")

    assert started.code == 0, started.err
    assert cluster.kubectl("get", "crd", "-o", "name").out.split() == before
    assert len(before) == len(own_kinds())
