"""T9k's conditions: what each one says, and since when."""

from datetime import datetime

from paceline.model.job_status import Condition, ConditionType, JobStatus, Phase

# T9k's reason where there is nothing to explain.
NONE = "-"

INITIALIZED, RUNNING = ConditionType.INITIALIZED, ConditionType.RUNNING
REPLICA_FAILURE, PAUSED = ConditionType.REPLICA_FAILURE, ConditionType.PAUSED
COMPLETED, FAILED = ConditionType.COMPLETED, ConditionType.FAILED
SUSPENDED = ConditionType.SUSPENDED
ORDER = tuple(ConditionType)


def put(status: JobStatus, new: Condition) -> JobStatus:
    """Return the status with one condition replaced; its transition time changes only with its status."""
    old = status.condition(new.type)
    since = old.since if old is not None and old.status is new.status else new.since
    others = [condition for condition in status.conditions if condition.type is not new.type]
    condition = Condition(type=new.type, status=new.status, reason=new.reason, message=new.message, since=since)
    return status.but(conditions=tuple(sorted([*others, condition], key=lambda condition: ORDER.index(condition.type))))


def is_true(status: JobStatus, kind: ConditionType) -> bool:
    """Return whether a condition is there and holds."""
    condition = status.condition(kind)
    return condition is not None and condition.status


def refused(status: JobStatus, message: str, now: datetime) -> JobStatus:
    """Return the status of an invalid job: nothing happens until its author changes it."""
    condition = Condition(type=INITIALIZED, status=False, reason="Invalid", message=message, since=now)
    return put(status, condition).but(waiting=message)


def hindered(status: JobStatus, message: str, now: datetime) -> JobStatus:
    """Return the status of a job whose objects the cluster rejects; a retry may succeed."""
    if not is_true(status, INITIALIZED):
        status = put(status, Condition(type=INITIALIZED, status=False, reason="Refused", message=message, since=now))
    return status.but(waiting=message)


def under_way(status: JobStatus, now: datetime, *, made: int, members: int) -> JobStatus:
    """Set Initialized and Completed; once all pods were created, Initialized stays true."""
    if made == members or is_true(status, INITIALIZED):
        status = put(status, Condition(type=INITIALIZED, status=True, reason=NONE, message="all pods exist", since=now))
    else:
        message = f"{made} of {members} pods exist"
        status = put(status, Condition(type=INITIALIZED, status=False, reason=NONE, message=message, since=now))
    unfinished = "the job has not ended"
    return put(status, Condition(type=COMPLETED, status=False, reason="NotFinished", message=unfinished, since=now))


def ended(status: JobStatus, phase: Phase, now: datetime, *, reason: str, message: str) -> JobStatus:
    """Set every condition that shows how the job ended."""
    has_failed = phase is Phase.FAILED
    truths = {RUNNING: False, COMPLETED: True, FAILED: has_failed}
    for kind, truth in truths.items():
        condition_reason = reason if kind is FAILED else phase.value
        status = put(status, Condition(type=kind, status=truth, reason=condition_reason, message=message, since=now))
    if not has_failed:
        status = put(status, Condition(type=INITIALIZED, status=True, reason=NONE, message="all pods exist", since=now))
        status = put(status, Condition(type=REPLICA_FAILURE, status=False, reason=NONE, since=now))
    return status
