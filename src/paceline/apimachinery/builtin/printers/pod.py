"""The row of a pod: ready, status, restarts, as kubectl has shown them for years."""

from typing import Any

from paceline.apimachinery.meta import Object, is_deleting, name_of
from paceline.apimachinery.pods import condition_of, is_ready, is_terminal, sidecars_of
from paceline.apimachinery.scheme import Column
from paceline.apimachinery.table import NONE, age

POD_COLUMNS = (
    *(Column(name=name, path="") for name in ("Name", "Ready", "Status", "Restarts", "Age")),
    *(Column(name=name, path="", priority=1) for name in ("IP", "Node", "Nominated Node", "Readiness Gates")),
)


def pod_cells(pod: Object, now: str) -> tuple[Any, ...]:
    """Show a pod."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = sidecars_of(pod)
    main = status.get("containerStatuses") or ()
    before = tuple(status.get("initContainerStatuses") or ())
    side = [each for each in before if each.get("name") in sidecars]
    total = len(spec.get("containers") or ()) + len(sidecars)
    ready = sum(1 for each in (*main, *side) if each.get("ready") and "running" in _state(each))
    addresses = [each.get("ip") for each in status.get("podIPs") or ()]
    return (
        name_of(pod),
        f"{ready}/{total}",
        pod_word(pod),
        _restarts(before if _starting_word(pod) else (*side, *main), now),
        age(pod["metadata"].get("creationTimestamp"), now),
        status.get("podIP") or next(iter(addresses), None) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    )


def pod_word(pod: Object) -> str:
    """Say in one word where a pod is: its phase, or the reason that says more."""
    status = pod.get("status") or {}
    word = status.get("reason") or status.get("phase") or "Unknown"
    if (condition_of(pod, "PodScheduled") or {}).get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    starting = _starting_word(pod)
    word = starting or _running_word(pod, word)
    if not is_deleting(pod):
        return word
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return word if is_terminal(pod) else "Terminating"


def _starting_word(pod: Object) -> str:
    """Say how far the init containers are; "" once they are done."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars, total = sidecars_of(pod), len(spec.get("initContainers") or ())
    for index, each in enumerate(status.get("initContainerStatuses") or ()):
        state = _state(each)
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if each.get("name") in sidecars and each.get("started"):
            continue
        if ended is not None:
            return f"Init:{ended.get('reason') or _how_ended(ended)}"
        if waiting is not None and waiting.get("reason") not in {None, "", "PodInitializing"}:
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{total}"
    return ""


def _running_word(pod: Object, word: str) -> str:
    status = pod.get("status") or {}
    running = False
    for each in reversed(status.get("containerStatuses") or ()):
        state = _state(each)
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            word = waiting["reason"]
        elif ended is not None:
            word = ended.get("reason") or _how_ended(ended)
        elif each.get("ready") and "running" in state:
            running = True
    if word == "Completed" and running:
        return "Running" if is_ready(pod) else "NotReady"
    return str(word)


def _how_ended(ended: Object) -> str:
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _restarts(statuses: tuple[Object, ...], now: str) -> str:
    count = sum(int(each.get("restartCount") or 0) for each in statuses)
    ends = [
        ended["finishedAt"]
        for each in statuses
        if (ended := (each.get("lastState") or {}).get("terminated")) and ended.get("finishedAt")
    ]
    return f"{count} ({age(max(ends), now)} ago)" if count and ends else str(count)


def _gates(spec: Object, status: Object) -> str:
    gates = [each.get("conditionType") for each in spec.get("readinessGates") or ()]
    if not gates:
        return NONE
    true = {each.get("type") for each in status.get("conditions") or () if each.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate in true)}/{len(gates)}"


def _state(status: Object) -> Object:
    state: Object = status.get("state") or {}
    return state
