"""What a failed pod wrote last: asked for once, kept in the status, and not waited for."""

from dataclasses import replace

from paceline.model.job_status import JobStatus
from paceline.plan.job.plan import LogRef, Plan
from paceline.plan.job.view import JobView


def with_last_lines(seen: JobView, plan: Plan) -> Plan:
    """Put what has been read into the status, or ask for it to be read."""
    failure = plan.status.failure
    if failure is None or failure.last_lines is not None:
        return plan
    if failure.pod in seen.last_lines:
        known = replace(failure, last_lines=seen.last_lines[failure.pod])
        return replace(plan, status=plan.status.but(failure=known))
    wish = wish_of(seen, plan.status)
    return plan if wish is None or plan.removes_job else replace(plan, read=wish)


def wish_of(seen: JobView, status: JobStatus) -> LogRef | None:
    """Give the log that somebody should read before its pod goes, if there is one."""
    failure = status.failure
    if failure is None or failure.last_lines is not None or failure.pod in seen.last_lines or not failure.container:
        return None
    is_there = any(pod.name == failure.pod for pod in seen.pods)
    return LogRef(pod=failure.pod, container=failure.container) if is_there else None
