"""The signal that stops processes, and how long stopping may take."""

import signal
from collections.abc import Iterable

from paceline.apimachinery.field_errors import nearest
from paceline.apimachinery.meta import Object
from paceline.errors import Fault, Invalid

# The prefix of container ids of our own node agent.
OURS = "paceline://"
FINAL = ("Succeeded", "Failed")
# The default grace period of Kubernetes.
GRACE_SECONDS = 30
# Allowance for the delay of controllers and node agents on a busy machine.
MARGIN_SECONDS = 60.0


def signal_named(word: str) -> str:
    """Return the full name of a signal, such as SIGINT for `int`; raise Invalid if there is none."""
    name = word.upper().removeprefix("SIG")
    names = [member.removeprefix("SIG") for member in signal.Signals.__members__]
    if name not in names:
        near = nearest(name, names)
        hint = f"did you mean {near}?" if near else "such as INT, TERM, USR1 or KILL"
        raise Invalid((Fault("--signal", word, f"there is no such signal; {hint}"),))
    return f"SIG{name}"


def has_processes(pod: Object) -> bool:
    """Return True if a pod may have processes."""
    return (pod.get("status") or {}).get("phase") not in FINAL


def seconds_to_stop(pods: Iterable[Object], margin: float = MARGIN_SECONDS) -> float:
    """Return how long stopping pods may take; servers are stopped after the replicas that use them."""
    graces = [_grace(pod) for pod in pods if has_processes(pod)]
    return 2 * max(graces, default=0) + margin


def _grace(pod: Object) -> int:
    seconds = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    return GRACE_SECONDS if seconds is None else int(seconds)


def is_ours(pod: Object) -> bool:
    """Return True if our own node agent runs a pod, as far as its containers have started."""
    status = pod.get("status") or {}
    statuses = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    ids = [str(container["containerID"]) for container in statuses if container.get("containerID")]
    return all(container_id.startswith(OURS) for container_id in ids)
