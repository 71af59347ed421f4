"""The table row of a pod: ready, status, restarts, as `kubectl get` prints them."""

from typing import Any

from paceline.apimachinery.meta import Object, condition_of, is_deleting, name_of
from paceline.apimachinery.pods import is_ready, is_terminal, sidecars_of
from paceline.apimachinery.scheme import Column
from paceline.apimachinery.table import NONE, age, created

POD_COLUMNS = (
    *(Column(name=name, path="") for name in ("Name", "Ready", "Status", "Restarts", "Age")),
    *(Column(name=name, path="", priority=1) for name in ("IP", "Node", "Nominated Node", "Readiness Gates")),
)


def pod_cells(pod: Object, now: str) -> tuple[Any, ...]:
    """Return the cells of a pod."""
    spec, status, sidecars = pod.get("spec") or {}, pod.get("status") or {}, sidecars_of(pod)
    main_statuses = status.get("containerStatuses") or ()
    init_statuses = tuple(status.get("initContainerStatuses") or ())
    sidecar_statuses = [container for container in init_statuses if container.get("name") in sidecars]
    long_running = (*main_statuses, *sidecar_statuses)
    ready = sum(1 for container in long_running if container.get("ready") and "running" in _state(container))
    addresses = [address.get("ip") for address in status.get("podIPs") or ()]
    return (
        name_of(pod),
        f"{ready}/{len(spec.get('containers') or ()) + len(sidecars)}",
        pod_status(pod),
        _restarts(init_statuses if _init_status(pod) else (*sidecar_statuses, *main_statuses), now),
        created(pod, now),
        status.get("podIP") or next(iter(addresses), None) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    )


def pod_status(pod: Object) -> str:
    """Return the status column: the phase, or a reason that says more."""
    status = pod.get("status") or {}
    phase = status.get("reason") or status.get("phase") or "Unknown"
    if (condition_of(pod, "PodScheduled") or {}).get("reason") == "SchedulingGated":
        phase = "SchedulingGated"
    shown = _init_status(pod) or _containers_status(pod, phase)
    if not is_deleting(pod):
        return shown
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return shown if is_terminal(pod) else "Terminating"


def _init_status(pod: Object) -> str:
    """Return the progress of the init containers; "" once they are done."""
    spec, status, sidecars = pod.get("spec") or {}, pod.get("status") or {}, sidecars_of(pod)
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        state = _state(container)
        terminated, waiting = state.get("terminated"), state.get("waiting")
        if terminated is not None and terminated.get("exitCode") == 0:
            continue
        if container.get("name") in sidecars and container.get("started"):
            continue
        if terminated is not None:
            return f"Init:{_termination(terminated)}"
        if waiting is not None and waiting.get("reason") not in {None, "", "PodInitializing"}:
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(spec.get('initContainers') or ())}"
    return ""


def _containers_status(pod: Object, shown: str) -> str:
    is_running = False
    for container in reversed((pod.get("status") or {}).get("containerStatuses") or ()):
        state = _state(container)
        waiting, terminated = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            shown = waiting["reason"]
        elif terminated is not None:
            shown = _termination(terminated)
        elif container.get("ready") and "running" in state:
            is_running = True
    if shown == "Completed" and is_running:
        return "Running" if is_ready(pod) else "NotReady"
    return str(shown)


def _termination(terminated: Object) -> str:
    signal = f"Signal:{terminated['signal']}" if terminated.get("signal") else ""
    return terminated.get("reason") or signal or f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(statuses: tuple[Object, ...], now: str) -> str:
    count = sum(int(container.get("restartCount") or 0) for container in statuses)
    ends = [
        last["finishedAt"]
        for container in statuses
        if (last := (container.get("lastState") or {}).get("terminated")) and last.get("finishedAt")
    ]
    return f"{count} ({age(max(ends), now)} ago)" if count and ends else str(count)


def _gates(spec: Object, status: Object) -> str:
    gates = [gate.get("conditionType") for gate in spec.get("readinessGates") or ()]
    conditions = status.get("conditions") or ()
    true = {condition.get("type") for condition in conditions if condition.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate in true)}/{len(gates)}" if gates else NONE


def _state(status: Object) -> Object:
    state: Object = status.get("state") or {}
    return state
