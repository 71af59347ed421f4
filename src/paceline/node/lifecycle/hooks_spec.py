"""What a container wants done right after its start and right before its end, read from its spec."""

from collections.abc import Mapping
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.node.lifecycle.view import Seen

POST_START, PRE_STOP = "postStart", "preStop"


def hook_of(container: Mapping[str, Any], kind: str) -> tuple[str, Mapping[str, Any]] | None:
    """Read one hook of a container: how it is done, and what."""
    said = (container.get("lifecycle") or {}).get(kind) or {}
    return next(((name, what) for name, what in said.items() if what is not None), None)


def has_hook(pod: Object, name: str, kind: str) -> bool:
    """Tell whether a container of a pod has a hook."""
    spec = pod["spec"]
    every = (*(spec.get("initContainers") or ()), *spec["containers"])
    return any(each["name"] == name and hook_of(each, kind) is not None for each in every)


def post_start_done(seen: Seen, name: str) -> bool:
    """Tell whether a container has been through its first hook, if it has one; once ended it needs none."""
    each = seen.tries.get(name)
    is_past = each is not None and (each.is_greeted or each.ended is not None)
    return is_past or not has_hook(seen.pod, name, POST_START)
