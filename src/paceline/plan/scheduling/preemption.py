"""Preemption: which jobs of lower priority make room, the lowest first, and no more than necessary."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from paceline.apimachinery.meta import (
    Key,
    Object,
    annotations_of,
    condition_of,
    controller_of,
    is_deleting,
    key_of,
    labels_of,
)
from paceline.apimachinery.pods import is_terminal
from paceline.apimachinery.timestamps import from_wire, to_wire
from paceline.model import reasons, well_known_labels
from paceline.plan.scheduling.resources import (
    Amounts,
    Fit,
    NodeResources,
    PodGroup,
    add,
    family_of,
    fit_of,
    is_enough,
    rank_of,
    requests_of,
)

TYPE = "DisruptionTarget"
# The text of Kubernetes' own scheduler.
MESSAGE = "default-scheduler: preempting to accommodate a higher priority pod"
# How long a job has to record the preemption before its pods are deleted.
PATIENCE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionWork:
    """What remains to do about preempted pods: those to mark, those to delete, and when to check again."""

    mark: Mapping[Key, str] = field(default_factory=dict)
    end: tuple[Key, ...] = ()
    wake_at: datetime | None = None


def disruption_condition(pod: Object) -> Object | None:
    """Return the DisruptionTarget condition of a preempted pod, or None."""
    condition = condition_of(pod, TYPE) or {}
    is_preempted = (condition.get("reason"), condition.get("status")) == (reasons.PREEMPTION_BY_SCHEDULER, "True")
    return condition if is_preempted else None


def is_marked(pod: Object) -> bool:
    """Return whether a pod is preempted."""
    return disruption_condition(pod) is not None


def needs_delete(pod: Object) -> bool:
    """Return whether a pod is preempted and not deleted yet."""
    return is_marked(pod) and not is_deleting(pod) and not is_terminal(pod)


def new_mark(message: str, now: datetime) -> Object:
    """Return the DisruptionTarget condition."""
    return {
        "type": TYPE,
        "status": "True",
        "reason": reasons.PREEMPTION_BY_SCHEDULER,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": to_wire(now),
    }


def rest_of(placed: Iterable[Object], now: datetime) -> DisruptionWork:
    """Return what a previous scheduler left undone: a job with one marked pod is preempted as a whole."""
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
    """Return when a marked pod is deleted at the latest, also if the clock was set back."""
    labels = labels_of(pod)
    if (
        well_known_labels.REPLICA_TYPE not in labels
        or well_known_labels.GANG_SIZE not in annotations_of(pod)
        or controller_of(pod) is None
    ):
        return now
    return min(from_wire(mark["lastTransitionTime"]), now) + PATIENCE


# The text of Kubernetes' own scheduler.
NEVER = "preemption: not eligible due to preemptionPolicy=Never"
NO_VICTIMS = "preemption: No preemption victims found for incoming pod"
GIVES_WAY = "preemption: pods of lower priority give way"


@dataclass(frozen=True, slots=True, kw_only=True)
class VictimCandidate:
    """The scheduled pods of one job, or a single pod."""

    family: str
    pods: tuple[Key, ...]
    # What its deletion frees, by node.
    holds: Mapping[str, Amounts]
    # The highest priority of its pods, and when the oldest was created.
    rank: int = 0
    since: str = ""
    # Whether it is being deleted.
    is_leaving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """How room is made for a gang: the nodes of its pods, the victims, and what remains for others."""

    nodes: Mapping[Key, str]
    victims: tuple[VictimCandidate, ...]
    rooms: tuple[NodeResources, ...]


def holders_of(pods: tuple[Object, ...], *, below: int) -> tuple[VictimCandidate, ...]:
    """Return the holders of room on nodes: the pods of a job together, pods that are being deleted alone.

    Where nobody is less important than that, nobody gives way, and it is of no interest.
    """
    if all(rank_of(pod) >= below for pod in pods):
        return ()
    groups: dict[tuple[str, bool], list[Object]] = {}
    for pod in pods:
        # Auxiliary pods upload results and end by themselves, so they are never preempted.
        is_errand = well_known_labels.ERRAND in labels_of(pod) and not is_deleting(pod)
        if pod["spec"].get("nodeName") and not is_terminal(pod) and not is_errand:
            groups.setdefault((family_of(pod), is_deleting(pod)), []).append(pod)
    return tuple(_holder(family, group) for (family, _), group in groups.items())


def find_preemption(
    gang: PodGroup, rooms: tuple[NodeResources, ...], holders: tuple[VictimCandidate, ...], shared: frozenset[str]
) -> Preemption | None:
    """Return the victims so that a whole gang finds room; None if that does not help or is not needed.

    Who is going already is waited for before anybody else is told to.
    """
    holders = tuple(holder for holder in holders if holder.family != gang.family)
    if not gang.preempts or not any(holder.rank < gang.rank for holder in holders):
        return None
    leaving = tuple(holder for holder in holders if holder.is_leaving)
    remaining = _without(rooms, leaving)
    fit = fit_of(gang, remaining, shared)
    if is_enough(gang, fit):
        return _way(gang, rooms, fit, victims=())
    victims = _choose(gang, remaining, holders, shared)
    return _way(gang, rooms, fit_of(gang, _without(remaining, victims), shared), victims=victims) if victims else None


def why_no_preemption(gang: PodGroup) -> str:
    """Return why a gang with a priority preempts no pods; empty for one without."""
    if gang.rank <= 0:
        return ""
    return NO_VICTIMS if gang.preempts else NEVER


def _way(
    gang: PodGroup, rooms: tuple[NodeResources, ...], fit: Fit, *, victims: tuple[VictimCandidate, ...]
) -> Preemption:
    """Reserve the room that a gang will have."""
    reserved = {room.node: room for room in rooms}
    for ask in gang.asks:
        if ask.key in fit.nodes:
            room = reserved[fit.nodes[ask.key]]
            reserved[room.node] = replace(room, used=add(room.used, ask.requests))
    return Preemption(nodes=fit.nodes, victims=victims, rooms=tuple(reserved.values()))


def _choose(
    gang: PodGroup, rooms: tuple[NodeResources, ...], holders: tuple[VictimCandidate, ...], shared: frozenset[str]
) -> tuple[VictimCandidate, ...]:
    """Return the victims among the lowest priorities: one if that is enough, else no more than necessary."""

    def helps(victims: Iterable[VictimCandidate]) -> bool:
        return is_enough(gang, fit_of(gang, _without(rooms, victims), shared))

    youngest = sorted(holders, key=lambda holder: (holder.since, holder.family), reverse=True)
    lower = sorted(youngest, key=lambda holder: holder.rank)
    lower = [holder for holder in lower if holder.rank < gang.rank and not holder.is_leaving]
    for rank in sorted({holder.rank for holder in lower}):
        able = [holder for holder in lower if holder.rank <= rank]
        if helps(able):
            alone = next((holder for holder in able if helps((holder,))), None)
            return (alone,) if alone else _spared(able, helps)
    return ()


def _spared(
    able: list[VictimCandidate], helps: Callable[[Iterable[VictimCandidate]], bool]
) -> tuple[VictimCandidate, ...]:
    """Drop unnecessary victims, the highest priority and oldest first."""
    for holder in reversed(able):
        others = [candidate for candidate in able if candidate is not holder]
        if helps(others):
            able = others
    return tuple(able)


def _without(rooms: tuple[NodeResources, ...], holders: Iterable[VictimCandidate]) -> tuple[NodeResources, ...]:
    freed = {room.node: room for room in rooms}
    for holder in holders:
        for node, amounts in holder.holds.items():
            if node in freed:
                less = {name: -amount for name, amount in amounts.items()}
                freed[node] = replace(freed[node], used=add(freed[node].used, less))
    return tuple(freed.values())


def _holder(family: str, pods: list[Object]) -> VictimCandidate:
    holds: dict[str, Amounts] = {}
    for pod in pods:
        node = str(pod["spec"]["nodeName"])
        holds[node] = add(holds.get(node, {}), requests_of(pod["spec"]))
    return VictimCandidate(
        family=family,
        pods=tuple(sorted(key_of(pod) for pod in pods)),
        holds=holds,
        rank=max(rank_of(pod) for pod in pods),
        since=min(str(pod["metadata"].get("creationTimestamp", "")) for pod in pods),
        is_leaving=any(is_deleting(pod) or is_marked(pod) for pod in pods),
    )
