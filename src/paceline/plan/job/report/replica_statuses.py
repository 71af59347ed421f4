"""status.tasks and status.aggregate: T9k's table of replicas, made anew in every pass."""

from typing import Any

from paceline.model.job_status import JobStatus, ReplicaPhase
from paceline.plan.job.attempts import Try
from paceline.plan.job.view import ContainerSeen

# A job may have thousands of replicas, and a status must stay small.
MAX_MESSAGE = 200


def with_tasks(status: JobStatus, replicas: tuple[Try, ...]) -> JobStatus:
    """Return the status with its table of replicas as they are now."""
    roles = dict.fromkeys(replica.place.role for replica in replicas)
    tasks = tuple(
        {
            "type": role,
            "restartCount": status.role_restarts.get(role, 0),
            "replicas": [_row(replica) for replica in replicas if replica.place.role == role],
        }
        for role in roles
    )
    counts = {phase.value.lower(): 0 for phase in ReplicaPhase}
    for replica in replicas:
        counts[replica.phase.value.lower()] += 1
    return status.but(tasks=tasks, aggregate=counts)


def _row(replica: Try) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": replica.name,
        "uid": replica.uid,
        "phase": replica.phase.value,
        "containers": [_container(container) for container in replica.containers],
        "reason": replica.reason,
        "message": replica.message[:MAX_MESSAGE],
        "stages": [_stage(stage) for stage in replica.stages],
    }
    return {key: value for key, value in row.items() if value}


def _stage(stage: ContainerSeen) -> dict[str, Any]:
    message = {"message": stage.message[:MAX_MESSAGE]} if stage.message else {}
    return {**_container(stage), **message}


def _container(container: ContainerSeen) -> dict[str, Any]:
    row: dict[str, Any] = {"name": container.name, "state": container.state}
    if container.exit_code is not None:
        row["exitCode"] = container.exit_code
    if container.reason:
        row["reason"] = container.reason
    return row
