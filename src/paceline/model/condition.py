"""The conditions of a status, as typed values and in Kubernetes' wire form."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Self

from paceline.apimachinery.timestamps import from_wire, to_wire
from paceline.model import reasons
from paceline.model.wire_object import WireForm, WireObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition with its last transition time."""

    type: str
    status: bool
    reason: str = reasons.NONE
    message: str = ""
    since: datetime

    def to_wire(self) -> dict[str, Any]:
        """Return the condition in wire form."""
        return {
            "type": str(self.type),
            "status": "True" if self.status else "False",
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": to_wire(self.since),
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Return the decoded condition."""
        return cls(
            type=str(wire["type"]),
            status=wire.get("status") == "True",
            reason=str(wire.get("reason", reasons.NONE)),
            message=str(wire.get("message", "")),
            since=from_wire(wire["lastTransitionTime"]),
        )


def conditions_of(types: type[StrEnum]) -> WireForm:
    """Return the form of conditions of some types; those of other controllers are not read."""
    names = {kind.value for kind in types}

    def read(wire: Iterable[Mapping[str, Any]]) -> tuple[Condition, ...]:
        return tuple(Condition.from_wire(condition) for condition in wire if condition.get("type") in names)

    return WireForm(
        read=read, write=lambda conditions: [condition.to_wire() for condition in conditions], is_always=True
    )


class ConditionedStatus(WireObject):
    """A status with conditions."""

    __slots__ = ()
    # The types of its conditions, in their order.
    condition_types: ClassVar[type[StrEnum]]
    conditions: tuple[Condition, ...]

    def condition(self, kind: StrEnum) -> Condition | None:
        """Return the condition of a type, or None."""
        return next((condition for condition in self.conditions if condition.type == kind), None)

    def is_true(self, kind: StrEnum) -> bool:
        """Return whether a condition exists and is true."""
        condition = self.condition(kind)
        return condition is not None and condition.status

    def put(self, kind: StrEnum, now: datetime, *, holds: bool, reason: str = reasons.NONE, message: str = "") -> Self:
        """Return the status with one condition set; its transition time changes only with its status."""
        old = self.condition(kind)
        since = old.since if old is not None and old.status is holds else now
        conditions = {condition.type: condition for condition in self.conditions}
        conditions[kind] = Condition(type=kind, status=holds, reason=reason, message=message, since=since)
        return self.but(conditions=tuple(conditions[kind] for kind in self.condition_types if kind in conditions))
