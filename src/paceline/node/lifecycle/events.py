"""The events that go with a change of a pod's status, in the words kubectl users know."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from paceline.apimachinery.meta import Object, is_deleting
from paceline.apimachinery.pods import sidecars_of
from paceline.node.lifecycle.termination import DEADLINE, EVICTED, OVERDUE, held_tries
from paceline.node.lifecycle.view import Seen, policy_of
from paceline.node.probes.probes import NAMES

# Which event tells of a container that waits for another reason than an error of its own.
WAITS = {"FailedMount": "FailedMount", "SandboxMissing": "FailedCreatePodSandBox"}
# The same of an image that is not looked for elsewhere.
INSPECTED = {"ErrImageNeverPull": "ErrImageNeverPull", "InvalidImageName": "InspectFailed"}
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
    is_overdue = new.get("reason") == DEADLINE and old.get("reason") != DEADLINE
    of_containers = (
        replace(story, part=f"spec.{part}{{{after['name']}}}")
        for field, part in (("initContainerStatuses", "initContainers"), ("containerStatuses", "containers"))
        for before, after in _pairs(old.get(field), new.get(field))
        for story in _about(before, after)
    )
    is_evicted = new.get("reason") == EVICTED and old.get("reason") != EVICTED
    of_pod = [Story(reason=DEADLINE, message=OVERDUE)] if is_overdue else []
    of_pod += [Story(reason=EVICTED, message=str(new.get("message")), is_warning=True)] if is_evicted else []
    return (*of_pod, *of_containers)


def pulled(image: str, environment: str) -> Story:
    """Tell that an image is there."""
    return Story(
        reason="Pulled", message=f'Container image "{image}" is the environment "{environment}" on this machine'
    )


def why_stopping(seen: Seen, name: str) -> str:
    """Say why a container is asked to go."""
    health = seen.health.get(name)
    if health is None or health.alive or is_deleting(seen.pod):
        return f"Stopping container {name}"
    if not health.failed:
        return "FailedPostStartHook"
    said = f"Container {name} failed {NAMES[health.failed].lower()} probe"
    if name in sidecars_of(seen.pod):
        return f"Init {said[0].lower()}{said[1:]}"
    if policy_of(seen.pod) != "Never":
        return f"{said}, will be restarted"
    return said if len(held_tries(seen)) > 1 else f"Stopping container {name}"


def _pairs(old: list[Object] | None, new: list[Object] | None) -> Iterator[tuple[Object, Object]]:
    before = {each["name"]: each for each in old or ()}
    for each in new or ():
        yield before.get(each["name"], {}), each


def _about(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Story]:
    name, state, ended = new["name"], new["state"], _end_of(new)
    if new.get("containerID") and new["containerID"] != old.get("containerID"):
        yield pulled(new["image"], new["imageID"].removeprefix("paceline://"))
        yield Story(reason="Created", message=f"Created container: {name}")
        if ended.get("reason") != "StartError":
            yield Story(reason="Started", message=f"Started container {name}")
    if ended.get("reason") in NOT_ITS_OWN and ended != _end_of(old):
        yield Story(reason="Failed", message=f"Error: {ended.get('message') or ended['reason']}", is_warning=True)
    waiting = state.get("waiting") or {}
    before = (old.get("state") or {}).get("waiting") or {}
    if waiting.get("message") and waiting["reason"] == "ContainerCreating":
        # How far a build is, is told by the status alone.
        if not before.get("message"):
            yield Story(reason="Pulling", message=waiting["message"])
    elif waiting.get("message") and waiting != before:
        yield from _waits(name, new["image"], waiting["reason"], waiting["message"])


def _end_of(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give how the latest try of a container ended, also while it waits for the next; empty when it has not."""
    for state in (status.get("state") or {}, status.get("lastState") or {}):
        ended: Mapping[str, Any] = state.get("terminated") or {}
        if ended.get("containerID") and ended["containerID"] == status.get("containerID"):
            return ended
    return {}


def _waits(name: str, image: str, reason: str, said: str) -> Iterator[Story]:
    """Tell why a container waits."""
    error = Story(reason="Failed", message=f"Error: {reason}", is_warning=True)
    match reason:
        case "CrashLoopBackOff":
            pod = said.partition(" pod=")[2]
            words = f"Back-off restarting failed container {name} in pod {pod}"
            yield Story(reason="BackOff", message=words, is_warning=True)
        case "ErrImagePull":
            yield replace(error, message=f'Failed to pull image "{image}": {said}')
            yield error
        case "ImagePullBackOff":
            yield Story(reason="BackOff", message=f'Back-off pulling image "{image}"')
            yield error
        case "ErrImageNeverPull" | "InvalidImageName":
            yield replace(error, reason=INSPECTED[reason], message=said)
            yield error
        case _ if reason in WAITS:
            yield replace(error, reason=WAITS[reason], message=said)
        case _:
            yield replace(error, message=f"Error: {said}")
