"""Errands: pods that do one thing for the whole job, tried again by themselves until it is done."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paceline.model.gang import FLUSH, Gang
from paceline.model.job_status import JobStatus
from paceline.plan.job.plan import AuxiliaryPod
from paceline.plan.job.restart_policy import pause_after
from paceline.plan.job.view import ErrandSeen, JobView, PodPhase

RESOLVE = "resolve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far an errand is: to be made, on its way, done, or failed and to be tried again at a moment."""

    make: AuxiliaryPod | None = None
    done: ErrandSeen | None = None
    failed: ErrandSeen | None = None
    again_at: datetime | None = None


def step_of(view: JobView, status: JobStatus, name: str, now: datetime) -> Step:
    """Look at the current try of an errand."""
    attempt = status.errands.get(name, 0)
    pod = next(
        (auxiliary for auxiliary in view.errands if auxiliary.name == name and auxiliary.attempt == attempt), None
    )
    if pod is None:
        return Step(make=AuxiliaryPod(name=name, attempt=attempt))
    if pod.phase is PodPhase.SUCCEEDED:
        return Step(done=pod)
    if pod.phase is PodPhase.FAILED:
        return Step(failed=pod, again_at=(pod.finished_at or now) + pause_after(attempt + 1))
    return Step()


def counted(status: JobStatus, name: str) -> JobStatus:
    """Count one more try of an errand; it is made in the pass after this one."""
    return status.but(errands={**status.errands, name: status.errands.get(name, 0) + 1})


def template_of(gang: Gang, name: str) -> Mapping[str, Any]:
    """Find the pod that an errand is done by; KeyError when the gang has no such errand."""
    members = (*gang.members, *gang.left)
    flushes = {f"{FLUSH}{member.place}": member.keeping.flush for member in members if member.keeping is not None}
    template = {RESOLVE: gang.resolve, **flushes}[name]
    if template is None:
        raise KeyError(name)
    return template
