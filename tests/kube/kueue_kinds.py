"""The kinds of Kueue and of gang schedulers as far as a job controller sees them, for tests that play these."""

from typing import Any

from paceline.apimachinery.meta import Object
from paceline.client.interface import CRDS, Collection
from paceline.client.rest import Verbs
from paceline.errors import AlreadyExists, NotFound, ServiceUnavailable
from tests.kube.stage import Stage

GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
WORKLOADS = Collection(group=GROUP, version=VERSION, plural="workloads")
FLAVORS = Collection(group=GROUP, version=VERSION, plural="resourceflavors", namespaced=False)
PRIORITIES = Collection(group=GROUP, version=VERSION, plural="workloadpriorityclasses", namespaced=False)
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_KINDS = {"Workload": WORKLOADS, "ResourceFlavor": FLAVORS, "WorkloadPriorityClass": PRIORITIES}
TIME = "2026-01-01T00:00:00Z"


async def define_kueue(stage: Stage) -> None:
    """Define the kinds, and return once they are served."""
    for kind, where in _KINDS.items():
        try:
            await stage.people.create(CRDS, definition_of(where, kind))
        except AlreadyExists:
            continue
    for where in _KINDS.values():

        async def look(where: Collection = where) -> bool:
            return await is_served(stage.people, where)

        await stage.until(look)


async def is_served(people: Verbs, where: Collection) -> bool:
    try:
        await people.list(where)
    except (NotFound, ServiceUnavailable):
        return False
    return True


def definition_of(where: Collection, kind: str) -> Object:
    properties: dict[str, Any] = {"spec": _OPEN, "status": _OPEN, "value": {"type": "integer"}}
    version = {
        "served": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{where.plural}.{where.group}",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/kueue"},
        },
        "spec": {
            "group": where.group,
            "scope": "Namespaced" if where.namespaced else "Cluster",
            "names": {"kind": kind, "plural": where.plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {"name": where.version, "storage": True, **version},
                *([{"name": "v1beta1", "storage": False, **version}] if where.group == GROUP else []),
            ],
        },
    }


def condition(kind: str, status: str, reason: str = "Test", message: str = "") -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": TIME}


def admission(workload: Object, flavor: str) -> Object:
    """An admission that gives all pods of a Workload one flavor."""
    sets = [
        {"name": pods["name"], "count": pods["count"], "flavors": {"cpu": flavor}}
        for pods in workload["spec"]["podSets"]
    ]
    return {"clusterQueue": "cluster", "podSetAssignments": sets}
