"""The status of an application and of a job record, as typed values and in wire form."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from paceline.apimachinery.timestamps import from_wire, to_wire
from paceline.apimachinery.untrusted import untrusted


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AppStatus:
    """The state of an application between two reconciliations."""

    phase: AppPhase = AppPhase.PENDING
    observed_generation: int = 0
    # The current revision, its start time, and its job: kind and name.
    revision: int = 0
    updated: datetime | None = None
    job: tuple[str, str] | None = None
    # Whether the current job was suspended together with the application, and is to be resumed with it.
    is_stopped: bool = False
    waiting: str = ""
    # Why the current revision failed.
    message: str = ""
    # URL of the TensorBoard of all revisions.
    url: str = ""
    # The last revisions, newest first, in wire form.
    history: tuple[Mapping[str, Any], ...] = ()

    def but(self, **changes: Any) -> Self:
        """Return a copy of the status with some fields changed."""
        return replace(self, **changes)

    def to_wire(self) -> dict[str, Any]:
        """Return the wire form; empty fields are omitted, so that a reader can test for their presence."""
        optional: dict[str, Any] = {
            "revision": self.revision,
            "updated": self.updated and to_wire(self.updated),
            "job": {"kind": self.job[0], "name": self.job[1]} if self.job else None,
            "stopped": self.is_stopped,
            "waiting": self.waiting,
            "message": self.message,
            "url": self.url,
            "history": [dict(revision) for revision in self.history],
        }
        filled = {key: value for key, value in optional.items() if value}
        return {"phase": self.phase.value, "observedGeneration": self.observed_generation, **filled}

    @classmethod
    @untrusted
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Return the decoded status; an application without one gets the initial status."""
        job = wire.get("job") or {}
        return cls(
            phase=_phase(wire),
            observed_generation=int(wire.get("observedGeneration") or 0),
            revision=int(wire.get("revision") or 0),
            updated=_moment(wire, "updated"),
            job=(str(job.get("kind") or ""), str(job["name"])) if job.get("name") else None,
            is_stopped=bool(wire.get("stopped")),
            waiting=str(wire.get("waiting") or ""),
            message=str(wire.get("message") or ""),
            url=str(wire.get("url") or ""),
            history=tuple(dict(revision) for revision in wire.get("history") or ()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStatus:
    """The result of one revision."""

    phase: AppPhase = AppPhase.PENDING
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
    cluster: str = ""

    def but(self, **changes: Any) -> Self:
        """Return a copy of the status with some fields changed."""
        return replace(self, **changes)

    def to_wire(self) -> dict[str, Any]:
        """Return the wire form without empty fields."""
        optional: dict[str, Any] = {
            "startTime": self.start_time and to_wire(self.start_time),
            "completionTime": self.completion_time and to_wire(self.completion_time),
            "commit": self.commit,
            "message": self.message,
            "made": self.is_made,
            "clusterSpec": self.cluster,
        }
        filled = {key: value for key, value in optional.items() if value}
        if self.metrics is not None:
            filled["metrics"] = dict(self.metrics)
        return {"phase": self.phase.value, **filled}

    @classmethod
    @untrusted
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Return the decoded status."""
        return cls(
            phase=_phase(wire),
            start_time=_moment(wire, "startTime"),
            completion_time=_moment(wire, "completionTime"),
            commit=str(wire.get("commit") or ""),
            message=str(wire.get("message") or ""),
            metrics={str(name): str(text) for name, text in wire["metrics"].items()} if "metrics" in wire else None,
            is_made=bool(wire.get("made")),
            cluster=str(wire.get("clusterSpec") or ""),
        )


_PHASES = frozenset(phase.value for phase in AppPhase)


def _phase(wire: Mapping[str, Any]) -> AppPhase:
    phase = wire.get("phase")
    return AppPhase(phase) if phase in _PHASES else AppPhase.PENDING


def _moment(wire: Mapping[str, Any], key: str) -> datetime | None:
    return from_wire(wire[key]) if wire.get(key) else None
