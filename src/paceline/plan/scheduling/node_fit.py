"""Whether the pods of one gang find nodes, and what is left of these then."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from paceline.apimachinery.meta import Key
from paceline.plan.scheduling.node_affinity import why_not_schedulable
from paceline.plan.scheduling.resources import Amounts, NodeResources, PodGroup, PodRequest, add


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How far the pods of one gang find nodes, what is left then, and the first pod that finds none."""

    nodes: Mapping[Key, str]
    rooms: tuple[NodeResources, ...]
    stuck: PodRequest | None = None


def is_enough(gang: PodGroup, fit: Fit) -> bool:
    """Return whether a gang may start or grow with those of its pods that find a node."""
    return fit.stuck is None or (bool(fit.nodes) and gang.placed + len(fit.nodes) >= gang.size)


def fit_of(gang: PodGroup, rooms: tuple[NodeResources, ...], shared: frozenset[str]) -> Fit:
    """Find nodes for the pods of a gang, one after the other; of what is shared there is always enough."""
    nodes: dict[Key, str] = {}
    free = {room.node: room for room in rooms}
    for ask in gang.asks:
        room = next((candidate for candidate in free.values() if _has_room(candidate, ask, shared)), None)
        if room is None:
            return Fit(nodes=nodes, rooms=tuple(free.values()), stuck=ask)
        nodes[ask.key] = room.node
        free[room.node] = replace(room, used=add(room.used, ask.requests))
    return Fit(nodes=nodes, rooms=tuple(free.values()))


def refusal(room: NodeResources, ask: PodRequest) -> str:
    """Return why a pod can never run on a node, even an empty one; empty when it can."""
    return why_not_schedulable(ask.wishes, node=room.node, labels=room.labels, taints=room.taints)


def short_of(room: NodeResources, needs: Amounts, shared: frozenset[str]) -> list[str]:
    """Return the resources of which a node has too little."""
    return [name for name, amount in needs.items() if name not in shared and amount > room.free(name)]


def _has_room(room: NodeResources, ask: PodRequest, shared: frozenset[str]) -> bool:
    return not refusal(room, ask) and not short_of(room, ask.requests, shared)
