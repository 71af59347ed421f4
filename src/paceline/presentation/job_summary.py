"""Summaries of a job: phase, ready replicas, and why it is pending or failed."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from paceline.apimachinery import pods
from paceline.apimachinery.meta import Object
from paceline.apimachinery.timestamps import from_wire
from paceline.errors import BadRequest
from paceline.model.job_status import ConditionType, JobStatus, Phase

# Reasons that add nothing to the exit code.
PLAIN_REASONS = ("", "Error", "-")
# Condition reason of a job that was not started: it is invalid, or this cluster cannot run it.
REFUSED = "Invalid"


def status_of(job: Object) -> JobStatus:
    """Return the job's status: Pending if it has none yet, Unknown if it is malformed."""
    try:
        return JobStatus.from_wire(job.get("status") or {})
    except BadRequest as error:
        return JobStatus(phase=Phase.UNKNOWN, waiting=str(error))


def phase_of(job: Object) -> Phase:
    """Return the job's phase."""
    phase = (job.get("status") or {}).get("phase") or Phase.PENDING
    return Phase(phase) if phase in Phase.__members__.values() else Phase.UNKNOWN


def replica_specs(job: Object) -> tuple[Object, ...]:
    """Return the replica specs of a job of any kind."""
    spec = job.get("spec") or {}
    return tuple(
        replica for replica in (*(spec.get("replicaSpecs") or ()), spec.get("worker")) if isinstance(replica, dict)
    )


def replicas_of(job: Object) -> tuple[int, int]:
    """Return how many replicas run or have succeeded, and how many are desired."""
    status = job.get("status") or {}
    desired = sum(int(replica.get("replicas", 1)) for replica in replica_specs(job))
    aggregate = status.get("aggregate") or {}
    ready = int(aggregate.get("running") or 0) + int(aggregate.get("succeeded") or 0)
    expected = (status.get("elastic") or {}).get("expectedReplicas")
    if expected is not None:
        return ready, int(expected)
    # The aggregate also counts a launcher that is not in the spec.
    return ready, max(desired, sum(int(count) for count in aggregate.values()))


def reason_of(job: Object) -> str:
    """Return in one line why the job is not running or why it failed; empty if there is nothing to explain."""
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
    """Return the creation time of an object."""
    text = (job.get("metadata") or {}).get("creationTimestamp")
    return from_wire(text) if text else None


def duration_of(status: JobStatus, now: datetime) -> timedelta | None:
    """Return how long the job has run without pauses; None before it started."""
    if status.start_time is None:
        return None
    elapsed = (status.completion_time or now) - status.start_time
    return max(elapsed - timedelta(seconds=status.paused_seconds), timedelta(0))


def is_running(job: Object) -> bool:
    """Return True if the job has processes, or will have without user action."""
    return phase_of(job) not in (Phase.SUCCEEDED, Phase.FAILED, Phase.PAUSED) and not is_rejected(job)


def is_rejected(job: Object) -> bool:
    """Return True if the job was rejected and waits for a change by its author, without any pods."""
    status = status_of(job)
    initialized = status.condition(ConditionType.INITIALIZED)
    has_pods = any(status.aggregate.get(phase) for phase in ("running", "pending", "unknown"))
    return initialized is not None and not initialized.status and initialized.reason == REFUSED and not has_pods


def _failure(status: JobStatus) -> str:
    """Return what failed: the pod if there is one, else the message of the Failed condition."""
    failed = status.condition(ConditionType.FAILED)
    message = failed.message if failed and failed.status else ""
    failure = status.failure
    if failure is None or (message and failure.pod not in message):
        return message
    text = f"{failure.pod}: {describe_exit_code(failure.exit_code)}"
    if failure.reason not in PLAIN_REASONS:
        text += f", {failure.reason}"
    return f"{text}: {failure.message}" if failure.message else text


SIGNALS = {1: "SIGHUP", 2: "SIGINT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL"}
SIGNALS |= {11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM"}


def describe_exit_code(code: int | None) -> str:
    """Describe an exit code and its signal: `exit code 137 (SIGKILL)`."""
    if code is None:
        return "no exit code"
    name = SIGNALS.get(code - 128) or SIGNALS.get(-code)
    return f"exit code {code} ({name})" if name else f"exit code {code}"


def claims_of(job: Object) -> tuple[tuple[str, str], ...]:
    """Return every claim that a job mounts with its mount path, without duplicates."""
    mounts = []
    for replica in replica_specs(job):
        template = replica.get("template") or {}
        spec = template.get("spec") or {}
        claims = {claim.volume: claim.name for claim in pods.claims_of(template) if not claim.is_ephemeral}
        mounts += [(claims[name], path) for name, path in _mounts(spec.get("containers") or ()) if name in claims]
    return tuple(dict.fromkeys(mounts))


def _mounts(containers: Iterable[Object]) -> list[tuple[str, str]]:
    return [
        (str(mount.get("name")), str(mount.get("mountPath")))
        for container in containers
        for mount in container.get("volumeMounts") or ()
    ]
