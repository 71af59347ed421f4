"""What a case waits for: one condition on a pod, its events and its logs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]
TERM = re.compile(r"(?P<left>[^=~>]+?)(?P<sign>>=|=|~)(?P<right>.*)", re.DOTALL)
STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is known of a case's pod at one moment."""

    pod: Object
    is_gone: bool = False
    events: Sequence[Object] = ()
    # Of containers whose logs a condition asks for.
    logs: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> Object:
        """The pod's status."""
        return self.pod.get("status") or {}


def logs_asked(terms: Iterable[str]) -> tuple[str, ...]:
    """Name the containers whose logs must be read to tell."""
    return tuple(term.partition("~")[0].removeprefix("log:") for term in terms if term.startswith("log:"))


def holds(term: str, look: Look) -> bool:
    """Tell whether one condition holds."""
    if term == "gone":
        return look.is_gone
    if term.startswith("event:"):
        return _has_event(term.removeprefix("event:"), look)
    found = TERM.fullmatch(term)
    if found is None:
        raise ValueError(f"{term!r} is no condition; see tests/conformance/table.py")
    left, sign, right = found["left"], found["sign"], found["right"]
    if left.startswith("log:"):
        return right in look.logs.get(left.removeprefix("log:"), "")
    if left in ("phase", "reason"):
        return bool(look.status.get(left, "") == right)
    if left[0].isupper():
        return _has_condition(left, right, look.status)
    name, _, field_name = left.partition(".")
    return _has_container(name, field_name, f"{sign}{right}", look.status)


def _has_event(term: str, look: Look) -> bool:
    rest, _, text = term.partition("~")
    reason, _, least = rest.partition(">=")
    counts = [
        int(each.get("count") or 1)
        for each in look.events
        if each.get("reason") == reason and text in each.get("message", "")
    ]
    return sum(counts) >= int(least or 1)


def _has_condition(kind: str, wanted: str, status: Object) -> bool:
    state, _, reason = wanted.partition(":")
    for each in status.get("conditions") or ():
        if each["type"] == kind:
            return each["status"] == state and (not reason or each.get("reason") == reason)
    return False


def _has_container(name: str, field_name: str, wanted: str, status: Object) -> bool:
    found = next((each for kind in STATUSES for each in status.get(kind) or () if each["name"] == name), None)
    if found is None:
        return False
    if field_name == "restarts":
        count, right = int(found["restartCount"]), int(wanted.lstrip(">="))
        return count >= right if wanted.startswith(">") else count == right
    if field_name in ("ready", "started"):
        return str(bool(found.get(field_name))).lower() == wanted[1:]
    state = found.get("lastState" if field_name == "last" else "state") or {}
    kind, _, reason = wanted[1:].partition(":")
    return kind in state and (not reason or state[kind].get("reason") == reason)
