"""What a job's status and events report about its replicas."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from paceline.model import reasons
from paceline.model.job_status import JobStatus, Phase
from paceline.model.replica_record import ReplicaPhase
from paceline.plan.job.attempts import MAX_MESSAGE, ReplicaAttempt, with_records
from paceline.plan.job.conditions import INITIALIZED, RUNNING, with_start_time
from paceline.plan.job.diagnosis import describe_failure, failure_of
from paceline.plan.job.plan import EventDraft, LogRef, Plan
from paceline.plan.job.restart_policy import why_lost
from paceline.plan.job.snapshot import JobSnapshot
from paceline.plan.job.view import JobView

SINGLY = (
    "this cluster has no gang scheduler for the job: its pods start one by one as each finds room, and those that run "
    "hold their resources while they wait for the others"
)


def with_tasks(status: JobStatus, replicas: tuple[ReplicaAttempt, ...]) -> JobStatus:
    """Return the status with the replicas recorded, and rendered as `tasks` and `aggregate`, T9k's tables."""
    status, restarts = with_records(status, replicas), status.role_restarts
    roles = dict.fromkeys(replica.place.role for replica in replicas)
    tasks = tuple(
        {
            "type": role,
            "restartCount": restarts.get(role, 0),
            "replicas": [_row(replica) for replica in replicas if replica.place.role == role],
        }
        for role in roles
    )
    counts = {phase.value.lower(): 0 for phase in ReplicaPhase}
    for replica in replicas:
        counts[replica.phase.value.lower()] += 1
    return status.but(tasks=tasks, aggregate=counts)


def observed_status(view: JobView, now: datetime) -> JobStatus:
    """Return the status with what the pods show; it fulfils a restart request, as a first start does too."""
    status = view.status.but(waiting="", restart_granted=view.restart_request)
    if view.gang.commit:
        status = status.but(source={"commit": view.gang.commit})
    return with_start_time(with_tasks(status, view.replicas), view.replicas, now)


def report_created(view: JobView, plan: Plan, _now: datetime) -> Plan:
    """Add an event for a new job, and one for every pod that the status does not list yet."""
    if view.status.phase.is_final:
        return plan
    uids = {record.uid for record in view.stored.replicas}
    names = [replica.name for replica in view.replicas if replica.uid and replica.uid not in uids]
    events = [EventDraft(reason=reasons.NEW_REPLICA, message=f"pod {name} was created") for name in names]
    if plan.status.conditions and not view.stored.conditions:
        created = f", created{view.by}" if view.by else ""
        message = f"job {view.naming.job} has {len(view.replicas)} replicas{created}"
        events.insert(0, EventDraft(reason=reasons.CREATED, message=message))
        if view.starts_singly and view.gang.needed > 1:
            events.insert(1, EventDraft(reason=reasons.STARTS_SINGLY, message=SINGLY))
    return replace(plan, events=(*events, *plan.events))


def report_recreated(view: JobView, plan: Plan, _now: datetime) -> Plan:
    """Add an event for every pod that was deleted before it ran."""
    if plan.status.phase.is_final:
        return plan
    events = (
        EventDraft(
            reason=reasons.REMADE,
            message=f"pod {replica.name} was deleted before it ran; {replica.place} is created again; "
            "this does not count as a restart",
        )
        for replica in view.recreated
    )
    return replace(plan, events=(*events, *plan.events))


def report_size(view: JobView, plan: Plan, _now: datetime) -> Plan:
    """Set current and expected replicas of an elastic job, and add an event when it is resized."""
    if not view.gang.is_elastic:
        return plan
    previous, expected = view.stored.elastic.get("expectedReplicas"), len(view.gang.members)
    size = {"currentReplicas": plan.status.aggregate.get("running", 0), "expectedReplicas": expected}
    events: tuple[EventDraft, ...] = ()
    if previous not in (None, expected) and not plan.status.phase.is_final:
        scaled = f"; scaled{view.by}" if view.by else ""
        message = f"{expected} replicas are expected, {previous} before{scaled}"
        events = (EventDraft(reason=reasons.RESIZED, message=message),)
    return replace(plan, status=plan.status.but(elastic=size), events=(*events, *plan.events))


def report_last_lines(view: JobView, plan: Plan, _now: datetime) -> Plan:
    """Put the last log lines of the failed pod into the status, or have them read."""
    failure = plan.status.failure
    if failure is None or failure.last_lines is not None:
        return plan
    if failure.pod in view.last_lines:
        complete = replace(failure, last_lines=view.last_lines[failure.pod])
        return replace(plan, status=plan.status.but(failure=complete))
    log = unread_log(view, plan.status)
    return plan if log is None or plan.deletes_job else replace(plan, read_log=log)


def unread_log(view: JobSnapshot, status: JobStatus) -> LogRef | None:
    """Return the log to read before its pod is deleted, if there is one."""
    failure = status.failure
    if failure is None or failure.last_lines is not None or failure.pod in view.last_lines or not failure.container:
        return None
    exists = any(pod.name == failure.pod for pod in view.pods)
    return LogRef(pod=failure.pod, container=failure.container) if exists else None


def transition_events(previous: JobStatus, status: JobStatus) -> tuple[EventDraft, ...]:
    """Return events for what changed since the last reconciliation."""
    events = []
    if status.is_true(INITIALIZED) and not previous.is_true(INITIALIZED):
        events.append(EventDraft(reason=reasons.START, message="all pods exist"))
    if status.phase is Phase.RUNNING and previous.phase is not Phase.RUNNING:
        waiting = status.aggregate.get("creating", 0) + status.aggregate.get("pending", 0)
        total = sum(status.aggregate.values())
        # An elastic job may start with fewer pods than it wants.
        message = f"{total - waiting} of {total} pods run" if waiting else "all pods run"
        events.append(EventDraft(reason=reasons.RUNNING, message=message))
    old, new = previous.condition(RUNNING), status.condition(RUNNING)
    # Restarts and disruptions have had their own events.
    reported = (reasons.RESTARTING, reasons.PREEMPTED, reasons.DISRUPTED, reasons.NODE_LOST)
    is_changed = new is not None and new.reason not in (*reported, old.reason if old else None)
    if status.waiting and new is not None and is_changed:
        events.append(EventDraft(reason=new.reason, message=status.waiting, is_warning=True))
    return tuple(events)


def lost_replica_events(view: JobView) -> tuple[EventDraft, ...]:
    """Return an event for every lost replica, with the reason why it is not restarted."""
    ended = (ReplicaPhase.FAILED, ReplicaPhase.DELETED)
    reported = {(record.place, record.attempt) for record in view.stored.replicas if record.phase in ended}
    return tuple(
        EventDraft(
            reason=reasons.REPLICA_LOST,
            message=f"{describe_failure(failure_of(replica))}; {replica.place} is not restarted: "
            f"{why_lost(view.gang, view.status, replica)}",
            is_warning=True,
        )
        for replica in view.verdict.failed
        if replica.place in view.verdict.lost and (replica.place, replica.attempt) not in reported
    )


def _row(replica: ReplicaAttempt) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": replica.name,
        "uid": replica.uid,
        "phase": replica.phase.value,
        "containers": [replace(container, message="").to_wire() for container in replica.containers],
        "reason": replica.reason,
        "message": replica.message[:MAX_MESSAGE],
        "stages": [replace(stage, message=stage.message[:MAX_MESSAGE]).to_wire() for stage in replica.stages],
    }
    return {key: value for key, value in row.items() if value}
