"""Metrics of jobs, kept up to date from the changes that informers report."""

import itertools
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.apimachinery.metrics import LONG_SECONDS, Gauge, Histogram, MetricFamily
from paceline.apimachinery.timestamps import from_wire
from paceline.apimachinery.untrusted import untrusted
from paceline.client.informer import Handler
from paceline.client.interface import Change
from paceline.errors import BadRequest
from paceline.model.job_status import ConditionType, Phase

# A job that waits or runs again on request has not recovered from anything.
ON_HOLD = (ConditionType.PAUSED, ConditionType.SUSPENDED)


class JobMetrics:
    """Counts jobs by kind and phase, and how long they take until they run, the first time and again."""

    def __init__(self) -> None:
        self._jobs = Gauge("paceline_jobs", "Jobs by kind and phase.", ("kind", "phase"))
        self.time_to_running = Histogram(
            "paceline_job_time_to_running_seconds",
            "Time from the creation of a job until it first runs.",
            ("kind",),
            buckets=LONG_SECONDS,
        )
        self.recovery = Histogram(
            "paceline_job_recovery_seconds",
            "Time from the failure, preemption or loss of a member until the job runs again.",
            ("kind",),
            buckets=LONG_SECONDS,
        )

    def follow(self, kind: str) -> Handler:
        """Return the handler of an informer of jobs of one kind."""
        for phase in Phase:
            self._jobs.set(kind, phase.value, value=0)

        def changed(_change: Change, old: Object | None, new: Object | None) -> None:
            old_phase, new_phase = old and phase_of(old), new and phase_of(new)
            if old_phase != new_phase:
                if old_phase:
                    self._jobs.add(kind, old_phase, amount=-1)
                if new_phase:
                    self._jobs.add(kind, new_phase)
            if old is not None and new is not None:
                self._observe(kind, old, new)

        return changed

    def _observe(self, kind: str, old: Object, new: Object) -> None:
        try:
            times = until_running(old, new)
        except BadRequest:
            # Another writer changed the status; the reconciler reports it.
            return
        if times is not None:
            since, running, is_first = times
            histogram = self.time_to_running if is_first else self.recovery
            histogram.observe(max((running - since).total_seconds(), 0.0), kind)

    def jobs(self, kind: str, phase: str) -> int:
        """Return the number of jobs of a kind in a phase."""
        return int(self._jobs.get(kind, phase))

    def collect(self) -> Iterator[MetricFamily]:
        """Yield the metrics of jobs."""
        parts = (self._jobs, self.time_to_running, self.recovery)
        return itertools.chain.from_iterable(part.collect() for part in parts)


def phase_of(job: Object) -> str:
    """Return the phase of a job, one of the closed list whatever its status says."""
    status = job.get("status")
    phase = str(status.get("phase") or Phase.PENDING.value) if isinstance(status, dict) else Phase.PENDING.value
    return phase if phase in _PHASES else Phase.UNKNOWN.value


@untrusted
def until_running(old: Object, new: Object) -> tuple[datetime, datetime, bool] | None:
    """Return since when a job that runs now did not run, since when it does, and whether that is the first time.

    None for a job that does not run just now for the first time or again, and for one that was on hold meanwhile.
    """
    old_condition, new_condition = _condition(old, ConditionType.RUNNING), _condition(new, ConditionType.RUNNING)
    if _holds(old_condition) or not _holds(new_condition) or not new_condition:
        return None
    running = from_wire(new_condition["lastTransitionTime"])
    status = new.get("status") or {}
    is_first = not status.get("attempt") and not status.get("resumes") and not status.get("backoffCount")
    began = from_wire(new["metadata"]["creationTimestamp"])
    since = began if is_first or not old_condition else from_wire(old_condition["lastTransitionTime"])
    holds = (condition for kind in ON_HOLD if (condition := _condition(new, kind)))
    if any(from_wire(condition["lastTransitionTime"]) >= since for condition in holds):
        return None
    return since, running, is_first


def _holds(condition: Mapping[str, Any] | None) -> bool:
    return condition is not None and condition.get("status") == "True"


def _condition(job: Object, kind: ConditionType) -> Mapping[str, Any] | None:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == kind), None)


_PHASES = frozenset(phase.value for phase in Phase)
