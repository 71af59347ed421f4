"""Gang scheduling: which pending pods go to which node, and why the others wait."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from decimal import Decimal

from paceline.apimachinery.builtin.storage_annotations import WAITING
from paceline.apimachinery.meta import Key, Object, annotations_of, is_deleting, namespace_of
from paceline.apimachinery.pods import claims_of
from paceline.model.scheduling_queue import QueueEntry, SchedulingQueue
from paceline.plan.scheduling.preemption import GIVES_WAY, VictimCandidate, find_preemption, why_no_preemption
from paceline.plan.scheduling.resources import (
    PODS,
    PORT,
    Amounts,
    Fit,
    NodeResources,
    PodGroup,
    add,
    fit_of,
    is_enough,
    refusal,
    short_of,
)

# On one machine CPUs are shared: everything becomes slower, nothing breaks. Memory and devices are never shared.
SHARED = frozenset({"cpu"})
IN_BYTES = ("memory", "ephemeral-storage", "hugepages-")
UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The nodes of scheduled pods, why the others wait, and remarks about the scheduled ones."""

    bind: Mapping[Key, str] = field(default_factory=dict)
    waits: Mapping[Key, str] = field(default_factory=dict)
    warn: Mapping[Key, str] = field(default_factory=dict)
    # The nodes of pods after preemption, and the victims, each with its preemptor.
    nominate: Mapping[Key, str] = field(default_factory=dict)
    victims: Mapping[Key, Key] = field(default_factory=dict)
    # The gangs that get room when others leave, in the order in which they get it.
    queue: tuple[PodGroup, ...] = ()


def queue_of(placement: Placement) -> SchedulingQueue:
    """Return the scheduling queue after a pass: each job once, at its first place."""
    entries: dict[str, QueueEntry] = {}
    for gang in placement.queue:
        entry = QueueEntry(uid=gang.family, namespace=gang.asks[0].key[0], name=gang.name)
        entries.setdefault(gang.family, entry)
    return SchedulingQueue.of(entries.values())


def place(
    gangs: tuple[PodGroup, ...],
    rooms: tuple[NodeResources, ...],
    holders: tuple[VictimCandidate, ...] = (),
    *,
    shared: frozenset[str] = SHARED,
) -> Placement:
    """Schedule gangs, each whole or not at all, by priority and then by age.

    A gang that waits for resources keeps them from those behind it, so that a large one is not passed over for ever.
    One that can never fit keeps nothing from anybody. Less important holders give way where that makes room.
    """
    bind: dict[Key, str] = {}
    warn: dict[Key, str] = {}
    turn = _Turn(rooms=rooms, holders=holders, shared=shared)
    capacity = replace(_together(rooms), used={})
    for gang in sorted(gangs, key=lambda group: (-group.priority, group.since, group.name)):
        if message := _not_yet(gang):
            turn.waits |= dict.fromkeys(_keys(gang), message)
            continue
        # One that asks for more than the cluster has waits behind no other: it says so, and has no place in the queue.
        if not _exceeds(gang, capacity, shared) and (message := _behind(gang, turn.reserved)):
            turn.waits |= dict.fromkeys(_keys(gang), message)
            turn.queue.append(gang)
            continue
        fit = fit_of(gang, turn.rooms, shared)
        if not is_enough(gang, fit):
            turn.wait(gang)
            continue
        if fit.stuck is not None:
            message, lacking = _lack(gang, turn.rooms, shared)
            turn.waits |= {key: message for key in _keys(gang) if key not in fit.nodes}
            turn.queue += [gang] if lacking else []
        turn.rooms = fit.rooms
        bind |= fit.nodes
        warn |= _warnings(gang, fit, shared)
    return Placement(
        bind=bind,
        waits=turn.waits,
        warn=warn,
        nominate=turn.nominate,
        victims=turn.victims,
        queue=tuple(turn.queue),
    )


@dataclass(slots=True, kw_only=True)
class _Turn:
    """What remains for the next gang, and the result for those before it."""

    rooms: tuple[NodeResources, ...]
    holders: tuple[VictimCandidate, ...]
    shared: frozenset[str]
    waits: dict[Key, str] = field(default_factory=dict)
    # Resources that a gang before waits for.
    reserved: set[str] = field(default_factory=set)
    queue: list[PodGroup] = field(default_factory=list)
    nominate: dict[Key, str] = field(default_factory=dict)
    victims: dict[Key, Key] = field(default_factory=dict)

    def wait(self, gang: PodGroup) -> None:
        """Let a gang wait, and preempt others if that helps."""
        message, lacking = _lack(gang, self.rooms, self.shared)
        preemption = find_preemption(gang, self.rooms, self.holders, self.shared)
        hint = GIVES_WAY if preemption else why_no_preemption(gang)
        self.waits |= dict.fromkeys(_keys(gang), f"{message}. {hint}" if hint else message)
        self.reserved |= lacking
        self.queue += [gang] if lacking else []
        if preemption is None:
            return
        self.rooms = preemption.rooms
        self.nominate |= preemption.nodes
        for victim in preemption.victims:
            self.victims |= dict.fromkeys(victim.pods, gang.asks[0].key)
        self.holders = tuple(
            replace(holder, is_leaving=True) if holder in preemption.victims else holder for holder in self.holders
        )


def _keys(gang: PodGroup) -> tuple[Key, ...]:
    return tuple(ask.key for ask in gang.asks)


def _not_yet(gang: PodGroup) -> str:
    return f"waits for the other members: {gang.present} of {gang.size} pods exist" if gang.present < gang.size else ""


def _exceeds(gang: PodGroup, capacity: NodeResources, shared: frozenset[str]) -> bool:
    """Return whether a gang asks for more than all nodes have together."""
    return any(not name.startswith(PORT) for name in short_of(capacity, _needs(gang), shared))


def _behind(gang: PodGroup, reserved: AbstractSet[str]) -> str:
    """Return which of its resources others get first.

    It names no job: with each new first one, the message of every waiting pod would change and be an event.
    """
    needs = _needs(gang)
    names = [
        name if name.startswith(PORT) else f"{name} ({_amount(name, amount)} asked)"
        for name, amount in needs.items()
        if name in reserved
    ]
    return f"waits behind others for {', '.join(names)}" if names else ""


def _lack(gang: PodGroup, rooms: tuple[NodeResources, ...], shared: frozenset[str]) -> tuple[str, frozenset[str]]:
    """Return a message about what a gang lacks, and the resources it may reserve."""
    if not rooms:
        return "no node is ready", frozenset()
    homeless = [ask for ask in gang.asks if all(refusal(room, ask) for room in rooms)]
    if homeless:
        return refusal(rooms[0], homeless[0]), frozenset()
    empty = tuple(replace(room, used={}) for room in rooms)
    is_possible = fit_of(gang, empty, shared).stuck is None
    total, needs = _together(rooms), _needs(gang)
    lacking = [name for name in short_of(total, needs, shared) if not name.startswith(PORT)]
    lacking = lacking or _short_for_one(gang, rooms, shared)
    message = ", ".join(_say(name, needs[name], total, len(rooms)) for name in lacking)
    ever = "" if is_possible else "; it can never run here"
    # The text of Kubernetes' own scheduler, which users search for, and then the numbers.
    message = f"0/{len(rooms)} nodes are available: {message}{ever}"
    return message, frozenset(lacking) if is_possible else frozenset()


def _short_for_one(gang: PodGroup, rooms: tuple[NodeResources, ...], shared: frozenset[str]) -> list[str]:
    """Return what single nodes lack for a pod although all nodes together have enough."""
    fit = fit_of(gang, rooms, shared)
    requests = fit.stuck.requests if fit.stuck else {}
    return sorted({name for room in fit.rooms for name in short_of(room, requests, shared)})


def _together(rooms: tuple[NodeResources, ...]) -> NodeResources:
    capacity: Amounts = {}
    used: Amounts = {}
    for room in rooms:
        capacity, used = add(capacity, room.capacity), add(used, room.used)
    return NodeResources(node="", capacity=capacity, used=used)


def _needs(gang: PodGroup) -> dict[str, Decimal]:
    needs: dict[str, Decimal] = {}
    for ask in gang.asks:
        needs = add(needs, ask.requests)
    return needs


def _say(name: str, amount: Decimal, total: NodeResources, nodes: int) -> str:
    if name.startswith(PORT):
        shortage = f"{nodes} node(s) didn't have free ports for the requested pod ports"
        return f"{shortage} ({name.removeprefix(PORT)} is taken; leave hostPort out, or choose another)"
    free, capacity = max(total.free(name), Decimal(0)), total.has(name)
    numbers = f"{_amount(name, amount)} asked, {_amount(name, free)} of {_amount(name, capacity)} free"
    shortage = "Too many pods" if name == PODS else f"Insufficient {name}"
    return f"{nodes} {shortage} ({numbers})"


def _warnings(gang: PodGroup, fit: Fit, shared: frozenset[str]) -> dict[Key, str]:
    warnings: dict[Key, str] = {}
    for room in fit.rooms:
        for name in sorted(shared):
            used, capacity = room.used.get(name, Decimal(0)), room.capacity.get(name, Decimal(0))
            if used > capacity:
                message = (
                    f"{_amount(name, used)} {name} asked of {_amount(name, capacity)} on {room.node}: pods share them"
                )
                here = [ask for ask in gang.asks if fit.nodes.get(ask.key) == room.node and name in ask.requests]
                warnings |= {ask.key: message for ask in here}
    return warnings


def _amount(name: str, amount: Decimal) -> str:
    """Return an amount in readable form: bytes in binary units, to two digits."""
    unit = 0
    if name.startswith(IN_BYTES):
        while abs(amount) >= 1024 and unit < len(UNITS) - 1:
            amount, unit = amount / 1024, unit + 1
    return f"{amount:.2f}".rstrip("0").rstrip(".") + UNITS[unit]


# The text of Kubernetes' own scheduler, which users search for.
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


def lack_of(pod: Object, claims: Mapping[Key, Object]) -> str:
    """Return which claim of a pod is not bound, and why; empty if all are bound."""
    for reference in claims_of(pod):
        name = reference.name
        claim = claims.get((namespace_of(pod), name))
        if claim is None and reference.is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if is_deleting(claim):
            return f'persistentvolumeclaim "{name}" is being deleted'
        phase = (claim.get("status") or {}).get("phase")
        if phase == "Lost":
            volume = claim["spec"].get("volumeName") or ""
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        if phase != "Bound":
            reason = annotations_of(claim).get(WAITING, "")
            return f"{UNBOUND} ({name}: {reason})" if reason else UNBOUND
    return ""
