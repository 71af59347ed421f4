"""The decision for one application: which revision is current, which jobs are stopped, made or given up."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from paceline.apimachinery.timestamps import to_wire
from paceline.model.app_status import AppPhase, AppStatus, RecordStatus
from paceline.model.job_status import ConditionType, JobStatus, Phase
from paceline.plan.job.plan import EventDraft

# So many revisions are listed in the status; records tell of the others.
HISTORY = 10
# States of replicas that still hold what the next revision may need.
ALIVE = ("creating", "pending", "running")
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionJob:
    """The job of one revision, as it is now."""

    kind: str
    name: str
    uid: str
    revision: int
    status: JobStatus
    # Whether its author, mostly we, wants it paused.
    is_paused: bool = False
    is_deleting: bool = False
    commit: str = ""
    # Who its members are told the others are, once that is known.
    cluster: str = ""

    @property
    def is_quiet(self) -> bool:
        """Tell whether no replica of it is in the way of another revision."""
        if self.status.phase.is_final:
            return True
        return self.is_paused and self.status.phase is Phase.PAUSED and not self._alive

    @property
    def _alive(self) -> int:
        return sum(self.status.aggregate.get(state, 0) for state in ALIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One revision that was written down."""

    name: str
    revision: int
    digest: str
    job: str
    status: RecordStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSeen:
    """Everything one decision may look at."""

    # Tells the spec that is wanted now from others.
    digest: str
    status: AppStatus
    records: tuple[Recorded, ...] = ()
    jobs: tuple[RevisionJob, ...] = ()
    generation: int = 1
    is_suspended: bool = False
    # How many jobs of earlier revisions are kept.
    keeps: int = HISTORY
    # Where the curves of all revisions are shown.
    url: str = ""
    # The command by which it trains without GPUs, if there is one.
    without_gpu: str = ""
    # What the trainer said last, by revision, where somebody has looked.
    metrics: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    def but(self, **changes: Any) -> Self:
        """Give the same with some of it changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is written on a record."""

    record: str
    status: RecordStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class AppPlan:
    """Everything one decision may ask for, in the order it is carried out: write, unmake, make, tell."""

    status: AppStatus
    pause: tuple[RevisionJob, ...] = ()
    resume: tuple[RevisionJob, ...] = ()
    delete: tuple[RevisionJob, ...] = ()
    # Whether the record of the current revision, and its job with all it needs, are made.
    makes_record: bool = False
    makes_job: bool = False
    # The job whose cluster spec is put where people look for it.
    shows: RevisionJob | None = None
    notes: tuple[Note, ...] = ()
    # Whose last words are to be read.
    read: RevisionJob | None = None
    tell: tuple[EventDraft, ...] = ()


def decide(seen: AppSeen, now: datetime) -> AppPlan:
    """Choose the next step: another spec is another revision, and one revision runs at a time."""
    revision = _revision(seen)
    record = next((each for each in seen.records if each.revision == revision), None)
    job = next((each for each in seen.jobs if each.revision == revision and not each.is_deleting), None)
    others = tuple(each for each in seen.jobs if each.revision != revision)
    makes_job = record is not None and job is None and _may_begin(seen, record, others)
    notes = tuple(_notes(seen))
    status = _status(seen, now, revision=revision, job=job, others=others)
    status = _with_phase(status, seen, job=job, record=record)
    given_up = _given_up(seen, others)
    return AppPlan(
        status=status.but(history=_history(seen, notes)),
        pause=(*_to_pause(others, given_up), *_to_stop(seen, job)),
        resume=(job,) if job and _is_let_go(seen, job) else (),
        delete=given_up,
        makes_record=record is None,
        makes_job=makes_job,
        shows=job if job and job.cluster and record and record.status.cluster != job.cluster else None,
        notes=notes,
        read=next((each for each in seen.jobs if _is_unread(seen, each)), None),
        tell=_news(seen, status),
    )


def _revision(seen: AppSeen) -> int:
    """Number the wanted spec: the last revision's if it is the same, else the next."""
    last = max(seen.records, key=lambda each: each.revision, default=None)
    if last is None:
        return max(seen.status.revision, 1)
    return last.revision if last.digest == seen.digest else last.revision + 1


def _may_begin(seen: AppSeen, record: Recorded, others: tuple[RevisionJob, ...]) -> bool:
    """Tell whether the current job is made now: never twice, and never beside another revision."""
    is_wanted = not record.status.is_made and not seen.is_suspended
    return is_wanted and all(each.is_quiet or each.is_deleting for each in others)


def _to_pause(others: tuple[RevisionJob, ...], given_up: tuple[RevisionJob, ...]) -> tuple[RevisionJob, ...]:
    """Give the jobs of earlier revisions that still run."""
    running = (each for each in others if not each.status.phase.is_final and not each.is_paused)
    return tuple(each for each in running if each not in given_up and not each.is_deleting)


def _to_stop(seen: AppSeen, job: RevisionJob | None) -> tuple[RevisionJob, ...]:
    if job is None or not seen.is_suspended or job.is_paused or job.status.phase.is_final:
        return ()
    return (job,)


def _is_let_go(seen: AppSeen, job: RevisionJob) -> bool:
    """Tell whether a job goes on: only one that the application itself has stopped."""
    return seen.status.is_stopped and not seen.is_suspended and job.is_paused and not job.status.phase.is_final


def _given_up(seen: AppSeen, others: tuple[RevisionJob, ...]) -> tuple[RevisionJob, ...]:
    """Give the oldest jobs beyond those that are kept; only such as have been written down."""
    written = {each.revision: each.status for each in seen.records}
    quiet = [each for each in others if each.is_quiet and not each.is_deleting and each.revision in written]
    known = [each for each in quiet if _noted(seen, each, written[each.revision]) == written[each.revision]]
    oldest = sorted(known, key=lambda each: each.revision)
    return tuple(oldest[: max(len(others) - seen.keeps, 0)])


def _notes(seen: AppSeen) -> list[Note]:
    """Write down what became of every revision since the last pass."""
    jobs = {each.revision: each for each in seen.jobs}
    notes = []
    for record in seen.records:
        job = jobs.get(record.revision)
        after = _noted(seen, job, record.status) if job is not None else _gone(record.status)
        if after != record.status:
            notes.append(Note(record=record.name, status=after))
    return notes


def _noted(seen: AppSeen, job: RevisionJob, before: RecordStatus) -> RecordStatus:
    return before.but(
        phase=_phase_of(job),
        is_made=True,
        start_time=job.status.start_time or before.start_time,
        completion_time=job.status.completion_time,
        commit=job.commit or before.commit,
        cluster=job.cluster or before.cluster,
        message=_why_failed(job.status),
        metrics=seen.metrics.get(job.revision, before.metrics),
    )


def _why_failed(status: JobStatus) -> str:
    """Say in a line why a job failed; nothing of one that has not."""
    if status.phase is not Phase.FAILED:
        return ""
    told = status.condition(ConditionType.FAILED)
    failure = status.failure
    if failure is None:
        return told.message if told is not None else ""
    code = "" if failure.exit_code is None else f" with exit code {failure.exit_code}"
    return f"{failure.replica or failure.pod} failed{code}: {failure.message or failure.reason}".rstrip(": ")


def _gone(before: RecordStatus) -> RecordStatus:
    """Say of a revision without a job that it was deleted, unless it never began or had ended."""
    if not before.is_made or before.phase.is_final:
        return before
    return before.but(phase=AppPhase.DELETED, message="its job was deleted")


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


def _is_unread(seen: AppSeen, job: RevisionJob) -> bool:
    """Tell whether the last words of an ended job are still to be read."""
    record = next((each for each in seen.records if each.revision == job.revision), None)
    is_known = record is None or record.status.metrics is not None or job.revision in seen.metrics
    return job.status.phase.is_final and not is_known


def _status(
    seen: AppSeen, now: datetime, *, revision: int, job: RevisionJob | None, others: tuple[RevisionJob, ...]
) -> AppStatus:
    is_new = revision != seen.status.revision
    named = (job.kind, job.name) if job is not None else None if is_new else seen.status.job
    waiting = ""
    if job is None and not seen.is_suspended:
        busy = [each.name for each in others if not each.is_quiet and not each.is_deleting]
        # Why the cluster took none of it stays until it does.
        kept = "" if is_new else seen.status.waiting
        waiting = f"revision {revision} begins when {', '.join(busy)} has stopped" if busy else kept
    elif job is not None:
        waiting = job.status.waiting
        if GPU in waiting and seen.without_gpu:
            waiting = f"{waiting}; `{seen.without_gpu}` trains without GPUs"
    return seen.status.but(
        observed_generation=seen.generation,
        revision=revision,
        updated=now if is_new or seen.status.updated is None else seen.status.updated,
        job=named,
        waiting=waiting,
        url=seen.url,
    )


def _with_phase(status: AppStatus, seen: AppSeen, *, job: RevisionJob | None, record: Recorded | None) -> AppStatus:
    if job is not None and job.status.phase.is_final:
        return status.but(phase=_phase_of(job), is_stopped=False, waiting="", message=_why_failed(job.status))
    status = status.but(message="")
    # Kept until the job is seen to go on: whoever comes back must know why it was paused.
    is_stopped = seen.is_suspended or (status.is_stopped and job is not None and job.is_paused)
    if seen.is_suspended:
        return status.but(phase=AppPhase.STOPPED, is_stopped=is_stopped, waiting="")
    if job is not None:
        return status.but(phase=_phase_of(job), is_stopped=is_stopped)
    if record is not None and record.status.is_made:
        gone = _gone(record.status)
        told = "its job was deleted; `paceline rerun` runs the same once more" if gone.phase is AppPhase.DELETED else ""
        return status.but(phase=gone.phase, is_stopped=False, waiting=told)
    return status.but(phase=AppPhase.PENDING, is_stopped=False)


def _history(seen: AppSeen, notes: tuple[Note, ...]) -> tuple[Mapping[str, Any], ...]:
    noted = {note.record: note.status for note in notes}
    newest = sorted(seen.records, key=lambda each: each.revision, reverse=True)[:HISTORY]
    return tuple(_line(each, noted.get(each.name, each.status)) for each in newest)


def _line(record: Recorded, status: RecordStatus) -> dict[str, Any]:
    times = {"startTime": status.start_time, "completionTime": status.completion_time}
    told = {name: to_wire(moment) for name, moment in times.items() if moment is not None}
    return {"revision": record.revision, "job": record.job, "phase": status.phase.value, **told}


def _news(seen: AppSeen, after: AppStatus) -> tuple[EventDraft, ...]:
    """Tell what has changed since the last pass, each thing once."""
    before = seen.status
    if after.revision != before.revision:
        return (EventDraft(reason="Revision", message=f"revision {after.revision} is made of the changed spec"),)
    if after.phase is before.phase:
        return ()
    match after.phase:
        case AppPhase.STOPPED:
            return (
                EventDraft(reason="Stopped", message=f"revision {after.revision} is stopped; spec.suspend is true"),
            )
        case AppPhase.SUCCEEDED:
            return (EventDraft(reason="Succeeded", message=f"revision {after.revision} has succeeded"),)
        case AppPhase.FAILED:
            why = f": {after.message}" if after.message else ""
            return (EventDraft(reason="Failed", message=f"revision {after.revision} has failed{why}", is_warning=True),)
    return ()


def refused(status: AppStatus, why: str) -> AppStatus:
    """Say that nothing is made of the spec until its author changes it; what runs goes on."""
    return status.but(waiting=why)
