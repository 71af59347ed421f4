"""When an ended job goes by itself (ttlSecondsAfterFinished)."""

from dataclasses import replace
from datetime import datetime, timedelta

from paceline.plan.job.plan import EventDraft, Plan
from paceline.plan.job.view import JobView


def expire(view: JobView, plan: Plan, now: datetime) -> Plan:
    """Have an ended job deleted when it has stayed as long as its author wants; else say when to look again."""
    seconds, end = view.gang.ttl_seconds, plan.status.completion_time
    if seconds is None or end is None:
        return plan
    due = end + timedelta(seconds=seconds)
    if now < due:
        return replace(plan, wake_at=min(due, plan.wake_at or due))
    message = f"the job is deleted: it ended more than {seconds} seconds ago (ttlSecondsAfterFinished)"
    # Its pods go with it.
    return Plan(status=plan.status, tell=(EventDraft(reason="Expired", message=message),), removes_job=True)
