"""Read a job: how far it is, how many members run, and the one sentence that says why it is not further."""

from datetime import datetime, timedelta

from paceline.apimachinery.meta import Object
from paceline.apimachinery.timestamps import from_wire
from paceline.errors import BadRequest
from paceline.model.job_status import ConditionType, JobStatus, Phase
from paceline.sdk.exit_codes import exit_words

# Reasons that say no more than the exit code does.
PLAIN_REASONS = ("", "Error", "-")
# Why a job is not even begun: it breaks a rule of its kind, or nobody here can run it.
REFUSED = "Invalid"


def status_of(job: Object) -> JobStatus:
    """Give the job's status; a job nobody has looked at yet is Pending, and one that nobody can read is Unknown."""
    try:
        return JobStatus.from_wire(job.get("status") or {})
    except BadRequest as error:
        return JobStatus(phase=Phase.UNKNOWN, waiting=str(error))


def phase_of(job: Object) -> Phase:
    """Give the job's phase alone."""
    phase = (job.get("status") or {}).get("phase") or Phase.PENDING
    return Phase(phase) if phase in Phase.__members__.values() else Phase.UNKNOWN


def replica_specs(job: Object) -> tuple[Object, ...]:
    """Give what a job says of its replicas, wherever its kind has it written."""
    spec = job.get("spec") or {}
    return tuple(
        replica for replica in (*(spec.get("replicaSpecs") or ()), spec.get("worker")) if isinstance(replica, dict)
    )


def replicas_of(job: Object) -> tuple[int, int]:
    """Give how many replicas run or have succeeded, and how many there should be."""
    status = job.get("status") or {}
    desired = sum(int(replica.get("replicas", 1)) for replica in replica_specs(job))
    aggregate = status.get("aggregate") or {}
    ready = int(aggregate.get("running") or 0) + int(aggregate.get("succeeded") or 0)
    expected = (status.get("elastic") or {}).get("expectedReplicas")
    if expected is not None:
        return ready, int(expected)
    # A launcher that nobody wrote is one of them too.
    return ready, max(desired, sum(int(count) for count in aggregate.values()))


def reason_of(job: Object) -> str:
    """Say in one line why the job is not running, or why it failed; empty when there is nothing to explain."""
    status = status_of(job)
    if status.phase is Phase.FAILED:
        return _failure(status)
    if status.phase is Phase.SUCCEEDED:
        return ""
    if status.waiting:
        return status.waiting
    replica_failure = status.condition(ConditionType.REPLICA_FAILURE)
    if replica_failure is not None and replica_failure.status:
        return replica_failure.message or replica_failure.reason
    return ""


def created_of(job: Object) -> datetime | None:
    """Give the moment the object was created."""
    text = (job.get("metadata") or {}).get("creationTimestamp")
    return from_wire(text) if text else None


def duration_of(status: JobStatus, now: datetime) -> timedelta | None:
    """Give how long the job has run, pauses left out; None before it began."""
    if status.start_time is None:
        return None
    elapsed = (status.completion_time or now) - status.start_time
    return max(elapsed - timedelta(seconds=status.paused_seconds), timedelta(0))


def is_running(job: Object) -> bool:
    """Tell whether the job has, or will have, processes of its own accord."""
    return phase_of(job) not in (Phase.SUCCEEDED, Phase.FAILED, Phase.PAUSED) and not is_refused(job)


def is_refused(job: Object) -> bool:
    """Tell whether nobody does anything for a job until its author changes it, and nothing of it is left."""
    status = status_of(job)
    initialized = status.condition(ConditionType.INITIALIZED)
    has_pods = any(status.aggregate.get(phase) for phase in ("running", "pending", "unknown"))
    return initialized is not None and not initialized.status and initialized.reason == REFUSED and not has_pods


def _failure(status: JobStatus) -> str:
    """Say what failed: the pod when it was a pod, and else what the job was judged by."""
    failed = status.condition(ConditionType.FAILED)
    message = failed.message if failed and failed.status else ""
    failure = status.failure
    if failure is None or (message and failure.pod not in message):
        return message
    text = f"{failure.pod}: {exit_words(failure.exit_code)}"
    if failure.reason not in PLAIN_REASONS:
        text += f", {failure.reason}"
    return f"{text}: {failure.message}" if failure.message else text
