"""The TensorBoard of a job: when it is created, and what the job's status reports about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.apimachinery.meta import Object, owned_metadata
from paceline.model.interactive import ServicePhase, ServiceStatus
from paceline.plan.job.manifests import owner_labels


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSeen:
    """Everything one decision may look at."""

    # Name and namespace of the TensorBoard: the prefix of the job's pods.
    name: str
    namespace: str
    api_version: str
    # Whether the job has ended, so that nothing is created any more.
    is_over: bool = False
    # The state of the TensorBoard, if it exists.
    uid: str = ""
    status: ServiceStatus = field(default_factory=ServiceStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPlan:
    """T9k's status fields about the TensorBoard, and whether to create it."""

    status: Mapping[str, Any]
    makes: bool = False


def decide(view: BoardSeen) -> BoardPlan:
    """Create the TensorBoard unless it exists or the job has ended; it stays when the job ends."""
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
    """Return the TensorBoard of a job; it is deleted with the job."""
    return {
        "apiVersion": view.api_version,
        "kind": "TensorBoard",
        "metadata": owned_metadata(view.name, view.namespace, owner_labels(str(owner["name"]), owner), owner),
        "spec": dict(spec),
    }
