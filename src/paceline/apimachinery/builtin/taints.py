"""The taint that keeps pods away from a node that is not ready."""

from collections.abc import Mapping
from typing import Any

NOT_READY = "node.kubernetes.io/not-ready"
NO_SCHEDULE = "NoSchedule"


def without_not_ready(node: Mapping[str, Any]) -> list[Any] | None:
    """Give the taints of a node that is ready, or None when they are right as they are."""
    taints = (node.get("spec") or {}).get("taints") or []
    kept = [each for each in taints if (each.get("key"), each.get("effect")) != (NOT_READY, NO_SCHEDULE)]
    return None if len(kept) == len(taints) else kept
