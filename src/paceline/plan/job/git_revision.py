"""One commit for all members: it is found out before any of them is made, and written down."""

from dataclasses import dataclass
from datetime import datetime

from paceline.apimachinery.commit import COMMIT
from paceline.model.job_status import JobStatus
from paceline.plan.job.plan import EventDraft, Plan
from paceline.plan.job.pods.auxiliary_pods import RESOLVE, counted, step_of
from paceline.plan.job.view import JobView

NOT_FOUND = "SourceNotFound"
LOOKING = "the commit of the code is being looked up"
TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionNotFound:
    """That there is no such code, in the words of git."""

    message: str


def resolve(view: JobView, status: JobStatus, now: datetime) -> Plan | RevisionNotFound | None:
    """Resolve the commit for all replicas; None when it is known, or none is needed."""
    if view.gang.resolve is None:
        return None
    step = step_of(view, status, RESOLVE, now)
    waiting = status.but(waiting=LOOKING)
    if step.make is not None:
        return Plan(status=waiting, errands=(step.make,))
    if step.done is not None:
        commit = step.done.message.strip()
        if not COMMIT.fullmatch(commit):
            return RevisionNotFound(message=f"pod {step.done.pod} found no commit: {commit or 'it said nothing'}")
        resolved = status.but(source={"commit": commit}, waiting="")
        event = EventDraft(reason="SourceResolved", message=f"all members have commit {commit}")
        # The members are made in the next pass, once the commit is on record.
        return Plan(status=resolved, tell=(event,), wake_at=now)
    if step.failed is None or step.again_at is None:
        return Plan(status=waiting)
    if step.failed.attempt + 1 >= TRIES:
        return RevisionNotFound(message=step.failed.message or f"pod {step.failed.pod} failed")
    if now < step.again_at:
        return Plan(status=waiting.but(waiting=f"{LOOKING}: {step.failed.message}"), wake_at=step.again_at)
    return Plan(status=counted(waiting, RESOLVE), wake_at=now)
