"""When a job succeeds or fails: rules that list replicas, and deadlines."""

from dataclasses import replace
from datetime import datetime

from paceline.model import reasons
from paceline.model.gang import Rule
from paceline.model.job_status import Phase
from paceline.plan.job.attempts import ReplicaAttempt
from paceline.plan.job.cleanup import clean_up
from paceline.plan.job.conditions import ended, under_way, with_failure
from paceline.plan.job.deadlines import active_deadline, describe_not_started, has_missed_start
from paceline.plan.job.diagnosis import describe_failure, diagnosed_failure, is_killed_again
from paceline.plan.job.plan import EventDraft, Plan
from paceline.plan.job.reporting import observed_status
from paceline.plan.job.restart_policy import is_unreachable, met_rule
from paceline.plan.job.view import JobView


def succeed(view: JobView, now: datetime) -> Plan | None:
    """End the job as succeeded when one of its success rules is met."""
    rule = met_rule(view.gang.success, view.verdict.done)
    if rule is None:
        return None
    note = f"; {view.gang.success_note}" if view.gang.success_note else ""
    message = f"{describe_success(rule)}{note}"
    status = observed_status(view, now)
    status = ended(status, Phase.SUCCEEDED, now, reason=reasons.SUCCEEDED, message=message)
    status = status.but(phase=Phase.SUCCEEDED, completion_time=now, start_after=None, failure=None, disruption={})
    event = EventDraft(reason=reasons.SUCCEEDED, message=message)
    return replace(clean_up(view, status, now), events=(event,))


def fail_lost(view: JobView, now: datetime) -> Plan | None:
    """End the job as failed when the lost replicas meet a failure rule, or leave too few."""
    lost = view.verdict.lost
    if not lost:
        return None
    first = view.verdict.failed[0]
    # If several rules are met, the one about the first failure is the most informative.
    rules = tuple(sorted(view.gang.failure, key=lambda rule: first.place not in rule))
    remaining = len(view.gang.members) - len(lost)
    if rule := met_rule(rules, lost):
        cause = next(replica for replica in view.verdict.failed if replica.place in rule)
        explanation = f"failure rule {describe_rule(rule)} is met"
    elif is_unreachable(view.gang.success, lost):
        cause, explanation = first, "no success rule can be met any more"
    elif view.gang.least is not None and remaining < view.gang.least:
        cause, explanation = first, f"{remaining} replicas remain of at least {view.gang.least}"
    else:
        return None
    message = f"{explanation}: {describe_failure(diagnosed_failure(view.gang, view.status, cause))}"
    is_memory = is_killed_again(view.gang, view.status, cause)
    reason = reasons.OUT_OF_MEMORY if is_memory else reasons.FAILED
    return fail(view, now, reason=reason, message=message, cause=cause)


def fail_late(view: JobView, now: datetime) -> Plan | None:
    """End the job as failed when one of its deadlines has passed."""
    deadline = active_deadline(view.gang, view.status)
    if deadline is not None and now >= deadline:
        message = f"the job did not end within {view.gang.active_deadline_seconds} seconds after its start"
        return fail(view, now, reason=reasons.DEADLINE_EXCEEDED, message=message)
    if has_missed_start(view, now):
        return fail(view, now, reason=reasons.STARTING_DEADLINE_EXCEEDED, message=describe_not_started(view))
    return None


def fail(view: JobView, now: datetime, *, reason: str, message: str, cause: ReplicaAttempt | None = None) -> Plan:
    """Return a plan that ends the job as failed, caused by an attempt or by none."""
    status = with_failure(view.gang, observed_status(view, now), view.replicas, now, cause=cause)
    status = under_way(status, view.replicas, now)
    status = ended(status, Phase.FAILED, now, reason=reason, message=message)
    status = status.but(phase=Phase.FAILED, completion_time=now, start_after=None, disruption={})
    event = EventDraft(reason=reason, message=message, is_warning=True)
    return replace(clean_up(view, status, now), events=(event,))


def describe_rule(rule: Rule) -> str:
    """Return a rule as its author wrote it: `{worker: [0, 1]}`."""
    roles = dict.fromkeys(place.role for place in rule)
    indices = {role: [place.index for place in rule if place.role == role] for role in roles}
    return "{" + ", ".join(f"{role}: {numbers}" for role, numbers in indices.items()) + "}"


def describe_success(rule: Rule) -> str:
    """Return why the job succeeded. A one-replica rule is the kind's default, so it names the replica."""
    if len(rule) == 1:
        return f"{rule[0]} succeeded (it determines the job's result)"
    return f"success rule {describe_rule(rule)} is met"
