"""The decision about one job: what should happen next?

The first rule that applies makes the plan, so every rule may assume that those above it do not apply. Then every
amendment completes the plan.
"""

from collections.abc import Callable
from datetime import datetime

from paceline.plan.job.auxiliary_pods import resolve_revision
from paceline.plan.job.cleanup import clean_up_finished, expire
from paceline.plan.job.completion import fail_late, fail_lost, succeed
from paceline.plan.job.deadlines import wake_for_deadlines
from paceline.plan.job.disruption import give_up_lost, requeue_disrupted
from paceline.plan.job.output_finalization import defer_completion, finalize_output
from paceline.plan.job.plan import Plan
from paceline.plan.job.reconcile import reconcile_replicas
from paceline.plan.job.reporting import report_created, report_last_lines, report_recreated, report_size
from paceline.plan.job.restart import restart_failed, restart_requested, restart_resized, restart_stalled
from paceline.plan.job.snapshot import JobSnapshot
from paceline.plan.job.suspend import hold, pause, resume, suspend, unsuspend
from paceline.plan.job.view import JobView, view_of

JobRule = Callable[[JobView, datetime], Plan | None]
PlanAmendment = Callable[[JobView, Plan, datetime], Plan]

RULES: tuple[JobRule, ...] = (
    finalize_output,
    expire,
    clean_up_finished,
    resume,
    unsuspend,
    hold,
    succeed,
    requeue_disrupted,
    fail_lost,
    fail_late,
    pause,
    suspend,
    restart_requested,
    restart_resized,
    restart_failed,
    restart_stalled,
    resolve_revision,
    reconcile_replicas,
)
AMENDMENTS: tuple[PlanAmendment, ...] = (
    give_up_lost,
    report_created,
    defer_completion,
    wake_for_deadlines,
    report_size,
    report_last_lines,
    report_recreated,
)


def decide(snapshot: JobSnapshot, now: datetime) -> Plan:
    """Return the plan for one job."""
    view = view_of(snapshot, now)
    plan = next(plan for rule in RULES if (plan := rule(view, now)) is not None)
    for amend in AMENDMENTS:
        plan = amend(view, plan, now)
    return plan
