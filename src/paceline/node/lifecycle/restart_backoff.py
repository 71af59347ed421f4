"""Whether and when an ended container is started again: a function of what is on record, not of memory."""

from datetime import timedelta
from enum import Enum

from paceline.apimachinery.meta import Object
from paceline.node.lifecycle.view import Ended, Try

# The first restart comes at once, later ones after a pause that doubles.
PAUSE, LONGEST_PAUSE = timedelta(seconds=10), timedelta(minutes=5)
# A container that ran this long had a good start: its pauses begin anew.
STEADY = timedelta(minutes=10)


def policy_of(pod: Object) -> str:
    """Give the pod's restart policy."""
    return str(pod["spec"].get("restartPolicy") or "Always")


class Role(Enum):
    """What a container is for in its pod."""

    MAIN = 1
    INIT = 2
    SIDECAR = 3


def comes_again(pod: Object, ended: Ended, role: Role = Role.MAIN) -> bool:
    """Tell whether the pod's policy starts a container again that ended so."""
    policy = policy_of(pod)
    if role is Role.SIDECAR:
        return True
    if policy == "Never" or (role is Role.INIT and ended.exit_code == 0):
        return False
    return policy == "Always" or ended.exit_code != 0


def pause_after(each: Try) -> timedelta:
    """Say how long the next try waits after this one."""
    if each.restarts == 0 or each.ended is None:
        return timedelta()
    began = each.ended.started_at
    if began is not None and each.ended.finished_at - began >= STEADY:
        return timedelta()
    doubled: timedelta = PAUSE * 2 ** min(each.restarts - 1, 10)
    return min(doubled, LONGEST_PAUSE)
