"""Why a job waits and what failed, in words for the job itself."""

from dataclasses import dataclass

from paceline.model.job_status import Failure, ReplicaPhase
from paceline.plan.job.attempts import DELETED_REASON, Try

# A container that waits only because it is being made tells nobody anything.
ORDINARY = frozenset({"", "ContainerCreating", "PodInitializing"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A reason in one word, and a sentence."""

    reason: str
    text: str


def why_waiting(replicas: tuple[Try, ...]) -> Waiting | None:
    """Find what the first pod that waits and says why says; None when none does."""
    stuck = [(replica, *_said(replica)) for replica in replicas if replica.phase is ReplicaPhase.PENDING]
    telling = [(replica, reason, message) for replica, reason, message in stuck if reason not in ORDINARY]
    if not telling:
        return None
    first, reason, message = telling[0]
    others = f" (and {len(telling) - 1} more)" if len(telling) > 1 else ""
    return Waiting(reason=reason, text=f"pod {first.name}{others}: {message or reason}")


def failure_of(replica: Try, advice: str = "") -> Failure:
    """Write down which pod failed, and how; with what to do about it, if somebody knows."""
    reason, message = replica.why
    return Failure(
        pod=replica.name,
        exit_code=replica.exit_code,
        reason=reason,
        message="; ".join(part for part in (message, advice) if part),
        replica=str(replica.place),
        container=replica.container,
    )


def say_failure(failure: Failure) -> str:
    """Describe a failure in one sentence."""
    if failure.reason == DELETED_REASON:
        return f"pod {failure.pod} was deleted before it ended"
    how = "" if failure.exit_code is None else f" with exit code {failure.exit_code}"
    # Every container that fails has Error for a reason, which says less than its exit code.
    reason = "" if failure.reason == "Error" and failure.exit_code is not None else failure.reason
    details = ": ".join(part for part in (reason, failure.message) if part)
    return f"pod {failure.pod} failed{how}{': ' + details if details else ''}"


def _said(replica: Try) -> tuple[str, str]:
    if replica.reason not in ORDINARY:
        return replica.reason, replica.message
    waiting = [
        container
        for container in replica.containers
        if container.state == "Waiting" and container.reason not in ORDINARY
    ]
    return (waiting[0].reason, waiting[0].message) if waiting else ("", "")
