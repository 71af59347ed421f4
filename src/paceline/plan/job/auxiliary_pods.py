"""Auxiliary pods: they work for the whole job, and are created again until they succeed.

The one that resolves a git revision to a commit runs before any member is created, so that all have the same code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paceline.model import reasons
from paceline.model.gang import COMMIT, FLUSH, RESOLVE, Gang
from paceline.model.job_status import JobStatus
from paceline.plan.job.completion import fail
from paceline.plan.job.conditions import RUNNING
from paceline.plan.job.diagnosis import ORDINARY, Waiting
from paceline.plan.job.plan import AuxiliaryPod, EventDraft, Plan
from paceline.plan.job.restart_policy import backoff_after
from paceline.plan.job.snapshot import AuxiliaryPodSnapshot, JobSnapshot, PodPhase
from paceline.plan.job.view import JobView

RESOLVING = "the git revision is being resolved"
MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of an auxiliary pod: to create, running, done, or failed and to create again at a time."""

    create: AuxiliaryPod | None = None
    done: AuxiliaryPodSnapshot | None = None
    failed: AuxiliaryPodSnapshot | None = None
    again_at: datetime | None = None
    # Why it does not run yet; None if it runs, or is merely starting.
    waiting: Waiting | None = None


def progress_of(view: JobSnapshot, status: JobStatus, name: str, now: datetime) -> Progress:
    """Return the progress of an auxiliary pod's current attempt."""
    attempt = status.errands.get(name, 0)
    matches = (pod for pod in view.auxiliary_pods if pod.name == name and pod.attempt == attempt)
    pod = next(matches, None)
    if pod is None:
        return Progress(create=AuxiliaryPod(name=name, attempt=attempt))
    if pod.phase is PodPhase.SUCCEEDED:
        return Progress(done=pod)
    if pod.phase is PodPhase.FAILED:
        return Progress(failed=pod, again_at=(pod.finished_at or now) + backoff_after(attempt + 1))
    if pod.reason in ORDINARY:
        return Progress()
    return Progress(waiting=Waiting(reason=pod.reason, text=f"pod {pod.pod}: {pod.message or pod.reason}"))


def with_next_attempt(status: JobStatus, name: str) -> JobStatus:
    """Return the status with one more attempt of an auxiliary pod; the next reconciliation creates it."""
    return status.but(errands={**status.errands, name: status.errands.get(name, 0) + 1})


def template_of(gang: Gang, name: str) -> Mapping[str, Any]:
    """Return the template of an auxiliary pod; raise KeyError if the gang has none of this name."""
    members = (*gang.members, *gang.scaled_down)
    flushes = {f"{FLUSH}{member.place}": member.keeping.flush for member in members if member.keeping is not None}
    template = {RESOLVE: gang.resolve, **flushes}[name]
    if template is None:
        raise KeyError(name)
    return template


def resolve_revision(view: JobView, now: datetime) -> Plan | None:
    """Resolve the git revision of a job to a commit, or fail the job if there is none."""
    if view.gang.resolve is None:
        return None
    progress = progress_of(view, view.status, RESOLVE, now)
    waiting = view.status.but(waiting=RESOLVING)
    if progress.create is not None:
        return Plan(status=waiting, auxiliary_pods=(progress.create,))
    if progress.done is not None:
        return _resolved(view, progress.done, now)
    if progress.waiting is not None:
        return _unresolved(view, progress.waiting, now)
    if progress.failed is None or progress.again_at is None:
        return Plan(status=waiting)
    if progress.failed.attempt + 1 >= MAX_ATTEMPTS:
        message = progress.failed.message or f"pod {progress.failed.pod} failed"
        return fail(view, now, reason=reasons.SOURCE_NOT_FOUND, message=message)
    if now < progress.again_at:
        return Plan(status=waiting.but(waiting=f"{RESOLVING}: {progress.failed.message}"), wake_at=progress.again_at)
    return Plan(status=with_next_attempt(waiting, RESOLVE), wake_at=now)


def _unresolved(view: JobView, waiting: Waiting, now: datetime) -> Plan:
    """Say why the pod that resolves the revision does not run: its image, its node, its volumes."""
    text = f"{RESOLVING}: {waiting.text}"
    previous = view.status.condition(RUNNING)
    status = view.status.put(RUNNING, now, holds=False, reason=waiting.reason, message=text).but(waiting=text)
    is_new = previous is None or previous.reason != waiting.reason
    events = (EventDraft(reason=waiting.reason, message=text, is_warning=True),) if is_new else ()
    return Plan(status=status, events=events)


def _resolved(view: JobView, pod: AuxiliaryPodSnapshot, now: datetime) -> Plan:
    commit = pod.message.strip()
    if not COMMIT.fullmatch(commit):
        message = f"pod {pod.pod} reported no commit: {commit or 'it reported nothing'}"
        return fail(view, now, reason=reasons.SOURCE_NOT_FOUND, message=message)
    status = view.status.but(source={"commit": commit}, waiting="")
    event = EventDraft(reason=reasons.SOURCE_RESOLVED, message=f"all replicas use commit {commit}")
    # The next reconciliation creates the members, once the commit is recorded.
    return Plan(status=status, events=(event,), wake_at=now)
