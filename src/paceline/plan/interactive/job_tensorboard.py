"""The TensorBoard that a job asks for: when it is made, and what the job says of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.model import well_known_labels
from paceline.model.interactive_status import ServicePhase, ServiceStatus

USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSeen:
    """Everything one decision may look at."""

    # What the job's TensorBoard is called, and where: like the job's pods, but for their places.
    name: str
    namespace: str
    api_version: str
    # Whether the job has ended, so that nothing more is made for it.
    is_over: bool = False
    # Of the TensorBoard, if it is there.
    uid: str = ""
    status: ServiceStatus = field(default_factory=ServiceStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPlan:
    """What the job says of its TensorBoard, in T9k's words, and whether one is made."""

    status: Mapping[str, Any]
    makes: bool = False


def decide(seen: BoardSeen) -> BoardPlan:
    """Have a TensorBoard made unless there is one or the job is over; it stays when the job ends."""
    if not seen.uid and seen.is_over:
        return BoardPlan(status=_said(seen, "NOP", "DependentGone", "it was deleted"))
    if not seen.uid:
        return BoardPlan(status=_said(seen, "Create", "DependentCreating", "it is being made"), makes=True)
    match seen.status.phase:
        case ServicePhase.RUNNING:
            return BoardPlan(status=_said(seen, "NOP", "DependentReady", f"it is opened at {seen.status.url}"))
        case ServicePhase.PAUSED:
            return BoardPlan(status=_said(seen, "NOP", "DependentSuspended", "it is suspended"))
    return BoardPlan(status=_said(seen, "NOP", "DependentNotReady", seen.status.waiting or "it is starting"))


def refused(seen: BoardSeen, why: str) -> Mapping[str, Any]:
    """Say that the cluster does not take the TensorBoard; the job goes on without."""
    return {**_said(seen, "Create", "DependentRefused", why), "type": "Warning"}


def _said(seen: BoardSeen, action: str, reason: str, note: str) -> dict[str, Any]:
    dependent = {
        "apiVersion": seen.api_version,
        "kind": "TensorBoard",
        "name": seen.name,
        "namespace": seen.namespace,
        "uid": seen.uid,
    }
    return {
        "action": action,
        "dependent": {name: value for name, value in dependent.items() if value},
        "note": note,
        "ready": reason == "DependentReady",
        "reason": reason,
        "type": "Warning" if seen.uid and seen.status.waiting else "Normal",
    }


def board_manifest(seen: BoardSeen, spec: Mapping[str, Any], *, owner: Mapping[str, Any]) -> Object:
    """Write the TensorBoard of a job; it goes when the job is deleted."""
    return {
        "apiVersion": seen.api_version,
        "kind": "TensorBoard",
        "metadata": {
            "name": seen.name,
            "namespace": seen.namespace,
            "labels": {
                well_known_labels.OWNER_NAME: str(owner["name"]),
                well_known_labels.OWNER_KIND: str(owner["kind"]),
                well_known_labels.COMPONENT: str(owner["kind"]).lower(),
                well_known_labels.COMPONENT_TYPE: USER,
            },
            "ownerReferences": [dict(owner)],
        },
        "spec": dict(spec),
    }
