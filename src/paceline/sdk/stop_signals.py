"""By which signal processes are asked to stop, chosen by whoever stops them, and how long that may take."""

import signal
from collections.abc import Iterable

from paceline.apimachinery.field_errors import nearest
from paceline.apimachinery.meta import Object
from paceline.errors import Fault, Invalid

# What our own node agent writes before the ids of containers.
OURS = "paceline://"
FINAL = ("Succeeded", "Failed")
# What Kubernetes gives a pod that names no grace period of its own.
GRACE_SECONDS = 30
# For whoever has to be told, and has to tell, on a machine with much to do.
MARGIN_SECONDS = 60.0


def signal_named(word: str) -> str:
    """Give a signal's whole name, such as SIGINT for `int`; Invalid when there is none of that name."""
    name = word.upper().removeprefix("SIG")
    names = [member.removeprefix("SIG") for member in signal.Signals.__members__]
    if name not in names:
        near = nearest(name, names)
        hint = f"did you mean {near}?" if near else "such as INT, TERM, USR1 or KILL"
        raise Invalid((Fault("--signal", word, f"there is no such signal; {hint}"),))
    return f"SIG{name}"


def has_processes(pod: Object) -> bool:
    """Tell whether there may be processes of a pod to be stopped."""
    return (pod.get("status") or {}).get("phase") not in FINAL


def seconds_to_stop(pods: Iterable[Object], margin: float = MARGIN_SECONDS) -> float:
    """Say after how long pods that were told to end should have; those that serve the others end after them."""
    graces = [_grace(pod) for pod in pods if has_processes(pod)]
    return 2 * max(graces, default=0) + margin


def _grace(pod: Object) -> int:
    seconds = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    return GRACE_SECONDS if seconds is None else int(seconds)


def is_ours(pod: Object) -> bool:
    """Tell whether our own node agent runs a pod, as far as its containers have begun."""
    status = pod.get("status") or {}
    statuses = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    ids = [str(container["containerID"]) for container in statuses if container.get("containerID")]
    return all(container_id.startswith(OURS) for container_id in ids)
