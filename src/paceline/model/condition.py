"""A condition of an object, as a typed value and in Kubernetes' wire form."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Self

from paceline.apimachinery.timestamps import from_wire, to_wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A condition with its last transition time; each kind of object has a subclass with its condition types."""

    # The condition types, and the placeholder for an empty reason.
    condition_types: ClassVar[type[StrEnum]]
    no_reason: ClassVar[str] = ""

    type: StrEnum
    status: bool
    reason: str
    message: str = ""
    since: datetime

    def to_wire(self) -> dict[str, Any]:
        """Return the condition in wire form."""
        return {
            "type": self.type.value,
            "status": "True" if self.status else "False",
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": to_wire(self.since),
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Return the decoded condition."""
        return cls(
            type=cls.condition_types(wire["type"]),
            status=wire.get("status") == "True",
            reason=str(wire.get("reason", cls.no_reason)),
            message=str(wire.get("message", "")),
            since=from_wire(wire["lastTransitionTime"]),
        )

    @classmethod
    def all_from_wire(cls, wire: Iterable[Mapping[str, Any]]) -> tuple[Self, ...]:
        """Return the decoded conditions without those of other controllers."""
        known = {kind.value for kind in cls.condition_types}
        return tuple(cls.from_wire(condition) for condition in wire if condition.get("type") in known)


def all_to_wire(conditions: Iterable[Fact]) -> list[dict[str, Any]]:
    """Return conditions in wire form."""
    return [condition.to_wire() for condition in conditions]
