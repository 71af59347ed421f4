"""T9k's conditions of a job, and the parts of its status that belong to them."""

from datetime import datetime

from paceline.apimachinery.timestamps import to_wire
from paceline.model import reasons
from paceline.model.gang import Gang
from paceline.model.job_status import ConditionType, JobStatus, Phase
from paceline.model.replica_record import ReplicaPhase
from paceline.plan.job.attempts import ReplicaAttempt, is_up
from paceline.plan.job.diagnosis import Waiting, describe_failure, diagnosed_failure, why_waiting
from paceline.plan.job.restart_policy import failed_first
from paceline.plan.job.snapshot import PodSnapshot

INITIALIZED, RUNNING = ConditionType.INITIALIZED, ConditionType.RUNNING
REPLICA_FAILURE, PAUSED = ConditionType.REPLICA_FAILURE, ConditionType.PAUSED
COMPLETED, FAILED = ConditionType.COMPLETED, ConditionType.FAILED
SUSPENDED = ConditionType.SUSPENDED


def refused(status: JobStatus, message: str, now: datetime) -> JobStatus:
    """Return the status of an invalid job: nothing happens until its author changes it."""
    return status.put(INITIALIZED, now, holds=False, reason=reasons.INVALID, message=message).but(waiting=message)


def hindered(status: JobStatus, message: str, now: datetime) -> JobStatus:
    """Return the status of a job whose objects the cluster rejects; a retry may succeed."""
    if not status.is_true(INITIALIZED):
        status = status.put(INITIALIZED, now, holds=False, reason=reasons.REFUSED, message=message)
    return status.but(waiting=message)


def under_way(status: JobStatus, replicas: tuple[ReplicaAttempt, ...], now: datetime) -> JobStatus:
    """Set Initialized and Completed; once all pods were created, Initialized stays true."""
    created = sum(replica.phase is not ReplicaPhase.CREATING for replica in replicas)
    if created == len(replicas) or status.is_true(INITIALIZED):
        status = status.put(INITIALIZED, now, holds=True, message="all pods exist")
    else:
        message = f"{created} of {len(replicas)} pods exist"
        status = status.put(INITIALIZED, now, holds=False, message=message)
    unfinished = "the job has not ended"
    return status.put(COMPLETED, now, holds=False, reason=reasons.NOT_FINISHED, message=unfinished)


def ended(status: JobStatus, phase: Phase, now: datetime, *, reason: str, message: str) -> JobStatus:
    """Set every condition that shows how the job ended."""
    has_failed = phase is Phase.FAILED
    truths = {RUNNING: False, COMPLETED: True, FAILED: has_failed}
    for kind, truth in truths.items():
        condition_reason = reason if kind is FAILED else phase.value
        status = status.put(kind, now, holds=truth, reason=condition_reason, message=message)
    if not has_failed:
        status = status.put(INITIALIZED, now, holds=True, message="all pods exist")
        status = status.put(REPLICA_FAILURE, now, holds=False)
    return status


def with_start_time(status: JobStatus, replicas: tuple[ReplicaAttempt, ...], now: datetime) -> JobStatus:
    """Set the start time once the first pod runs."""
    has_started = any(replica.has_started for replica in replicas)
    return status.but(start_time=now) if has_started and status.start_time is None else status


def with_failure(
    gang: Gang,
    status: JobStatus,
    replicas: tuple[ReplicaAttempt, ...],
    now: datetime,
    *,
    cause: ReplicaAttempt | None = None,
) -> JobStatus:
    """Record the failed replica: the cause, else the recorded one, else the first; cleared once all run."""
    failed = failed_first(replicas)
    if not failed:
        if all(replica.has_started for replica in replicas) or status.condition(REPLICA_FAILURE) is None:
            return status.put(REPLICA_FAILURE, now, holds=False)
        return status
    failure = status.failure
    is_recorded = failure is not None and failure.pod in {replica.name for replica in failed}
    culprit = cause if cause is not None else None if is_recorded else failed[0]
    if failure is None or (culprit is not None and failure.pod != culprit.name):
        failure = diagnosed_failure(gang, status, culprit or failed[0])
    message = describe_failure(failure)
    status = status.put(REPLICA_FAILURE, now, holds=True, reason=reasons.ERROR_IN_POD, message=message)
    return status.but(failure=failure)


def with_progress(
    gang: Gang,
    status: JobStatus,
    replicas: tuple[ReplicaAttempt, ...],
    now: datetime,
    *,
    old: tuple[PodSnapshot, ...] = (),
) -> JobStatus:
    """Set phase, waiting and the conditions of an unfinished job; `old` are running pods of earlier attempts."""
    status = under_way(status, replicas, now)
    if is_up(gang, replicas):
        status = status.but(phase=Phase.RUNNING, running_time=status.running_time or now)
    if all(replica.has_started for replica in replicas):
        failed = sum(replica.has_failed for replica in replicas)
        message = f"{len(replicas) - failed} of {len(replicas)} pods run" if failed else "all pods run"
        status = status.but(disruption={})
        return status.put(RUNNING, now, holds=True, message=message)
    waiting = _why_waiting(status, replicas, old)
    is_running = status.phase is Phase.RUNNING
    reason = waiting.reason if waiting else reasons.NONE
    message = waiting.text if waiting else "pods are starting"
    return status.put(RUNNING, now, holds=is_running, reason=reason, message=message).but(
        phase=status.phase if is_running or status.phase is Phase.RESUMING else Phase.PENDING,
        waiting=waiting.text if waiting else "",
    )


def _why_waiting(
    status: JobStatus, replicas: tuple[ReplicaAttempt, ...], old: tuple[PodSnapshot, ...]
) -> Waiting | None:
    if status.start_after is not None:
        cause = f" after {describe_failure(status.failure)}" if status.failure else ""
        text = f"restart {status.backoff_count} comes at {to_wire(status.start_after)}{cause}"
        return Waiting(reason=reasons.RESTARTING, text=text)
    if old:
        pods = "1 pod of an earlier attempt has" if len(old) == 1 else f"{len(old)} pods of an earlier attempt have"
        waiting: Waiting | None = Waiting(reason=reasons.RESTARTING, text=f"{pods} not ended yet")
    else:
        waiting = why_waiting(replicas)
    if not status.disruption:
        return waiting
    explanation = f"; {waiting.text}" if waiting else ""
    reason = waiting.reason if waiting else disruption_reason(status.disruption.get("reason", ""))
    return Waiting(reason=reason, text=f"{status.disruption.get('message', '')}{explanation}")


def disruption_reason(reason: str) -> str:
    """Return the reason of events and conditions about a disruption, given that of the pod's condition."""
    named = {reasons.PREEMPTION_BY_SCHEDULER: reasons.PREEMPTED, reasons.NODE_LOST: reasons.NODE_LOST}
    return named.get(reason, reasons.DISRUPTED)
