"""What a pod's folders say, in the words of a kubelet."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from paceline.apimachinery.meta import Object, is_deleting, uid_of
from paceline.apimachinery.pods import TERMINAL_PHASES, is_sidecar, sidecars_of
from paceline.apimachinery.timestamps import to_wire
from paceline.node.lifecycle.termination import DEADLINE, EVICTED, OVERDUE, held_tries, is_overdue
from paceline.node.lifecycle.view import Ended, Role, Seen, Try, comes_again, pause_after, policy_of, post_start_done
from paceline.node.probes.probes import Health

# A container that could not be started began at the beginning of time.
START_ERROR, NEVER = "StartError", "1970-01-01T00:00:00Z"
# What is said of a container that its pod did not live to see started, or started again.
UNKNOWN = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
}


def pod_status(seen: Seen, now: datetime) -> Object:
    """Write the whole status of a pod; fields that others own are kept."""
    old = seen.pod.get("status") or {}
    init, main = _statuses(seen)
    # Final is final, whatever its containers have come to since.
    phase = old["phase"] if old.get("phase") in TERMINAL_PHASES else phase_of(seen, init, main)
    why: Object = {}
    if is_overdue(seen.pod, now) and old.get("phase") not in TERMINAL_PHASES:
        phase, why = "Failed", {"reason": DEADLINE, "message": OVERDUE}
    if seen.evicted and old.get("phase") not in TERMINAL_PHASES:
        phase, why = "Failed", {"reason": EVICTED, "message": seen.evicted}
    if phase in TERMINAL_PHASES and old.get("phase") not in TERMINAL_PHASES and held_tries(seen):
        # Not over before its last container is: whoever waits for the end may rely on it.
        phase, why = str(old.get("phase") or "Pending"), {}
    conditions = _conditions(seen, (init, main), phase, now)
    if (is_deleting(seen.pod) or why) and not held_tries(seen):
        # Nothing will start any more; a keeper that has written how its program ended may still be about to go.
        phase = phase if phase in TERMINAL_PHASES else "Failed"
        _close(seen, init, main)
    status: Object = {
        "phase": phase,
        **_generation(seen.pod),
        **why,
        "conditions": conditions,
        "hostIP": seen.host_address,
        "hostIPs": [{"ip": seen.host_address}],
        "podIP": seen.address,
        "podIPs": [{"ip": seen.address}],
        "startTime": old.get("startTime") or to_wire(min(_starts(seen), default=now)),
        "containerStatuses": main,
    }
    if init:
        status["initContainerStatuses"] = init
    return status


def is_over(seen: Seen) -> bool:
    """Tell whether nothing more is to start; what still runs are sidecars with nothing left to do."""
    return phase_of(seen, *_statuses(seen)) in TERMINAL_PHASES


def _statuses(seen: Seen) -> tuple[list[Object], list[Object]]:
    spec = seen.pod["spec"]
    init = [
        _container(seen, each, Role.SIDECAR if is_sidecar(each) else Role.INIT)
        for each in spec.get("initContainers") or ()
    ]
    main = [_container(seen, each, Role.MAIN) for each in spec["containers"]]
    # A kubelet lists the one sort in the order of the spec and the other by name.
    return init, sorted(main, key=lambda each: str(each["name"]))


def _close(seen: Seen, init: list[Object], main: list[Object]) -> None:
    """Say of containers that wait that they never came, unless their turn had not come yet."""
    tried = max((place for place, each in enumerate(init) if _has_come(each)), default=0)
    for each in (*init[: tried + 1], *(main if _was_initialized(seen, init, main) else ())):
        if "terminated" not in each["state"]:
            each |= {"state": {"terminated": UNKNOWN}, "ready": False, "started": False}


def _has_come(status: Object) -> bool:
    """Tell whether a container has ever been started."""
    return "waiting" not in status["state"] or bool(status["lastState"])


def _was_initialized(seen: Seen, init: list[Object], main: list[Object]) -> bool:
    """Tell, as a kubelet does, whether it was the turn of a pod's main containers."""
    if not init or any(_has_come(each) for each in main):
        return True
    return bool(init[-1]["started"] if is_beside(seen, init[-1]) else init[-1]["ready"])


def phase_of(seen: Seen, init: list[Object], main: list[Object]) -> str:
    """Sum containers up as a kubelet does: who never started counts most, then who runs, then how all ended."""
    policy, beside = policy_of(seen.pod), {each["name"] for each in init if is_beside(seen, each)}
    for each in init:
        if each["name"] in beside:
            if not each["started"] and not each["lastState"] and "terminated" not in each["state"]:
                return "Pending"
            continue
        done = each["state"].get("terminated")
        if done is None or done["exitCode"] != 0:
            return "Failed" if done is not None and policy == "Never" else "Pending"
    if any("waiting" in each["state"] and "terminated" not in each["lastState"] for each in main):
        return "Pending"
    ends = [each["state"].get("terminated") or each["lastState"].get("terminated") for each in main]
    if any("running" in each["state"] for each in main):
        return "Running"
    if policy == "Always" and not is_deleting(seen.pod):
        return "Running"
    if all(end["exitCode"] == 0 for end in ends):
        return "Succeeded"
    return "Failed" if policy != "OnFailure" or is_deleting(seen.pod) else "Running"


def is_beside(seen: Seen, status: Object) -> bool:
    """Tell whether an init container's status is that of a sidecar."""
    return status["name"] in sidecars_of(seen.pod)


def _starts(seen: Seen) -> list[datetime]:
    """List when containers were started that no status has told of yet."""
    return [each.started.at for each in seen.tries.values() if each.started and each.started.at]


def _container(seen: Seen, spec: Mapping[str, Any], role: Role) -> Object:
    name = str(spec["name"])
    each, before = seen.tries.get(name), seen.before.get(name)
    restarts = each.restarts if each else 0
    state, last = _state(seen, name, role), {}
    if "waiting" in state and each is not None and each.ended is not None:
        last = {"terminated": _terminated(each.ended, _id(seen.pod, name, restarts))}
    elif before is not None and ("terminated" not in state or _was_asked(seen, name)):
        last = {"terminated": _terminated(before, _id(seen.pod, name, restarts - 1))}
    is_running = "running" in state
    health = seen.health.get(name) or Health()
    is_done = state.get("terminated", {}).get("exitCode") == 0
    status: Object = {
        "name": name,
        "image": str(spec.get("image") or ""),
        "imageID": f"paceline://{each.started.environment}" if each and each.started else "",
        "ready": is_done if role is Role.INIT else is_running and health.ready,
        "started": is_running and health.started,
        "restartCount": restarts,
        "state": state,
        "lastState": last,
    }
    if each is not None and each.started is not None:
        status["containerID"] = _id(seen.pod, name, restarts)
        status |= _granted(spec)
    return status


def _was_asked(seen: Seen, name: str) -> bool:
    """Tell whether a container ended because its pod goes: what a kubelet then says last is what it knew."""
    return is_deleting(seen.pod) and seen.tries[name].asked_at is not None


def _granted(spec: Mapping[str, Any]) -> Object:
    """Tell what a container got, which here is what it asked for."""
    resources = spec.get("resources") or {}
    asked = resources.get("requests")
    return {"resources": resources} | ({"allocatedResources": asked} if asked else {})


def _state(seen: Seen, name: str, role: Role) -> dict[str, Any]:
    each = seen.tries.get(name)
    if (problem := seen.problems.get(name)) and not problem.is_of_pod:
        return {"waiting": {"reason": problem.reason, "message": problem.message}}
    if each is None or each.started is None:
        return {"waiting": _not_yet(seen)}
    if not post_start_done(seen, name):
        # It does not count as running before its first hook has run.
        return {"waiting": _not_yet(seen)}
    if each.ended is None:
        return {"running": {"startedAt": to_wire(each.started.at)} if each.started.at else {}}
    if _waits_for_next(seen, each, role):
        said = f"restarting failed container={name} pod={_full_name(seen.pod)}"
        pause = f"{pause_after(each).total_seconds():.0f}s"
        return {"waiting": {"reason": "CrashLoopBackOff", "message": f"back-off {pause} {said}"}}
    return {"terminated": _terminated(each.ended, _id(seen.pod, name, each.restarts))}


def _waits_for_next(seen: Seen, each: Try, role: Role) -> bool:
    """Tell whether an ended container only waits for its next try."""
    if each.ended is None or is_deleting(seen.pod) or not pause_after(each):
        return False
    return comes_again(seen.pod, each.ended, role)


def _not_yet(seen: Seen) -> dict[str, Any]:
    return {"reason": "PodInitializing" if seen.pod["spec"].get("initContainers") else "ContainerCreating"}


def _terminated(ended: Ended, container_id: str) -> dict[str, Any]:
    wire: dict[str, Any] = {"exitCode": ended.exit_code, "reason": ended.reason}
    if ended.signal:
        wire["signal"] = ended.signal
    if ended.message:
        wire["message"] = ended.message
    if ended.reason == START_ERROR:
        wire["startedAt"] = NEVER
    elif ended.started_at:
        wire["startedAt"] = to_wire(ended.started_at)
    return wire | {"finishedAt": to_wire(ended.finished_at), "containerID": container_id}


def _id(pod: Object, name: str, restarts: int) -> str:
    return f"paceline://{uid_of(pod)}/{name}/{restarts}"


def _full_name(pod: Object) -> str:
    meta = pod["metadata"]
    return f"{meta['name']}_{meta.get('namespace', '')}({uid_of(pod)})"


def _conditions(seen: Seen, containers: tuple[list[Object], list[Object]], phase: str, now: datetime) -> list[Object]:
    """Set the conditions a kubelet owns and keep the others; a moment changes only with its status."""
    init, main = containers
    old = {str(each["type"]): each for each in (seen.pod.get("status") or {}).get("conditions") or ()}
    beside = [each for each in init if is_beside(seen, each)]
    not_done = [each["name"] for each in init if not each["started" if each in beside else "ready"]]
    if any("containerID" in each for each in main):
        # Once initialized, always initialized: sidecars may come and go.
        not_done = []
    order = [str(each["name"]) for each in (*init, *seen.pod["spec"]["containers"])]
    not_ready = sorted((each["name"] for each in (*main, *beside) if not each["ready"]), key=order.index)
    incomplete = {"reason": "ContainersNotInitialized", "message": _these("incomplete", not_done)}
    ready = _why_not(phase, "ContainersNotReady", _these("unready", not_ready))
    gates = _shut_gates(seen.pod, old)
    has_run = any("containerID" in each and post_start_done(seen, each["name"]) for each in (*init, *main))
    ours = {
        "PodReadyToStartContainers": (_can_start(seen, phase, has_run=has_run), _why_of_pod(seen)),
        "Initialized": (not not_done, {"reason": "PodCompleted"} if phase == "Succeeded" else incomplete),
        "Ready": (not not_ready and not gates, ready if not_ready else gates),
        "ContainersReady": (not not_ready, ready),
    }
    for kind, (holds, why) in ours.items():
        word = "True" if holds else "False"
        last = old.get(kind, {})
        since = last.get("lastTransitionTime") if last.get("status") == word else None
        said = why if not holds or phase == "Succeeded" else {}
        # As the server keeps it: what is the same is not written again.
        when = {"lastProbeTime": None, "lastTransitionTime": since or to_wire(now)}
        old[kind] = {"type": kind, "status": word, **when, **said}
    # In the order of a kubelet, which speaks for the scheduler too.
    told = [{**old.pop(kind), **_generation(seen.pod)} for kind in (*ours, "PodScheduled") if kind in old]
    return [*told, *old.values()]


def _can_start(seen: Seen, phase: str, *, has_run: bool) -> bool:
    """Tell whether what all containers of a pod need is there: what keeps one of them waiting is its own."""
    if phase in TERMINAL_PHASES or (is_deleting(seen.pod) and not held_tries(seen)):
        return False
    own = [each for each in seen.problems.values() if not each.is_of_pod and each.reason != "SandboxMissing"]
    return has_run or bool(own)


def _why_of_pod(seen: Seen) -> dict[str, str]:
    """Say what keeps all containers from starting; a kubelet says it in events only, which no program reads."""
    found = next((each for each in seen.problems.values() if each.is_of_pod), None)
    return {"reason": found.reason, "message": found.message} if found else {}


def _generation(pod: Object) -> dict[str, int]:
    """Name the state of the spec that a status is about."""
    generation = pod["metadata"].get("generation")
    return {"observedGeneration": generation} if generation else {}


def _why_not(phase: str, reason: str, message: str) -> dict[str, str]:
    if phase == "Succeeded":
        return {"reason": "PodCompleted"}
    if phase == "Failed":
        return {"reason": "PodFailed"}
    return {"reason": reason, "message": message}


def _these(what: str, names: Iterable[str]) -> str:
    return f"containers with {what} status: [{' '.join(names)}]"


def _shut_gates(pod: Object, conditions: Mapping[str, Object]) -> dict[str, str]:
    """Say which of a pod's readiness gates are not open; empty when all are."""
    said = []
    for gate in pod["spec"].get("readinessGates") or ():
        kind = str(gate["conditionType"])
        if kind not in conditions:
            said.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif conditions[kind]["status"] != "True":
            word = conditions[kind]["status"]
            said.append(f'the status of pod readiness gate "{kind}" is not "True", but {word}')
    return {"reason": "ReadinessGatesNotReady", "message": ", ".join(said)} if said else {}
