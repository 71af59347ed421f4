"""The decision about one application: which revision is current, which jobs are stopped, created or deleted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from paceline.apimachinery.timestamps import to_wire
from paceline.model import reasons
from paceline.model.app_status import AppPhase, AppStatus, RecordStatus
from paceline.model.job_status import ConditionType, JobStatus, Phase
from paceline.plan.job.plan import EventDraft

# The number of revisions in the status; records hold the others.
HISTORY = 10
# States of replicas that still use what the next revision may need.
ALIVE = ("creating", "pending", "running")
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionJob:
    """The job of one revision."""

    kind: str
    name: str
    uid: str
    revision: int
    status: JobStatus
    # Whether its spec asks for a pause; mostly we set it.
    is_paused: bool = False
    is_deleting: bool = False
    commit: str = ""
    # The cluster spec of its members, once it is known.
    cluster: str = ""

    @property
    def is_quiet(self) -> bool:
        """Whether no replica of it blocks another revision."""
        if self.status.phase.is_final:
            return True
        return self.is_paused and self.status.phase is Phase.PAUSED and not self._alive

    @property
    def _alive(self) -> int:
        return sum(self.status.aggregate.get(state, 0) for state in ALIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One recorded revision."""

    name: str
    revision: int
    digest: str
    job: str
    status: RecordStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSeen:
    """Everything one decision may look at."""

    # The digest of the current spec.
    digest: str
    status: AppStatus
    records: tuple[Recorded, ...] = ()
    jobs: tuple[RevisionJob, ...] = ()
    generation: int = 1
    is_suspended: bool = False
    # How many jobs of earlier revisions are kept.
    keeps: int = HISTORY
    # The URL of the TensorBoard of all revisions.
    url: str = ""
    # The command that trains without GPUs, if there is one.
    without_gpu: str = ""
    # Who asked for the current spec; empty if unknown.
    asked_by: str = ""
    # The last log lines of the trainer by revision, as far as they were read.
    metrics: Mapping[int, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The new content of a record."""

    record: str
    status: RecordStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class AppPlan:
    """Everything one decision may ask for, in the order it is applied: write, delete, create, record events."""

    status: AppStatus
    pause: tuple[RevisionJob, ...] = ()
    resume: tuple[RevisionJob, ...] = ()
    delete: tuple[RevisionJob, ...] = ()
    # Whether to create the record of the current revision, and its job with all it needs.
    makes_record: bool = False
    makes_job: bool = False
    # The job whose cluster spec is published.
    shows: RevisionJob | None = None
    notes: tuple[Note, ...] = ()
    # The revision whose last log lines are to be read.
    read: RevisionJob | None = None
    events: tuple[EventDraft, ...] = ()


def decide(view: AppSeen, now: datetime) -> AppPlan:
    """Return the next step: another spec is another revision, and one revision runs at a time."""
    revision = _revision(view)
    record = next((candidate for candidate in view.records if candidate.revision == revision), None)
    job = next(
        (candidate for candidate in view.jobs if candidate.revision == revision and not candidate.is_deleting), None
    )
    others = tuple(candidate for candidate in view.jobs if candidate.revision != revision)
    makes_job = record is not None and job is None and _may_begin(view, record, others)
    notes = tuple(_notes(view))
    status = _status(view, now, revision=revision, job=job, others=others)
    status = _with_phase(status, view, job=job, record=record)
    given_up = _given_up(view, others)
    return AppPlan(
        status=status.but(history=_history(view, notes)),
        pause=(*_to_pause(others, given_up), *_to_stop(view, job)),
        resume=(job,) if job and _is_let_go(view, job) else (),
        delete=given_up,
        makes_record=record is None,
        makes_job=makes_job,
        shows=job if job and job.cluster and record and record.status.cluster != job.cluster else None,
        notes=notes,
        read=next((candidate for candidate in view.jobs if _is_unread(view, candidate)), None),
        events=_news(view, status),
    )


def _revision(view: AppSeen) -> int:
    """Return the revision of the current spec: the last one if it is the same, else the next."""
    last = max(view.records, key=lambda record: record.revision, default=None)
    if last is None:
        return max(view.status.revision, 1)
    return last.revision if last.digest == view.digest else last.revision + 1


def _may_begin(view: AppSeen, record: Recorded, others: tuple[RevisionJob, ...]) -> bool:
    """Return whether the current job is created now: never twice, and never beside another revision."""
    is_wanted = not record.status.is_made and not view.is_suspended
    return is_wanted and all(job.is_quiet or job.is_deleting for job in others)


def _to_pause(others: tuple[RevisionJob, ...], given_up: tuple[RevisionJob, ...]) -> tuple[RevisionJob, ...]:
    """Return the jobs of earlier revisions that still run."""
    running = (job for job in others if not job.status.phase.is_final and not job.is_paused)
    return tuple(job for job in running if job not in given_up and not job.is_deleting)


def _to_stop(view: AppSeen, job: RevisionJob | None) -> tuple[RevisionJob, ...]:
    if job is None or not view.is_suspended or job.is_paused or job.status.phase.is_final:
        return ()
    return (job,)


def _is_let_go(view: AppSeen, job: RevisionJob) -> bool:
    """Return whether a job is resumed: only one that the application itself has stopped."""
    return view.status.is_stopped and not view.is_suspended and job.is_paused and not job.status.phase.is_final


def _given_up(view: AppSeen, others: tuple[RevisionJob, ...]) -> tuple[RevisionJob, ...]:
    """Return the oldest jobs beyond the history limit, if they are recorded."""
    written = {record.revision: record.status for record in view.records}
    quiet = [job for job in others if job.is_quiet and not job.is_deleting and job.revision in written]
    noted = [job for job in quiet if _noted(view, job, written[job.revision]) == written[job.revision]]
    oldest = sorted(noted, key=lambda job: job.revision)
    return tuple(oldest[: max(len(others) - view.keeps, 0)])


def _notes(view: AppSeen) -> list[Note]:
    """Return the records with what happened to every revision since the last reconciliation."""
    jobs = {job.revision: job for job in view.jobs}
    notes = []
    for record in view.records:
        job = jobs.get(record.revision)
        status = _noted(view, job, record.status) if job is not None else _gone(record.status)
        if status != record.status:
            notes.append(Note(record=record.name, status=status))
    return notes


def _noted(view: AppSeen, job: RevisionJob, previous: RecordStatus) -> RecordStatus:
    return previous.but(
        phase=_phase_of(job),
        is_made=True,
        start_time=job.status.start_time or previous.start_time,
        completion_time=job.status.completion_time,
        commit=job.commit or previous.commit,
        cluster=job.cluster or previous.cluster,
        message=_why_failed(job.status),
        metrics=view.metrics.get(job.revision, previous.metrics),
    )


def _why_failed(status: JobStatus) -> str:
    """Describe in one line why a job failed; empty when it has not."""
    if status.phase is not Phase.FAILED:
        return ""
    condition = status.condition(ConditionType.FAILED)
    failure = status.failure
    if failure is None:
        return condition.message if condition is not None else ""
    code = "" if failure.exit_code is None else f" with exit code {failure.exit_code}"
    return f"{failure.replica or failure.pod} failed{code}: {failure.message or failure.reason}".rstrip(": ")


def _gone(previous: RecordStatus) -> RecordStatus:
    """Return the status of a revision without a job: deleted, unless it never began or had ended."""
    if not previous.is_made or previous.phase.is_final:
        return previous
    return previous.but(phase=AppPhase.DELETED, message="its job was deleted")


def _phase_of(job: RevisionJob) -> AppPhase:
    match job.status.phase:
        case Phase.SUCCEEDED:
            return AppPhase.SUCCEEDED
        case Phase.FAILED:
            return AppPhase.FAILED
        case Phase.PAUSED:
            return AppPhase.STOPPED
        case Phase.RUNNING:
            return AppPhase.RUNNING
    return AppPhase.PENDING


def _is_unread(view: AppSeen, job: RevisionJob) -> bool:
    """Return whether the last log lines of an ended job are still to be read."""
    record = next((candidate for candidate in view.records if candidate.revision == job.revision), None)
    is_known = record is None or record.status.metrics is not None or job.revision in view.metrics
    return job.status.phase.is_final and not is_known


def _status(
    view: AppSeen, now: datetime, *, revision: int, job: RevisionJob | None, others: tuple[RevisionJob, ...]
) -> AppStatus:
    is_new = revision != view.status.revision
    named = (job.kind, job.name) if job is not None else None if is_new else view.status.job
    waiting = ""
    if job is None and not view.is_suspended:
        busy = [job.name for job in others if not job.is_quiet and not job.is_deleting]
        # The reason of a rejection stays until the cluster accepts.
        previous_message = "" if is_new else view.status.waiting
        waiting = f"revision {revision} begins when {', '.join(busy)} has stopped" if busy else previous_message
    elif job is not None:
        waiting = job.status.waiting
        if GPU in waiting and view.without_gpu:
            waiting = f"{waiting}; `{view.without_gpu}` trains without GPUs"
    return view.status.but(
        observed_generation=view.generation,
        revision=revision,
        updated=now if is_new or view.status.updated is None else view.status.updated,
        job=named,
        waiting=waiting,
        url=view.url,
    )


def _with_phase(status: AppStatus, view: AppSeen, *, job: RevisionJob | None, record: Recorded | None) -> AppStatus:
    if job is not None and job.status.phase.is_final:
        return status.but(phase=_phase_of(job), is_stopped=False, waiting="", message=_why_failed(job.status))
    status = status.but(message="")
    # Kept until the job runs again, so that a restarted controller knows why it was paused.
    is_stopped = view.is_suspended or (status.is_stopped and job is not None and job.is_paused)
    if view.is_suspended:
        return status.but(phase=AppPhase.STOPPED, is_stopped=is_stopped, waiting="")
    if job is not None:
        return status.but(phase=_phase_of(job), is_stopped=is_stopped)
    if record is not None and record.status.is_made:
        gone = _gone(record.status)
        message = (
            "its job was deleted; `paceline rerun` runs the same once more" if gone.phase is AppPhase.DELETED else ""
        )
        return status.but(phase=gone.phase, is_stopped=False, waiting=message)
    return status.but(phase=AppPhase.PENDING, is_stopped=False)


def _history(view: AppSeen, notes: tuple[Note, ...]) -> tuple[Mapping[str, Any], ...]:
    noted = {note.record: note.status for note in notes}
    newest = sorted(view.records, key=lambda record: record.revision, reverse=True)[:HISTORY]
    return tuple(_line(record, noted.get(record.name, record.status)) for record in newest)


def _line(record: Recorded, status: RecordStatus) -> dict[str, Any]:
    times = {"startTime": status.start_time, "completionTime": status.completion_time}
    timestamps = {name: to_wire(moment) for name, moment in times.items() if moment is not None}
    return {"revision": record.revision, "job": record.job, "phase": status.phase.value, **timestamps}


def _news(view: AppSeen, status: AppStatus) -> tuple[EventDraft, ...]:
    """Return events for what changed since the last reconcile, each once."""
    previous, by = view.status, f" by {view.asked_by}" if view.asked_by else ""
    if status.revision != previous.revision:
        changed = f"the spec as changed{by}" if by else "the changed spec"
        return (EventDraft(reason=reasons.REVISION, message=f"revision {status.revision} is made of {changed}"),)
    if status.phase is previous.phase:
        return ()
    match status.phase:
        case AppPhase.STOPPED:
            return (
                EventDraft(
                    reason=reasons.STOPPED, message=f"revision {status.revision} is stopped{by}; spec.suspend is true"
                ),
            )
        case AppPhase.SUCCEEDED:
            return (EventDraft(reason=reasons.SUCCEEDED, message=f"revision {status.revision} has succeeded"),)
        case AppPhase.FAILED:
            details = f": {status.message}" if status.message else ""
            return (
                EventDraft(
                    reason=reasons.FAILED, message=f"revision {status.revision} has failed{details}", is_warning=True
                ),
            )
    return ()


def refused(status: AppStatus, reason: str) -> AppStatus:
    """Return the status of an invalid spec; the running revision is not touched."""
    return status.but(waiting=reason)
