"""The events that go with a change of a pod's status, with a kubelet's reasons and messages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from paceline.apimachinery.meta import Object, is_deleting
from paceline.apimachinery.pods import sidecars_of
from paceline.node.lifecycle.termination import DEADLINE, EVICTED, OVERDUE
from paceline.node.lifecycle.view import PodView, policy_of
from paceline.node.probes.probes import NAMES

# The event of a container that waits for another reason than an error of its own.
WAITING = {"FailedMount": "FailedMount", "SandboxMissing": "FailedCreatePodSandBox"}
# The same for an image that is not pulled.
INSPECTED = {"ErrImageNeverPull": "ErrImageNeverPull", "InvalidImageName": "InspectFailed"}
# Reasons of an end that the program did not cause.
NOT_CAUSED_BY_PROGRAM = ("StartError", "ShimLost", "NodeRebooted")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEvent:
    """One event to record on a pod."""

    reason: str
    message: str
    is_warning: bool = False
    # The field path of the container it is about.
    part: str = ""


def events_of(old: Object, new: Object) -> tuple[PodEvent, ...]:
    """Return the events for what is new in a written status, so that none is recorded twice."""
    of_containers = (
        replace(event, part=f"spec.{part}{{{container['name']}}}")
        for field, part in (("initContainerStatuses", "initContainers"), ("containerStatuses", "containers"))
        for previous, container in _pairs(old.get(field), new.get(field))
        for event in _container_events(previous, container)
    )
    of_pod = []
    if new.get("reason") == DEADLINE and old.get("reason") != DEADLINE:
        of_pod.append(PodEvent(reason=DEADLINE, message=OVERDUE))
    if new.get("reason") == EVICTED and old.get("reason") != EVICTED:
        of_pod.append(PodEvent(reason=EVICTED, message=str(new.get("message")), is_warning=True))
    return (*of_pod, *of_containers)


def pulled(image: str, environment: str) -> PodEvent:
    """Return the event that an image is present."""
    message = f'Container image "{image}" is the environment "{environment}" on this machine'
    return PodEvent(reason="Pulled", message=message)


def killing_message(view: PodView, name: str) -> str:
    """Return the message of the Killing event of a container."""
    health = view.health.get(name)
    if health is None or health.alive or is_deleting(view.pod):
        return f"Stopping container {name}"
    if not health.failed:
        return "FailedPostStartHook"
    message = f"Container {name} failed {NAMES[health.failed].lower()} probe"
    if name in sidecars_of(view.pod):
        return f"Init {message[0].lower()}{message[1:]}"
    if policy_of(view.pod) != "Never":
        return f"{message}, will be restarted"
    return message if len(view.running) > 1 else f"Stopping container {name}"


def _pairs(old: list[Object] | None, new: list[Object] | None) -> Iterator[tuple[Object, Object]]:
    previous = {status["name"]: status for status in old or ()}
    for status in new or ():
        yield previous.get(status["name"], {}), status


def _container_events(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[PodEvent]:
    name, state, ended = new["name"], new["state"], _end_of(new)
    if new.get("containerID") and new["containerID"] != old.get("containerID"):
        yield pulled(new["image"], new["imageID"].removeprefix("paceline://"))
        yield PodEvent(reason="Created", message=f"Created container: {name}")
        if ended.get("reason") != "StartError":
            yield PodEvent(reason="Started", message=f"Started container {name}")
    if ended.get("reason") in NOT_CAUSED_BY_PROGRAM and ended != _end_of(old):
        yield PodEvent(reason="Failed", message=f"Error: {ended.get('message') or ended['reason']}", is_warning=True)
    waiting = state.get("waiting") or {}
    waited = (old.get("state") or {}).get("waiting") or {}
    if waiting.get("message") and waiting["reason"] == "ContainerCreating":
        # The progress of a build is in the status only.
        if not waited.get("message"):
            yield PodEvent(reason="Pulling", message=waiting["message"])
    elif waiting.get("message") and waiting != waited:
        yield from _waiting_events(name, new["image"], waiting["reason"], waiting["message"])


def _end_of(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how the latest attempt of a container ended, also while it waits for the next; empty while it runs."""
    for state in (status.get("state") or {}, status.get("lastState") or {}):
        ended: Mapping[str, Any] = state.get("terminated") or {}
        if ended.get("containerID") and ended["containerID"] == status.get("containerID"):
            return ended
    return {}


def _waiting_events(name: str, image: str, reason: str, message: str) -> Iterator[PodEvent]:
    error = PodEvent(reason="Failed", message=f"Error: {reason}", is_warning=True)
    match reason:
        case "CrashLoopBackOff":
            pod = message.partition(" pod=")[2]
            text = f"Back-off restarting failed container {name} in pod {pod}"
            yield PodEvent(reason="BackOff", message=text, is_warning=True)
        case "ErrImagePull":
            yield replace(error, message=f'Failed to pull image "{image}": {message}')
            yield error
        case "ImagePullBackOff":
            yield PodEvent(reason="BackOff", message=f'Back-off pulling image "{image}"')
            yield error
        case "ErrImageNeverPull" | "InvalidImageName":
            yield replace(error, reason=INSPECTED[reason], message=message)
            yield error
        case _ if reason in WAITING:
            yield replace(error, reason=WAITING[reason], message=message)
        case _:
            yield replace(error, message=f"Error: {message}")
