"""The two priority classes that every cluster has."""

from collections.abc import Mapping

from paceline.apimachinery.meta import Object


def _system(name: str, value: int, use: str) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": f"Used for system critical pods that must {use}.",
        "preemptionPolicy": "PreemptLowerPriority",
    }


SYSTEM_PRIORITIES: Mapping[str, Object] = {
    each["metadata"]["name"]: each
    for each in (
        _system("system-node-critical", 2_000_001_000, "not be moved from their current node"),
        _system(
            "system-cluster-critical",
            2_000_000_000,
            "run in the cluster, but can be moved to another node if necessary",
        ),
    )
}
