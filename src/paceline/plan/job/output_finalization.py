"""A job ends when its output is uploaded: its result is recorded first, the remaining files are uploaded, then it ends.

A member's sidecar uploads while the member's pod runs, and for the last time after its command. If that was cut short,
an auxiliary pod uploads the remaining files from the claim that holds the output.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from paceline.apimachinery.timestamps import from_wire, to_wire, to_wire_micro
from paceline.model import reasons
from paceline.model.gang import FLUSH, CleanUp, Member, ReplicaId
from paceline.model.job_status import JobStatus, Phase
from paceline.model.replica_record import ReplicaPhase
from paceline.plan.job.attempts import ReplicaAttempt, current_attempts
from paceline.plan.job.auxiliary_pods import progress_of, with_next_attempt
from paceline.plan.job.cleanup import TIMED_OUT, clean_up
from paceline.plan.job.conditions import ended
from paceline.plan.job.plan import AuxiliaryPod, EventDraft, Plan, earliest
from paceline.plan.job.reporting import with_tasks
from paceline.plan.job.view import JobView


@dataclass(frozen=True, slots=True, kw_only=True)
class _PendingUploads:
    """Uploads that run, uploads to start or start again, and output that cannot be uploaded."""

    waits: tuple[str, ...] = ()
    create: tuple[AuxiliaryPod, ...] = ()
    again: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    wake_at: datetime | None = None

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to wait for."""
        return not self.waits and not self.create and not self.again

    def plus(self, other: "_PendingUploads") -> "_PendingUploads":
        """Return both."""
        return _PendingUploads(
            waits=(*self.waits, *other.waits),
            create=(*self.create, *other.create),
            again=(*self.again, *other.again),
            lost=(*self.lost, *other.lost),
            wake_at=earliest(self.wake_at, other.wake_at),
        )


def defer_completion(view: JobView, plan: Plan, now: datetime) -> Plan:
    """Let a job end only if its output is uploaded; otherwise record its result and let it continue until then."""
    is_ending = plan.status.phase.is_final and not view.status.phase.is_final and not view.status.ending
    if not is_ending or not any(member.keeping for member in view.gang.members):
        return plan
    outcome = plan.events[-1]
    ending = {
        "phase": plan.status.phase.value,
        "reason": outcome.reason,
        "message": outcome.message,
        "time": to_wire_micro(now),
    }
    pending = _pending_uploads(view, plan.status.but(ending=ending), now)
    if pending.is_done and not pending.lost:
        return plan
    event = EventDraft(reason=reasons.KEEPING_OUTPUT, message=f"{outcome.message}; the output is being uploaded")
    status = plan.status.but(
        phase=view.status.phase,
        conditions=view.status.conditions,
        completion_time=None,
        ending=ending,
        waiting=event.message,
    )
    # The next reconciliation creates pods, once the result is recorded.
    return Plan(status=status, delete=plan.delete, events=(*plan.events[:-1], event), wake_at=now)


def finalize_output(view: JobView, now: datetime) -> Plan | None:
    """Upload the remaining output of a job whose result is recorded, and then end it."""
    ending = view.status.ending
    if not ending:
        return None
    phase, message = Phase(ending["phase"]), ending["message"]
    status = with_tasks(view.status, view.replicas)
    pending = _pending_uploads(view, status, now)
    lost = f"; the output of {', '.join(pending.lost)} may be incomplete" if pending.lost else ""
    final = ended(status, phase, now, reason=ending["reason"], message=f"{message}{lost}")
    final = final.but(phase=phase, start_after=None, waiting="", ending={}, completion_time=from_wire(ending["time"]))
    cleaned = clean_up(view, final, now)
    if pending.is_done:
        event = EventDraft(
            reason=ending["reason"], message=f"{message}{lost}", is_warning=phase is Phase.FAILED or bool(lost)
        )
        records = tuple(replace(record, has_output=False) for record in final.replicas)
        final = final.but(completion_time=now, replicas=records)
        return Plan(status=final, delete=cleaned.delete, events=(event,), wake_at=now if cleaned.wake_at else None)
    for name in pending.again:
        status = with_next_attempt(status, name)
    waiting = f"{message}; {'; '.join(pending.waits) or 'its output is being uploaded'}"
    return Plan(
        status=status.but(waiting=waiting),
        delete=cleaned.delete,
        auxiliary_pods=pending.create,
        wake_at=earliest(cleaned.wake_at, pending.wake_at),
    )


def _pending_uploads(view: JobView, status: JobStatus, now: datetime) -> _PendingUploads:
    members = {member.place: member for member in view.gang.members if member.keeping is not None}
    pending = _PendingUploads()
    for replica in current_attempts(view, status):
        if replica.place in members and not _is_uploaded(members[replica.place], replica):
            pending = pending.plus(_of_member(view, status, members[replica.place], replica=replica, now=now))
    for place in status.scaled_down:
        pending = pending.plus(_of_scaled_down(view, status, place, now))
    return pending


def _of_scaled_down(view: JobView, status: JobStatus, place: ReplicaId, now: datetime) -> _PendingUploads:
    """Return the pending uploads of a replica that was scaled down."""
    if ending := next((pod for pod in view.pods if pod.place == place and not pod.phase.is_final), None):
        return _PendingUploads(waits=(f"pod {ending.name} uploads its output",))
    member = next((member for member in view.gang.scaled_down if member.place == place), None)
    if member is None:
        # It was removed in this reconciliation; the next one knows its template.
        return _PendingUploads(waits=(f"the output of {place} is being uploaded",), wake_at=now)
    return _flush(view, status, member, now)


def _of_member(
    view: JobView, status: JobStatus, member: Member, *, replica: ReplicaAttempt, now: datetime
) -> _PendingUploads:
    if replica.phase in (ReplicaPhase.PENDING, ReplicaPhase.RUNNING, ReplicaPhase.UNKNOWN):
        is_waiting = _stops_pods(view, status)
        return _PendingUploads(waits=(f"pod {replica.name} uploads its output",) if is_waiting else ())
    if not replica.attempt and not _has_begun(member, replica):
        return _PendingUploads()
    return _flush(view, status, member, now)


def _flush(view: JobView, status: JobStatus, member: Member, now: datetime) -> _PendingUploads:
    """Upload with an auxiliary pod what a member's sidecar did not, if the files outlive the member's pod."""
    place = str(member.place)
    if member.keeping is None or member.keeping.flush is None:
        return _PendingUploads(lost=(place,))
    name = f"{FLUSH}{place}"
    progress = progress_of(view, status, name, now)
    if progress.create is not None:
        return _PendingUploads(create=(progress.create,))
    if progress.failed is None or progress.again_at is None:
        reason = f": {progress.waiting.text}" if progress.waiting else ""
        return _PendingUploads(waits=(f"the output of {place} is being uploaded{reason}",))
    if now >= progress.again_at:
        return _PendingUploads(again=(name,), wake_at=now)
    message = (
        f"the output of {place} is not uploaded yet: {progress.failed.message}; "
        f"the next attempt is at {to_wire(progress.again_at)}"
    )
    return _PendingUploads(waits=(message,), wake_at=progress.again_at)


def _is_uploaded(member: Member, replica: ReplicaAttempt) -> bool:
    """Return whether a member's own sidecar has uploaded everything."""
    name = member.keeping.container if member.keeping is not None else ""
    return any(stage.name == name and stage.exit_code == 0 for stage in replica.stages)


def _has_begun(member: Member, replica: ReplicaAttempt) -> bool:
    """Return whether there may be output: not if the pod never existed or ended before its command started."""
    if replica.phase is ReplicaPhase.CREATING:
        return False
    name = member.keeping.container if member.keeping is not None else ""
    is_waiting = any(stage.name == name and stage.state == "Waiting" for stage in replica.stages)
    return replica.phase is ReplicaPhase.DELETED or not is_waiting


def _stops_pods(view: JobView, status: JobStatus) -> bool:
    """Return whether running pods are deleted with the job, so that their last upload is to be awaited."""
    return view.gang.clean_up is not CleanUp.NONE or status.ending.get("reason", "") in TIMED_OUT
