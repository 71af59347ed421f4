"""Members that are killed for memory: once may be chance, twice in a row with the same limit is not."""

from collections.abc import Mapping

from paceline.model.gang import Gang
from paceline.model.job_status import JobStatus
from paceline.plan.job.attempts import Try

REASON = "OutOfMemory"


def memory_limit(gang: Gang, replica: Try) -> str:
    """Return the limit a try was killed for; empty when it was not, or when it had none: the machine was full then."""
    if replica.killed_container is None:
        return ""
    for container in gang.member(replica.place).template["spec"]["containers"]:
        if container["name"] == replica.killed_container:
            limits = (container.get("resources") or {}).get("limits") or {}
            return str(limits.get("memory", ""))
    return ""


def is_killed_again(gang: Gang, status: JobStatus, replica: Try) -> bool:
    """Return whether a try was killed for the limit for which the one before it was killed too."""
    return status.memory_kills.get(str(replica.place)) == memory_limit(gang, replica)


def counted(gang: Gang, status: JobStatus, again: tuple[Try, ...]) -> Mapping[str, str]:
    """Remember of every place that is tried again whether it was killed for memory, and with which limit."""
    kills = dict(status.memory_kills)
    for replica in again:
        kills.pop(str(replica.place), None)
        if limit := memory_limit(gang, replica):
            kills[str(replica.place)] = limit
    return kills


def advice(gang: Gang, status: JobStatus, replica: Try) -> str:
    """Return which limit to raise after a second OOM kill; empty when there was none."""
    if not is_killed_again(gang, status, replica):
        return ""
    limit = memory_limit(gang, replica)
    where = f"container {replica.killed_container} of replica type {replica.place.role}"
    return f"killed for memory twice in a row with a limit of {limit}; raise resources.limits.memory of {where}"
