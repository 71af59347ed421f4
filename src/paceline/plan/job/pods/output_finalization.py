"""A job is over when its results are safe: its outcome is written down first, what is left is copied, then it is said.

A member's sidecar copies while the member's pod lives, and for the last time when its command has ended. Where that was
cut short, a pod of its own copies the rest from the claim that the output lies on.
"""

from dataclasses import dataclass
from datetime import datetime

from paceline.apimachinery.timestamps import from_wire, to_wire, to_wire_micro
from paceline.model.gang import FLUSH, CleanUp, Member, ReplicaId
from paceline.model.job_status import JobStatus, Phase, ReplicaPhase
from paceline.plan.job.attempts import Try, tries_of
from paceline.plan.job.cleanup import clean_up
from paceline.plan.job.deadline import OVER
from paceline.plan.job.plan import AuxiliaryPod, EventDraft, Plan
from paceline.plan.job.pods.auxiliary_pods import counted, step_of
from paceline.plan.job.report.conditions import ended
from paceline.plan.job.report.replica_statuses import with_tasks
from paceline.plan.job.view import JobView

KEEPING = "KeepingOutput"
LOST = "OutputIncomplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class _PendingUploads:
    """What is between a job and its end: copies that others make, copies to be begun, and what nobody can copy."""

    waits: tuple[str, ...] = ()
    make: tuple[AuxiliaryPod, ...] = ()
    count: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    wake_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Return whether nothing is left to be waited for."""
        return not self.waits and not self.make and not self.count


def defer_completion(view: JobView, plan: Plan, now: datetime) -> Plan:
    """Let a job end only if its results are safe; else write down how it ended, and go on until they are."""
    is_ending = plan.status.phase.is_final and not view.status.phase.is_final
    if not is_ending or not any(member.keeping for member in view.gang.members):
        return plan
    outcome = plan.tell[-1]
    ending = {
        "phase": plan.status.phase.value,
        "reason": outcome.reason,
        "message": outcome.message,
        "time": to_wire_micro(now),
    }
    pending = _rest(view, plan.status.but(ending=ending), now)
    if pending.is_over and not pending.lost:
        return plan
    deferred = plan.status.but(
        phase=view.status.phase, conditions=view.status.conditions, completion_time=None, ending=ending
    )
    event = EventDraft(reason=KEEPING, message=f"{outcome.message}; the output is being copied")
    wakes = [moment for moment in (plan.wake_at, now) if moment is not None]
    return Plan(
        status=deferred.but(waiting=event.message),
        delete=plan.delete,
        tell=(*plan.tell[:-1], event),
        # What is to be made is made in the next pass, once the outcome is on record.
        wake_at=min(wakes),
    )


def finalize_output(view: JobView, now: datetime) -> Plan:
    """Bring what is left to where it is kept, and then say how the job ended."""
    replicas = tries_of(view)
    ending = view.status.ending
    phase, message = Phase(ending["phase"]), ending["message"]
    status = with_tasks(view.status.but(observed_generation=view.generation), replicas)
    pending = _rest(view, status, now)
    lost = f"; the output of {', '.join(pending.lost)} may be incomplete" if pending.lost else ""
    final = ended(status, phase, now, reason=ending["reason"], message=f"{message}{lost}")
    final = final.but(phase=phase, start_after=None, waiting="", ending={}, completion_time=from_wire(ending["time"]))
    cleaned = clean_up(view, replicas, final, now)
    if pending.is_over:
        event = EventDraft(
            reason=ending["reason"], message=f"{message}{lost}", is_warning=phase is Phase.FAILED or bool(lost)
        )
        over = final.but(completion_time=now, left=())
        return Plan(status=over, delete=cleaned.delete, tell=(event,), wake_at=now if cleaned.wake_at else None)
    for name in pending.count:
        status = counted(status, name)
    waiting = f"{message}; {'; '.join(pending.waits) or 'its output is being copied'}"
    wakes = [moment for moment in (cleaned.wake_at, pending.wake_at) if moment is not None]
    return Plan(
        status=status.but(waiting=waiting),
        delete=cleaned.delete,
        errands=pending.make,
        wake_at=min(wakes, default=None),
    )


def _rest(view: JobView, status: JobStatus, now: datetime) -> _PendingUploads:
    members = {member.place: member for member in view.gang.members if member.keeping is not None}
    pending = _PendingUploads()
    for replica in tries_of(view, status):
        if replica.place in members and not _is_kept(members[replica.place], replica):
            pending = _with(pending, _rest_of(view, status, members[replica.place], replica=replica, now=now))
    for place in status.left:
        pending = _with(pending, _rest_at(view, status, place, now))
    return pending


def _rest_at(view: JobView, status: JobStatus, place: ReplicaId, now: datetime) -> _PendingUploads:
    """Return the pending uploads of a replica that was scaled down."""
    if leaving := next((pod for pod in view.pods if pod.place == place and not pod.phase.is_final), None):
        return _PendingUploads(waits=(f"pod {leaving.name} copies its output",))
    member = next((member for member in view.gang.left if member.place == place), None)
    if member is None:
        # It left in this very pass; the next one knows how its output is copied.
        return _PendingUploads(waits=(f"the output of {place} is being copied",), wake_at=now)
    return _copy(view, status, member, now)


def _rest_of(view: JobView, status: JobStatus, member: Member, *, replica: Try, now: datetime) -> _PendingUploads:
    if replica.phase in (ReplicaPhase.PENDING, ReplicaPhase.RUNNING, ReplicaPhase.UNKNOWN):
        return (
            _PendingUploads(waits=(f"pod {replica.name} copies its output",))
            if _goes(view, status)
            else _PendingUploads()
        )
    if not replica.attempt and not _has_begun(member, replica):
        return _PendingUploads()
    return _copy(view, status, member, now)


def _copy(view: JobView, status: JobStatus, member: Member, now: datetime) -> _PendingUploads:
    """Have a pod of its own copy what a member's sidecar did not, if anything outlives the member's pod."""
    place = str(member.place)
    if member.keeping is None or member.keeping.flush is None:
        return _PendingUploads(lost=(place,))
    name = f"{FLUSH}{place}"
    step = step_of(view, status, name, now)
    if step.make is not None:
        return _PendingUploads(make=(step.make,))
    if step.failed is None or step.again_at is None:
        return _PendingUploads(waits=(f"the output of {place} is being copied",))
    if now >= step.again_at:
        return _PendingUploads(count=(name,), wake_at=now)
    message = (
        f"the output of {place} is not safe yet: {step.failed.message}; the next try is at {to_wire(step.again_at)}"
    )
    return _PendingUploads(waits=(message,), wake_at=step.again_at)


def _is_kept(member: Member, replica: Try) -> bool:
    """Return whether a member's own sidecar has copied everything."""
    name = member.keeping.container if member.keeping is not None else ""
    return any(stage.name == name and stage.exit_code == 0 for stage in replica.stages)


def _has_begun(member: Member, replica: Try) -> bool:
    """Return whether there may be output: not when a pod ended before its command, or never was."""
    if replica.phase is ReplicaPhase.CREATING:
        return False
    name = member.keeping.container if member.keeping is not None else ""
    is_waiting = any(stage.name == name and stage.state == "Waiting" for stage in replica.stages)
    return replica.phase is ReplicaPhase.DELETED or not is_waiting


def _goes(view: JobView, status: JobStatus) -> bool:
    """Return whether pods that still run are ended with the job, so that their last copy is to be waited for."""
    reason = status.ending.get("reason", "")
    return view.gang.clean_up is not CleanUp.NONE or reason in OVER


def _with(pending: _PendingUploads, other: _PendingUploads) -> _PendingUploads:
    moments = [moment for moment in (pending.wake_at, other.wake_at) if moment is not None]
    return _PendingUploads(
        waits=(*pending.waits, *other.waits),
        make=(*pending.make, *other.make),
        count=(*pending.count, *other.count),
        lost=(*pending.lost, *other.lost),
        wake_at=min(moments, default=None),
    )
