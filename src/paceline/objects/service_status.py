"""The status of a TensorBoard or Notebook: T9k's tree and what T9k leaves out, as typed values and as the wire form."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Self

from paceline.objects.fact import Fact
from paceline.objects.foreign import foreign
from paceline.objects.times import from_wire, to_wire, to_wire_micro


class ServicePhase(StrEnum):
    """Where it is."""

    INITIALIZING = "Initializing"
    RUNNING = "Running"
    PAUSED = "Paused"


class Trait(StrEnum):
    """The conditions that T9k shows."""

    READY = "Ready"
    IDLE = "Idle"
    SUSPENDED = "Suspended"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCondition(Fact):
    """One fact, with the moment since which it holds."""

    known: ClassVar[type[StrEnum]] = Trait

    type: Trait


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """Everything that is remembered between two passes."""

    phase: ServicePhase = ServicePhase.INITIALIZING
    observed_generation: int = 0
    # The path at which it is opened.
    url: str = ""
    # Where it is opened from outside the cluster, by anybody who reaches it; none when only by the path.
    address: str = ""
    # The secret with the token that is asked for there.
    secret: str = ""
    # Name, uid and phase of the pod.
    pod: tuple[str, str, str] | None = None
    conditions: tuple[ServiceCondition, ...] = ()
    # Why it does not run yet.
    waiting: str = ""
    # When it was last used, to the minute.
    last_activity: datetime | None = None
    # No pod is made before this moment: the pause after a failure.
    start_after: datetime | None = None

    def condition(self, kind: Trait) -> ServiceCondition | None:
        """Find a condition by its type."""
        return next((each for each in self.conditions if each.type is kind), None)

    def but(self, **changes: Any) -> Self:
        """Give the same status with some fields changed."""
        return replace(self, **changes)

    def put(self, new: ServiceCondition) -> Self:
        """Give the status with one condition as it is now; its moment stays while it says the same."""
        old = self.condition(new.type)
        made = replace(new, since=old.since) if old is not None and old.status is new.status else new
        kept = {each.type: each for each in (*self.conditions, made)}
        return replace(self, conditions=tuple(kept[kind] for kind in Trait if kind in kept))

    def to_wire(self) -> dict[str, Any]:
        """Write the status; what is empty is left out, so that a reader may ask whether it is there."""
        optional: dict[str, Any] = {
            "url": self.url,
            "address": self.address,
            "tokenSecret": self.secret,
            "pod": _pod(self.pod) if self.pod else None,
            "waiting": self.waiting,
            "lastActivity": self.last_activity and to_wire(self.last_activity),
            "startAfter": self.start_after and to_wire_micro(self.start_after),
        }
        return {
            "phase": self.phase.value,
            "observedGeneration": self.observed_generation,
            "conditions": [each.to_wire() for each in self.conditions],
            **{key: value for key, value in optional.items() if value},
        }

    @classmethod
    @foreign
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Read a status back; an object that has none yet has the first one there is."""
        phase = wire.get("phase")
        return cls(
            phase=ServicePhase(phase) if phase in _PHASES else ServicePhase.INITIALIZING,
            observed_generation=int(wire.get("observedGeneration") or 0),
            url=str(wire.get("url") or ""),
            address=str(wire.get("address") or ""),
            secret=str(wire.get("tokenSecret") or ""),
            pod=_read_pod(wire.get("pod") or {}),
            conditions=_conditions(wire.get("conditions") or ()),
            waiting=str(wire.get("waiting") or ""),
            last_activity=from_wire(wire["lastActivity"]) if wire.get("lastActivity") else None,
            start_after=from_wire(wire["startAfter"]) if wire.get("startAfter") else None,
        )


_PHASES = frozenset(phase.value for phase in ServicePhase)
_TRAITS = frozenset(trait.value for trait in Trait)


def _pod(pod: tuple[str, str, str]) -> dict[str, Any]:
    name, uid, phase = pod
    return {"reference": {"name": name, "uid": uid}, "phase": phase}


def _read_pod(wire: Mapping[str, Any]) -> tuple[str, str, str] | None:
    reference = wire.get("reference") or {}
    if not reference.get("name"):
        return None
    return str(reference["name"]), str(reference.get("uid") or ""), str(wire.get("phase") or "")


def _conditions(wire: Iterable[Mapping[str, Any]]) -> tuple[ServiceCondition, ...]:
    # Conditions of other controllers are theirs to keep.
    return tuple(ServiceCondition.from_wire(each) for each in wire if each.get("type") in _TRAITS)
