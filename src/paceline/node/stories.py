"""The events that go with a change of a pod's status, in the words kubectl users know."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from paceline.node.probes import NAMES
from paceline.node.seen import Seen
from paceline.objects.meta import Object, is_deleting

# Which event tells of a container that waits, by its reason; other reasons are errors of one container.
WAITS = {
    "ErrImagePull": "Failed",
    "ErrImageNeverPull": "ErrImageNeverPull",
    "ImagePullBackOff": "BackOff",
    "FailedMount": "FailedMount",
    "SandboxMissing": "FailedCreatePodSandBox",
    "CrashLoopBackOff": "BackOff",
}
# Ends that are not the program's own doing.
NOT_ITS_OWN = ("StartError", "ShimLost", "NodeRebooted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One event to record on a pod."""

    reason: str
    message: str
    is_warning: bool = False
    # The container it is about, as a path into the pod.
    part: str = ""


def part_of(pod: Object, name: str) -> str:
    """Say where in a pod a container is, as events have it."""
    before = any(each["name"] == name for each in pod["spec"].get("initContainers") or ())
    return f"spec.{'initContainers' if before else 'containers'}{{{name}}}"


def stories(old: Object, new: Object) -> tuple[Story, ...]:
    """Tell what a written status says that the one before did not, so that nothing is told twice."""
    return tuple(
        replace(story, part=f"spec.{part}{{{after['name']}}}")
        for field, part in (("initContainerStatuses", "initContainers"), ("containerStatuses", "containers"))
        for before, after in _pairs(old.get(field), new.get(field))
        for story in _about(before, after)
    )


def why_stopping(seen: Seen, name: str) -> str:
    """Say why a container is asked to go."""
    health = seen.health.get(name)
    if health is None or health.alive or is_deleting(seen.pod):
        return f"Stopping container {name}"
    if not health.failed:
        return f"FailedPostStartHook: container {name} is stopped"
    return f"Container {name} failed {NAMES[health.failed].lower()} probe, will be restarted"


def _pairs(old: list[Object] | None, new: list[Object] | None) -> Iterator[tuple[Object, Object]]:
    before = {each["name"]: each for each in old or ()}
    for each in new or ():
        yield before.get(each["name"], {}), each


def _about(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Story]:
    name, state = new["name"], new["state"]
    if new.get("containerID") and new["containerID"] != old.get("containerID"):
        environment = new["imageID"].removeprefix("paceline://")
        said = f'Container image "{new["image"]}" is the environment "{environment}" on this machine'
        yield Story(reason="Pulled", message=said)
        yield Story(reason="Created", message=f"Created container: {name}")
        if state.get("terminated", {}).get("reason") != "StartError":
            yield Story(reason="Started", message=f"Started container {name}")
    ended = state.get("terminated") or {}
    if ended.get("reason") in NOT_ITS_OWN and ended != (old.get("state") or {}).get("terminated"):
        yield Story(reason="Failed", message=f"Error: {ended.get('message') or ended['reason']}", is_warning=True)
    waiting = state.get("waiting") or {}
    before = (old.get("state") or {}).get("waiting") or {}
    if waiting.get("message") and waiting["reason"] == "ContainerCreating":
        # How far a build is, is told by the status alone.
        if not before.get("message"):
            yield Story(reason="Pulling", message=waiting["message"])
    elif waiting.get("message") and waiting != before:
        reason = WAITS.get(waiting["reason"])
        said = waiting["message"] if reason else f"Error: {waiting['message']}"
        yield Story(reason=reason or "Failed", message=said, is_warning=True)
