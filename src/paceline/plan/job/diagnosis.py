"""Why a job waits and why a replica failed: texts for people, and advice about memory."""

from dataclasses import dataclass

from paceline.model import reasons
from paceline.model.gang import Gang
from paceline.model.job_status import Failure, JobStatus
from paceline.model.replica_record import ReplicaPhase
from paceline.plan.job.attempts import ReplicaAttempt

# Waiting reasons of a container that is merely starting.
ORDINARY = frozenset({"", "ContainerCreating", "PodInitializing"})
# The exit code of a process killed by SIGBUS, as a shell reports it.
BUS_ERROR = 135
SHM = "/dev/shm"  # noqa: S108 - where programs share memory, not where we keep a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why a job waits: a reason in CamelCase and a sentence."""

    reason: str
    text: str


def why_waiting(replicas: tuple[ReplicaAttempt, ...]) -> Waiting | None:
    """Return why the first pending pod with a specific reason is pending; None if there is no such pod."""
    pending = [(replica, *_pending_reason(replica)) for replica in replicas if replica.phase is ReplicaPhase.PENDING]
    explained = [(replica, reason, message) for replica, reason, message in pending if reason not in ORDINARY]
    if not explained:
        return None
    first, reason, message = explained[0]
    others = f" (and {len(explained) - 1} more)" if len(explained) > 1 else ""
    return Waiting(reason=reason, text=f"pod {first.name}{others}: {message or reason}")


def failure_of(replica: ReplicaAttempt, advice: str = "") -> Failure:
    """Return the record of a failed pod, with advice for the author if there is any."""
    reason, message = replica.why
    return Failure(
        pod=replica.name,
        exit_code=replica.exit_code,
        reason=reason,
        message="; ".join(part for part in (message, advice) if part),
        replica=str(replica.place),
        container=replica.container,
    )


def diagnosed_failure(gang: Gang, status: JobStatus, replica: ReplicaAttempt) -> Failure:
    """Return the record of a failed pod with advice about its memory."""
    return failure_of(replica, memory_advice(gang, status, replica) or shared_memory_advice(gang, replica))


def describe_failure(failure: Failure) -> str:
    """Describe a failure in one sentence."""
    if failure.reason == reasons.DELETED:
        return f"pod {failure.pod} was deleted before it ended"
    if failure.reason == reasons.NODE_LOST:
        return failure.message
    code = "" if failure.exit_code is None else f" with exit code {failure.exit_code}"
    # Every failed container has the reason Error, which says less than its exit code.
    reason = "" if failure.reason == "Error" and failure.exit_code is not None else failure.reason
    details = ": ".join(part for part in (reason, failure.message) if part)
    return f"pod {failure.pod} failed{code}{': ' + details if details else ''}"


def memory_limit(gang: Gang, replica: ReplicaAttempt) -> str:
    """Return the limit of the container that was OOM-killed; empty if none was, or if it has no limit."""
    if replica.killed_container is None:
        return ""
    for container in gang.member(replica.place).template["spec"]["containers"]:
        if container["name"] == replica.killed_container:
            limits = (container.get("resources") or {}).get("limits") or {}
            return str(limits.get("memory", ""))
    return ""


def is_killed_again(gang: Gang, status: JobStatus, replica: ReplicaAttempt) -> bool:
    """Return whether a replica was OOM-killed twice in a row with the same limit."""
    limit = memory_limit(gang, replica)
    return bool(limit) and any(record.oom_limit == limit for record in status.replicas if record.place == replica.place)


def memory_advice(gang: Gang, status: JobStatus, replica: ReplicaAttempt) -> str:
    """Return which limit to raise after a second OOM kill; empty if there was none."""
    if not is_killed_again(gang, status, replica):
        return ""
    limit = memory_limit(gang, replica)
    container = f"container {replica.killed_container} of replica type {replica.place.role}"
    return f"killed for memory twice in a row with a limit of {limit}; raise resources.limits.memory of {container}"


def shared_memory_advice(gang: Gang, replica: ReplicaAttempt) -> str:
    """Return which setting to raise after SIGBUS, which nearly always means a full /dev/shm; empty otherwise."""
    if replica.exit_code != BUS_ERROR:
        return ""
    volumes = [
        mount["name"]
        for container in gang.member(replica.place).template["spec"]["containers"]
        for mount in container.get("volumeMounts") or ()
        if mount.get("mountPath") == SHM
    ]
    role = f"replica type {replica.place.role}"
    if volumes:
        remedy = f"raise emptyDir.sizeLimit of volume {volumes[0]} of {role}"
    else:
        volume = "emptyDir: {medium: Memory, sizeLimit: 2Gi}"
        remedy = f"give {role} a larger one: a volume `{volume}` mounted at {SHM}"
    return f"died of signal 7 (SIGBUS), as programs do when {SHM} is full; {remedy}"


def _pending_reason(replica: ReplicaAttempt) -> tuple[str, str]:
    if replica.reason not in ORDINARY:
        return replica.reason, replica.message
    waiting = [
        container
        for container in replica.containers
        if container.state == "Waiting" and container.reason not in ORDINARY
    ]
    return (waiting[0].reason, waiting[0].message) if waiting else ("", "")
