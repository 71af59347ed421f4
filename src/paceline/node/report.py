"""What a pod's folders say, in the words of a kubelet."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from paceline.node.ending import DEADLINE, OVERDUE, held_tries, is_overdue, is_sidecar
from paceline.node.probes import Health
from paceline.node.restart import Role, comes_again, pause_after, policy_of
from paceline.node.seen import Ended, Seen, Try
from paceline.objects.meta import Object, is_deleting, uid_of
from paceline.objects.times import to_wire

FINAL = ("Succeeded", "Failed")


def pod_status(seen: Seen, now: datetime) -> Object:
    """Write the whole status of a pod; fields that others own are kept."""
    old = seen.pod.get("status") or {}
    init, main = _statuses(seen)
    phase = phase_of(seen, init, main)
    why: Object = {}
    if is_overdue(seen.pod, now) and old.get("phase") not in FINAL:
        phase, why = "Failed", {"reason": DEADLINE, "message": OVERDUE}
    if phase in FINAL and old.get("phase") not in FINAL and held_tries(seen):
        # Not over before its last container is: whoever waits for the end may rely on it.
        phase, why = str(old.get("phase") or "Pending"), {}
    status: Object = {
        "phase": phase,
        **_generation(seen.pod),
        **why,
        "conditions": _conditions(seen, (init, main), phase, now),
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
    return phase_of(seen, *_statuses(seen)) in FINAL


def _statuses(seen: Seen) -> tuple[list[Object], list[Object]]:
    spec = seen.pod["spec"]
    init = [
        _container(seen, each, Role.SIDECAR if is_sidecar(each) else Role.INIT)
        for each in spec.get("initContainers") or ()
    ]
    return init, [_container(seen, each, Role.MAIN) for each in spec["containers"]]


def phase_of(seen: Seen, init: list[Object], main: list[Object]) -> str:
    """Sum containers up as a kubelet does: who never started counts most, then who runs, then how all ended."""
    policy, beside = policy_of(seen.pod), {each["name"] for each in init if is_beside(seen, each)}
    for each in init:
        if each["name"] in beside:
            if not each["started"] and not each["lastState"] and "terminated" not in each["state"]:
                return "Failed" if is_deleting(seen.pod) and not _has_held(seen) else "Pending"
            continue
        done = each["state"].get("terminated")
        if done is None or done["exitCode"] != 0:
            failed = done is not None and (policy == "Never" or is_deleting(seen.pod))
            return "Failed" if failed else "Pending"
    if any("waiting" in each["state"] and "terminated" not in each["lastState"] for each in main):
        # Deleted before it ever ran: nothing will start any more.
        return "Failed" if is_deleting(seen.pod) and not _has_held(seen) else "Pending"
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
    inits = seen.pod["spec"].get("initContainers") or ()
    return any(is_sidecar(each) for each in inits if each["name"] == status["name"])


def _starts(seen: Seen) -> list[datetime]:
    """List when containers were started that no status has told of yet."""
    return [each.started.at for each in seen.tries.values() if each.started and each.started.at]


def _has_held(seen: Seen) -> bool:
    return any(each.is_held for each in seen.tries.values())


def _container(seen: Seen, spec: Mapping[str, Any], role: Role) -> Object:
    name = str(spec["name"])
    each, before = seen.tries.get(name), seen.before.get(name)
    restarts = each.restarts if each else 0
    state, last = _state(seen, name, role), {}
    if before is not None:
        last = {"terminated": _terminated(before, _id(seen.pod, name, restarts - 1))}
    elif "waiting" in state and each is not None and each.ended is not None:
        last = {"terminated": _terminated(each.ended, _id(seen.pod, name, restarts))}
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


def _granted(spec: Mapping[str, Any]) -> Object:
    """Tell what a container got, which here is what it asked for."""
    resources = spec.get("resources") or {}
    asked = resources.get("requests")
    return {"resources": resources} | ({"allocatedResources": asked} if asked else {})


def _state(seen: Seen, name: str, role: Role) -> dict[str, Any]:
    each = seen.tries.get(name)
    if problem := seen.problems.get(name):
        return {"waiting": {"reason": problem.reason, "message": problem.message}}
    if each is None or each.started is None:
        return {"waiting": _not_yet(seen, role)}
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


def _not_yet(seen: Seen, role: Role) -> dict[str, Any]:
    has_init = bool(seen.pod["spec"].get("initContainers"))
    return {"reason": "PodInitializing" if has_init and role is Role.MAIN else "ContainerCreating"}


def _terminated(ended: Ended, container_id: str) -> dict[str, Any]:
    wire: dict[str, Any] = {"exitCode": ended.exit_code, "reason": ended.reason}
    if ended.signal:
        wire["signal"] = ended.signal
    if ended.message:
        wire["message"] = ended.message
    if ended.started_at:
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
    before = [each for each in init if each not in beside]
    not_done = [each["name"] for each in before if not each["ready"]]
    not_done += [each["name"] for each in beside if "containerID" not in each]
    not_ready = [each["name"] for each in (*main, *beside) if not each["ready"]]
    incomplete = _why_not(phase, "ContainersNotInitialized", f"containers with incomplete status: {_listed(not_done)}")
    ready = _why_not(phase, "ContainersNotReady", f"containers with unready status: {_listed(not_ready)}")
    has_run = any("containerID" in each for each in (*init, *main))
    ours = {
        "PodReadyToStartContainers": (has_run and phase not in FINAL, {}),
        "Initialized": (not not_done, incomplete),
        "Ready": (not not_ready, ready),
        "ContainersReady": (not not_ready, ready),
    }
    for kind, (holds, why) in ours.items():
        word = "True" if holds else "False"
        last = old.get(kind, {})
        since = last.get("lastTransitionTime") if last.get("status") == word else None
        said = why if not holds or phase == "Succeeded" else {}
        old[kind] = {"type": kind, "status": word, "lastTransitionTime": since or to_wire(now), **said}
    # In the order of a kubelet, which speaks for the scheduler too.
    told = [{**old.pop(kind), **_generation(seen.pod)} for kind in (*ours, "PodScheduled") if kind in old]
    return [*told, *old.values()]


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


def _listed(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"
