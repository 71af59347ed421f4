"""The status of a pod, computed from the records of its containers as a kubelet reports it."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from paceline.apimachinery.meta import Object, is_deleting, uid_of
from paceline.apimachinery.pods import TERMINAL_PHASES, is_sidecar, sidecars_of
from paceline.apimachinery.timestamps import to_wire
from paceline.node.lifecycle.termination import DEADLINE, EVICTED, OVERDUE, is_overdue
from paceline.node.lifecycle.view import (
    ContainerAttempt,
    ExitRecord,
    PodView,
    Role,
    back_off_after,
    policy_of,
    should_restart,
)
from paceline.node.probes.probes import Health

# A kubelet reports the epoch as the start of a container that could not be started.
START_ERROR, EPOCH = "StartError", "1970-01-01T00:00:00Z"
# The state of a container that was still waiting for its start, or restart, when its pod ended.
UNKNOWN = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
}


def pod_status(view: PodView, now: datetime) -> Object:
    """Return the status of a pod; conditions that others own are kept."""
    old = view.pod.get("status") or {}
    init, main = _statuses(view)
    was_final = old.get("phase") in TERMINAL_PHASES
    # A final phase stays, whatever its containers did since.
    phase = old["phase"] if was_final else phase_of(view, init, main)
    cause: Object = {}
    if is_overdue(view.pod, now) and not was_final:
        phase, cause = "Failed", {"reason": DEADLINE, "message": OVERDUE}
    if view.eviction and not was_final:
        phase, cause = "Failed", {"reason": EVICTED, "message": view.eviction}
    if phase in TERMINAL_PHASES and not was_final and view.running:
        # No final phase before the last container has ended: clients rely on it.
        phase, cause = str(old.get("phase") or "Pending"), {}
    conditions = _conditions(view, (init, main), phase, now)
    if (is_deleting(view.pod) or cause) and not view.running:
        # Nothing starts any more; a shim that has written its exit record may still be about to leave.
        phase = phase if phase in TERMINAL_PHASES else "Failed"
        _terminate_waiting(view, init, main)
    starts = (attempt.started.at for attempt in view.attempts.values() if attempt.started and attempt.started.at)
    status: Object = {
        "phase": phase,
        **_generation(view.pod),
        **cause,
        "conditions": conditions,
        "hostIP": view.host_address,
        "hostIPs": [{"ip": view.host_address}],
        "podIP": view.address,
        "podIPs": [{"ip": view.address}],
        "startTime": old.get("startTime") or to_wire(min(starts, default=now)),
        "containerStatuses": main,
    }
    if init:
        status["initContainerStatuses"] = init
    return status


def is_over(view: PodView) -> bool:
    """Return whether no container will start any more; only sidecars may still run."""
    return phase_of(view, *_statuses(view)) in TERMINAL_PHASES


def _statuses(view: PodView) -> tuple[list[Object], list[Object]]:
    spec = view.pod["spec"]
    init = [
        _container_status(view, container, Role.SIDECAR if is_sidecar(container) else Role.INIT)
        for container in spec.get("initContainers") or ()
    ]
    main = [_container_status(view, container, Role.MAIN) for container in spec["containers"]]
    # A kubelet lists init containers in the order of the spec and main containers by name.
    return init, sorted(main, key=lambda status: str(status["name"]))


def _terminate_waiting(view: PodView, init: list[Object], main: list[Object]) -> None:
    """Mark waiting containers as terminated, unless their turn had not come yet."""
    last = max((index for index, status in enumerate(init) if _was_started(status)), default=0)
    for status in (*init[: last + 1], *(main if _was_initialized(view, init, main) else ())):
        if "terminated" not in status["state"]:
            status |= {"state": {"terminated": UNKNOWN}, "ready": False, "started": False}


def _was_started(status: Object) -> bool:
    return "waiting" not in status["state"] or bool(status["lastState"])


def _was_initialized(view: PodView, init: list[Object], main: list[Object]) -> bool:
    """Tell, as a kubelet does, whether it was the turn of a pod's main containers."""
    if not init or any(_was_started(status) for status in main):
        return True
    return bool(init[-1]["started"] if _is_sidecar_status(view, init[-1]) else init[-1]["ready"])


def phase_of(view: PodView, init: list[Object], main: list[Object]) -> str:
    """Return the phase as a kubelet does: containers that never started count most, then running ones, then ends."""
    policy = policy_of(view.pod)
    for status in init:
        done = status["state"].get("terminated")
        if _is_sidecar_status(view, status):
            if not status["started"] and not status["lastState"] and done is None:
                return "Pending"
        elif done is None or done["exitCode"] != 0:
            return "Failed" if done is not None and policy == "Never" else "Pending"
    if any("waiting" in status["state"] and "terminated" not in status["lastState"] for status in main):
        return "Pending"
    if any("running" in status["state"] for status in main):
        return "Running"
    if policy == "Always" and not is_deleting(view.pod):
        return "Running"
    ends = [status["state"].get("terminated") or status["lastState"].get("terminated") for status in main]
    if all(end["exitCode"] == 0 for end in ends):
        return "Succeeded"
    return "Failed" if policy != "OnFailure" or is_deleting(view.pod) else "Running"


def _is_sidecar_status(view: PodView, status: Object) -> bool:
    return status["name"] in sidecars_of(view.pod)


def _container_status(view: PodView, spec: Mapping[str, Any], role: Role) -> Object:
    name = str(spec["name"])
    attempt, previous = view.attempts.get(name), view.previous.get(name)
    restarts = attempt.restarts if attempt else 0
    state, last = _state(view, name, role), {}
    if "waiting" in state and attempt is not None and attempt.ended is not None:
        last = {"terminated": _terminated(attempt.ended, _id(view.pod, name, restarts))}
    elif previous is not None and ("terminated" not in state or _was_stopped(view, name)):
        last = {"terminated": _terminated(previous, _id(view.pod, name, restarts - 1))}
    is_running = "running" in state
    health = view.health.get(name) or Health()
    is_done = state.get("terminated", {}).get("exitCode") == 0
    status: Object = {
        "name": name,
        "image": str(spec.get("image") or ""),
        "imageID": f"paceline://{attempt.started.environment}" if attempt and attempt.started else "",
        "ready": is_done if role is Role.INIT else is_running and health.ready,
        "started": is_running and health.started,
        "restartCount": restarts,
        "state": state,
        "lastState": last,
    }
    if attempt is not None and attempt.started is not None:
        # A container gets the resources that it requests.
        resources = spec.get("resources") or {}
        status |= {"containerID": _id(view.pod, name, restarts), "resources": resources}
        if requests := resources.get("requests"):
            status["allocatedResources"] = requests
    return status


def _was_stopped(view: PodView, name: str) -> bool:
    """Return whether a container ended because its pod is deleted: a kubelet then keeps the last state it reported."""
    return is_deleting(view.pod) and view.attempts[name].stop_requested_at is not None


def _state(view: PodView, name: str, role: Role) -> dict[str, Any]:
    attempt = view.attempts.get(name)
    if (problem := view.problems.get(name)) and not problem.is_of_pod:
        return {"waiting": {"reason": problem.reason, "message": problem.message}}
    # A container counts as waiting until its postStart hook has run.
    if attempt is None or attempt.started is None or not view.is_post_start_done(name):
        has_init = bool(view.pod["spec"].get("initContainers"))
        return {"waiting": {"reason": "PodInitializing" if has_init else "ContainerCreating"}}
    if attempt.ended is None:
        return {"running": {"startedAt": to_wire(attempt.started.at)} if attempt.started.at else {}}
    if _is_backing_off(view, attempt, role):
        meta = view.pod["metadata"]
        pod = f"{meta['name']}_{meta.get('namespace', '')}({uid_of(view.pod)})"
        delay = f"{back_off_after(attempt).total_seconds():.0f}s"
        message = f"back-off {delay} restarting failed container={name} pod={pod}"
        return {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    return {"terminated": _terminated(attempt.ended, _id(view.pod, name, attempt.restarts))}


def _is_backing_off(view: PodView, attempt: ContainerAttempt, role: Role) -> bool:
    if attempt.ended is None or is_deleting(view.pod) or not back_off_after(attempt):
        return False
    return should_restart(view.pod, attempt.ended, role)


def _terminated(ended: ExitRecord, container_id: str) -> dict[str, Any]:
    state: dict[str, Any] = {"exitCode": ended.exit_code, "reason": ended.reason}
    if ended.signal:
        state["signal"] = ended.signal
    if ended.message:
        state["message"] = ended.message
    if ended.reason == START_ERROR:
        state["startedAt"] = EPOCH
    elif ended.started_at:
        state["startedAt"] = to_wire(ended.started_at)
    return state | {"finishedAt": to_wire(ended.finished_at), "containerID": container_id}


def _id(pod: Object, name: str, restarts: int) -> str:
    return f"paceline://{uid_of(pod)}/{name}/{restarts}"


def _conditions(view: PodView, statuses: tuple[list[Object], list[Object]], phase: str, now: datetime) -> list[Object]:
    """Set the conditions that a kubelet owns and keep the others; a transition time changes only with its status."""
    init, main = statuses
    old = {str(condition["type"]): condition for condition in (view.pod.get("status") or {}).get("conditions") or ()}
    sidecars = [status for status in init if _is_sidecar_status(view, status)]
    incomplete = [status["name"] for status in init if not status["started" if status in sidecars else "ready"]]
    if any("containerID" in status for status in main):
        # Once initialized, always initialized: sidecars may stop and restart.
        incomplete = []
    order = [str(container["name"]) for container in (*init, *view.pod["spec"]["containers"])]
    unready = sorted((status["name"] for status in (*main, *sidecars) if not status["ready"]), key=order.index)
    not_initialized = {"reason": "ContainersNotInitialized", "message": _list_message("incomplete", incomplete)}
    not_ready = _not_ready(phase, unready)
    gates = _unmet_gates(view.pod, old)
    has_run = any("containerID" in status and view.is_post_start_done(status["name"]) for status in (*init, *main))
    owned = {
        "PodReadyToStartContainers": (_can_start(view, phase, has_run=has_run), _pod_problem(view)),
        "Initialized": (not incomplete, {"reason": "PodCompleted"} if phase == "Succeeded" else not_initialized),
        "Ready": (not unready and not gates, not_ready if unready else gates),
        "ContainersReady": (not unready, not_ready),
    }
    for kind, (holds, cause) in owned.items():
        value = "True" if holds else "False"
        last = old.get(kind, {})
        since = last.get("lastTransitionTime") if last.get("status") == value else None
        explanation = cause if not holds or phase == "Succeeded" else {}
        # The shape that the server stores, so that an unchanged condition is not written again.
        times = {"lastProbeTime": None, "lastTransitionTime": since or to_wire(now)}
        old[kind] = {"type": kind, "status": value, **times, **explanation}
    # In a kubelet's order; it reports the scheduler's condition too.
    first = [{**old.pop(kind), **_generation(view.pod)} for kind in (*owned, "PodScheduled") if kind in old]
    return [*first, *old.values()]


def _can_start(view: PodView, phase: str, *, has_run: bool) -> bool:
    """Return whether what all containers of a pod share is ready; a problem of one container does not count."""
    if phase in TERMINAL_PHASES or (is_deleting(view.pod) and not view.running):
        return False
    problems = view.problems.values()
    return has_run or any(not problem.is_of_pod and problem.reason != "SandboxMissing" for problem in problems)


def _pod_problem(view: PodView) -> dict[str, str]:
    """Return why no container can start; a kubelet reports it in events only, which programs do not read."""
    problem = next((problem for problem in view.problems.values() if problem.is_of_pod), None)
    return {"reason": problem.reason, "message": problem.message} if problem else {}


def _generation(pod: Object) -> dict[str, int]:
    generation = pod["metadata"].get("generation")
    return {"observedGeneration": generation} if generation else {}


def _not_ready(phase: str, unready: Iterable[str]) -> dict[str, str]:
    if phase == "Succeeded":
        return {"reason": "PodCompleted"}
    if phase == "Failed":
        return {"reason": "PodFailed"}
    return {"reason": "ContainersNotReady", "message": _list_message("unready", unready)}


def _list_message(adjective: str, names: Iterable[str]) -> str:
    return f"containers with {adjective} status: [{' '.join(names)}]"


def _unmet_gates(pod: Object, conditions: Mapping[str, Object]) -> dict[str, str]:
    """Return the reason and message for readiness gates that are not met; empty when all are."""
    messages = []
    for gate in pod["spec"].get("readinessGates") or ():
        kind = str(gate["conditionType"])
        if kind not in conditions:
            messages.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif (value := conditions[kind]["status"]) != "True":
            messages.append(f'the status of pod readiness gate "{kind}" is not "True", but {value}')
    return {"reason": "ReadinessGatesNotReady", "message": ", ".join(messages)} if messages else {}
