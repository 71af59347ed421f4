"""What a failed pod wrote last: asked for once, kept in the status, and not waited for."""

from dataclasses import replace

from paceline.model.job_status import JobStatus
from paceline.plan.job.plan import LogRef, Plan
from paceline.plan.job.view import JobView


def with_last_lines(view: JobView, plan: Plan) -> Plan:
    """Put what has been read into the status, or ask for it to be read."""
    failure = plan.status.failure
    if failure is None or failure.last_lines is not None:
        return plan
    if failure.pod in view.last_lines:
        complete = replace(failure, last_lines=view.last_lines[failure.pod])
        return replace(plan, status=plan.status.but(failure=complete))
    log = wish_of(view, plan.status)
    return plan if log is None or plan.removes_job else replace(plan, read=log)


def wish_of(view: JobView, status: JobStatus) -> LogRef | None:
    """Return the log that somebody should read before its pod goes, if there is one."""
    failure = status.failure
    if failure is None or failure.last_lines is not None or failure.pod in view.last_lines or not failure.container:
        return None
    is_there = any(pod.name == failure.pod for pod in view.pods)
    return LogRef(pod=failure.pod, container=failure.container) if is_there else None
