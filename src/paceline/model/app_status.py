"""The status of an application and of a job record, as typed values and in wire form."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from paceline.model.wire_object import ALWAYS, WireForm, WireObject, phase_or


class AppPhase(StrEnum):
    """The phase of an application, which is that of its current revision."""

    PENDING = "Pending"
    RUNNING = "Running"
    STOPPED = "Stopped"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    # Its job was deleted before it ended.
    DELETED = "Deleted"

    @property
    def is_final(self) -> bool:
        """Whether a revision in this phase has ended."""
        return self in (AppPhase.SUCCEEDED, AppPhase.FAILED, AppPhase.DELETED)


def _read_job(wire: Mapping[str, Any]) -> tuple[str, str] | None:
    return (str(wire.get("kind") or ""), str(wire["name"])) if wire.get("name") else None


def _write_job(job: tuple[str, str]) -> dict[str, str]:
    return {"kind": job[0], "name": job[1]}


@dataclass(frozen=True, slots=True, kw_only=True)
class AppStatus(WireObject):
    """The state of an application between two reconciliations."""

    phase: Annotated[AppPhase, phase_or(AppPhase.PENDING)] = AppPhase.PENDING
    observed_generation: Annotated[int, ALWAYS] = 0
    # The current revision, its start time, and its job: kind and name.
    revision: int = 0
    updated: datetime | None = None
    job: Annotated[tuple[str, str] | None, WireForm(read=_read_job, write=_write_job)] = None
    # Whether the current job was suspended together with the application, and is to be resumed with it.
    is_stopped: bool = False
    waiting: str = ""
    # Why the current revision failed.
    message: str = ""
    # URL of the TensorBoard of all revisions.
    url: str = ""
    # The last revisions, newest first, in wire form.
    history: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStatus(WireObject):
    """The result of one revision."""

    phase: Annotated[AppPhase, phase_or(AppPhase.PENDING)] = AppPhase.PENDING
    start_time: datetime | None = None
    completion_time: datetime | None = None
    commit: str = ""
    # Why it failed.
    message: str = ""
    # The last value of each metric that the trainer logged; None until the logs have been read.
    metrics: Mapping[str, str] | None = None
    # Whether its job has been created.
    is_made: bool = False
    # The cluster spec that its members received.
    cluster: Annotated[str, WireForm(key="clusterSpec")] = ""
