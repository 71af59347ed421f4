"""By which signal processes are asked to stop, chosen by whoever stops them."""

import difflib
import signal

from paceline.errors import Fault, Invalid
from paceline.objects.meta import Object

# What our own node agent writes before the ids of containers.
OURS = "paceline://"
FINAL = ("Succeeded", "Failed")


def signal_named(word: str) -> str:
    """Give a signal's whole name, such as SIGINT for `int`; Invalid when there is none of that name."""
    name = word.upper().removeprefix("SIG")
    known = [each.removeprefix("SIG") for each in signal.Signals.__members__]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "such as INT, TERM, USR1 or KILL"
        raise Invalid((Fault("--signal", word, f"there is no such signal; {hint}"),))
    return f"SIG{name}"


def has_processes(pod: Object) -> bool:
    """Tell whether there may be processes of a pod to be stopped."""
    return (pod.get("status") or {}).get("phase") not in FINAL


def is_ours(pod: Object) -> bool:
    """Tell whether our own node agent runs a pod, as far as its containers have begun."""
    status = pod.get("status") or {}
    told = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    ids = [str(each["containerID"]) for each in told if each.get("containerID")]
    return all(each.startswith(OURS) for each in ids)
