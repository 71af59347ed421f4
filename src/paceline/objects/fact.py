"""One condition of an object, as a typed value and as Kubernetes writes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Self

from paceline.objects.times import from_wire, to_wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact, with the moment since which it holds; what may be said of an object its own kind of fact knows."""

    # The names that such a fact may have, and what stands for no reason.
    known: ClassVar[type[StrEnum]]
    no_reason: ClassVar[str] = ""

    type: StrEnum
    status: bool
    reason: str
    message: str = ""
    since: datetime

    def to_wire(self) -> dict[str, Any]:
        """Write the condition as Kubernetes shows it."""
        return {
            "type": self.type.value,
            "status": "True" if self.status else "False",
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": to_wire(self.since),
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Read a condition back."""
        return cls(
            type=cls.known(wire["type"]),
            status=wire.get("status") == "True",
            reason=str(wire.get("reason", cls.no_reason)),
            message=str(wire.get("message", "")),
            since=from_wire(wire["lastTransitionTime"]),
        )
