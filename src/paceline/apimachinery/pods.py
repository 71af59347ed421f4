"""Questions that several packages ask about a pod: its containers, readiness, ports and claims."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Object, has_condition, name_of

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})
DEFAULT_GRACE_SECONDS = 30
# Waiting reasons of a container that is merely starting.
ORDINARY_WAITS = frozenset({"ContainerCreating", "PodInitializing"})
# Security context of containers of our own: with it, and a user other than root, Pod Security's level `restricted`
# admits them.
CONFINED: Mapping[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClaim:
    """A PersistentVolumeClaim that a pod mounts."""

    name: str
    # Name of the pod's volume.
    volume: str
    # True if the claim is created and deleted with the pod.
    is_ephemeral: bool = False


def spec_containers(spec: Any) -> tuple[Object, ...]:
    """Return the containers of a pod spec: init containers first, as they start.

    Defaults are set before validation, so entries that are not objects are left out.
    """
    if not isinstance(spec, dict):
        return ()
    lists = (spec.get(field) for field in ("initContainers", "containers"))
    return tuple(
        container
        for items in lists
        if isinstance(items, list | tuple)
        for container in items
        if isinstance(container, dict)
    )


def containers_of(pod: Object) -> tuple[Object, ...]:
    """Return the containers of a pod or pod template: init containers first, as they start."""
    return spec_containers(pod.get("spec"))


def container_named(pod: Object, name: Any) -> Object | None:
    """Return a container or init container by name, or None."""
    return next((container for container in containers_of(pod) if container["name"] == name), None)


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """Return whether an init container keeps running beside the main containers."""
    return container.get("restartPolicy") == "Always"


def sidecars_of(pod: Object) -> tuple[str, ...]:
    """Return the names of a pod's sidecars in the order in which they start."""
    init_containers = (pod.get("spec") or {}).get("initContainers") or ()
    return tuple(str(container["name"]) for container in init_containers if is_sidecar(container))


def container_statuses_of(pod: Object) -> tuple[Object, ...]:
    """Return the statuses of a pod's containers, those of init containers first."""
    status = pod.get("status") or {}
    return (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))


def is_terminal(pod: Object) -> bool:
    """Return whether a pod has ended and never runs again."""
    return (pod.get("status") or {}).get("phase") in TERMINAL_PHASES


def grace_seconds_of(pod: Object) -> int:
    """Return the grace period of a pod or of a pod template."""
    seconds = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    return DEFAULT_GRACE_SECONDS if seconds is None else int(seconds)


def pod_reason(status: Mapping[str, Any]) -> tuple[str, str]:
    """Return the reason and message of a pod as a whole: its own, or why it is not scheduled; empty if it has none."""
    if status.get("reason"):
        return str(status["reason"]), str(status.get("message") or "")
    for condition in status.get("conditions") or ():
        # The second type reports missing volumes; only our own node agent sets it.
        is_unmet = condition.get("status") == "False" and condition.get("reason")
        if is_unmet and condition.get("type") in ("PodScheduled", "PodReadyToStartContainers"):
            return str(condition["reason"]), str(condition.get("message") or "")
    return "", ""


def is_ready(obj: Object) -> bool:
    """Return whether the condition Ready of a pod or node is True."""
    return has_condition(obj, "Ready")


def port_number(port: int | str, containers: Iterable[Mapping[str, Any]], protocol: str = "") -> int | None:
    """Return the number of a port given by number or name; None if no container has a port of that name.

    Without `protocol`, a named port of any protocol matches.
    """
    if isinstance(port, int):
        return port
    if str(port).isdecimal():
        return int(port)
    for container in containers:
        for candidate in container.get("ports") or ():
            if candidate.get("name") == port and protocol in ("", candidate.get("protocol") or "TCP"):
                return int(candidate["containerPort"])
    return None


def target_port(service_port: Mapping[str, Any], pod: Object) -> int | None:
    """Return the number that a port of a service has in a pod; None if the pod has no such port."""
    target = service_port.get("targetPort") or service_port["port"]
    return port_number(target, pod["spec"].get("containers") or (), service_port.get("protocol") or "TCP")


def claims_of(pod: Object) -> Iterator[PodClaim]:
    """Yield the claims that a pod's volumes refer to or create."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            yield PodClaim(name=str(claim), volume=str(volume["name"]))
        elif "ephemeral" in volume:
            name = f"{name_of(pod)}-{volume['name']}"
            yield PodClaim(name=name, volume=str(volume["name"]), is_ephemeral=True)
