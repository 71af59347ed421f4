"""The mark on pods that give way to somebody more important, and what is still to be done about marked ones.

All pods of a job are marked, as Kubernetes' own scheduler marks them. The job's controller sees the mark, writes down
that its next try waits for room again, and only then ends them: a crash at any moment loses neither the mark nor the
reason, and the job is charged no restart. Pods that no job of ours takes back are ended by the scheduler, and so are
members whose job does not answer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paceline.apimachinery.meta import Key, Object, annotations_of, controller_of, is_deleting, key_of, labels_of
from paceline.apimachinery.pods import is_terminal
from paceline.apimachinery.timestamps import from_wire, to_wire
from paceline.model import well_known_labels
from paceline.plan.scheduling.resources import family_of

TYPE, REASON = "DisruptionTarget", "PreemptionByScheduler"
# The words of Kubernetes' own scheduler.
MESSAGE = "default-scheduler: preempting to accommodate a higher priority pod"
# How long a job may take to write down that its pods go, before they are ended without it.
PATIENCE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionWork:
    """What is left to do about marked pods: those to mark with a message, those to end, and when to look again."""

    mark: Mapping[Key, str] = field(default_factory=dict)
    end: tuple[Key, ...] = ()
    wake_at: datetime | None = None


def disruption_condition(pod: Object) -> Object | None:
    """Find the mark on a pod that gives way."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    marks = (
        condition for condition in conditions if (condition.get("type"), condition.get("reason")) == (TYPE, REASON)
    )
    return next((condition for condition in marks if condition.get("status") == "True"), None)


def is_marked(pod: Object) -> bool:
    """Return whether a pod gives way."""
    return disruption_condition(pod) is not None


def needs_delete(pod: Object) -> bool:
    """Return whether a pod gives way that was not told to end yet."""
    return is_marked(pod) and not is_deleting(pod) and not is_terminal(pod)


def new_mark(message: str, now: datetime) -> Object:
    """Write the condition that marks a pod."""
    return {
        "type": TYPE,
        "status": "True",
        "reason": REASON,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": to_wire(now),
    }


def rest_of(placed: Iterable[Object], now: datetime) -> DisruptionWork:
    """Go on where the last pass, or the last scheduler, stopped: a job whose one pod is marked goes as a whole."""
    families: dict[str, list[Object]] = {}
    for pod in placed:
        if not is_deleting(pod) and not is_terminal(pod):
            families.setdefault(family_of(pod), []).append(pod)
    mark: dict[Key, str] = {}
    due: dict[Key, datetime] = {}
    for pods in families.values():
        marks = {key_of(pod): condition for pod in pods if (condition := disruption_condition(pod)) is not None}
        message = next((str(mark.get("message") or "") for mark in marks.values()), "")
        mark |= {key_of(pod): message for pod in pods if marks and key_of(pod) not in marks}
        due |= {key_of(pod): _due(pod, marks[key_of(pod)], now) for pod in pods if key_of(pod) in marks}
    end = tuple(key for key, moment in due.items() if moment <= now)
    return DisruptionWork(
        mark=mark, end=end, wake_at=min((moment for moment in due.values() if moment > now), default=None)
    )


def _due(pod: Object, mark: Object, now: datetime) -> datetime:
    """Return when a marked pod is ended if nobody else has done so; a clock that was set back makes it no later."""
    labels = labels_of(pod)
    if (
        well_known_labels.REPLICA_TYPE not in labels
        or well_known_labels.GANG_SIZE not in annotations_of(pod)
        or controller_of(pod) is None
    ):
        return now
    return min(from_wire(mark["lastTransitionTime"]), now) + PATIENCE
