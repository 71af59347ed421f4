"""The TensorBoard that a job asks for: when it is made, and what the job says of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.model import well_known_labels
from paceline.model.interactive import ServicePhase, ServiceStatus

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


def decide(view: BoardSeen) -> BoardPlan:
    """Have a TensorBoard made unless there is one or the job is over; it stays when the job ends."""
    if not view.uid and view.is_over:
        return BoardPlan(status=_said(view, "NOP", "DependentGone", "it was deleted"))
    if not view.uid:
        return BoardPlan(status=_said(view, "Create", "DependentCreating", "it is being made"), makes=True)
    match view.status.phase:
        case ServicePhase.RUNNING:
            return BoardPlan(status=_said(view, "NOP", "DependentReady", f"it is opened at {view.status.url}"))
        case ServicePhase.PAUSED:
            return BoardPlan(status=_said(view, "NOP", "DependentSuspended", "it is suspended"))
    return BoardPlan(status=_said(view, "NOP", "DependentNotReady", view.status.waiting or "it is starting"))


def refused(view: BoardSeen, message: str) -> Mapping[str, Any]:
    """Return the status of a rejected TensorBoard; the job runs without it."""
    return {**_said(view, "Create", "DependentRefused", message), "type": "Warning"}


def _said(view: BoardSeen, action: str, reason: str, note: str) -> dict[str, Any]:
    dependent = {
        "apiVersion": view.api_version,
        "kind": "TensorBoard",
        "name": view.name,
        "namespace": view.namespace,
        "uid": view.uid,
    }
    return {
        "action": action,
        "dependent": {name: value for name, value in dependent.items() if value},
        "note": note,
        "ready": reason == "DependentReady",
        "reason": reason,
        "type": "Warning" if view.uid and view.status.waiting else "Normal",
    }


def board_manifest(view: BoardSeen, spec: Mapping[str, Any], *, owner: Mapping[str, Any]) -> Object:
    """Write the TensorBoard of a job; it goes when the job is deleted."""
    return {
        "apiVersion": view.api_version,
        "kind": "TensorBoard",
        "metadata": {
            "name": view.name,
            "namespace": view.namespace,
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
