"""The page of a job: outcome and cause first, then timeline, facts, replicas, conditions, events and logs.

In     a job, its pods of all attempts, the events about them, and the time.
Out    one JSON object, the same on both clusters; words and relative times are the reader's.
Never  a sentence of its own: codes where people read, the cluster's messages as they are.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from paceline.apimachinery.meta import Object, annotations_of, is_deleting, labels_of, name_of, namespace_of, uid_of
from paceline.apimachinery.pods import containers_of
from paceline.apimachinery.timestamps import to_wire
from paceline.kinds.registry import gang_of
from paceline.kinds.resource_totals import totals
from paceline.model import reasons, well_known_labels
from paceline.model.gang import Gang
from paceline.model.job_status import ConditionType, Failure, JobStatus, Phase
from paceline.presentation.actions import JOB_ACTIONS, ActionPlan, Choices, plan_action, refusal_of
from paceline.presentation.attempts import Attempt, attempts_of, is_about, spans_of
from paceline.presentation.events import event_row, in_order
from paceline.presentation.failure_advice import NEVER_RUNS, failure_advice, shortages
from paceline.presentation.job_summary import (
    SIGNALS,
    claims_of,
    created_of,
    is_rejected,
    replica_specs,
    replicas_of,
    status_of,
)
from paceline.presentation.progress import TrainingProgress

# The newest events that a page has; the rest are counted.
MAX_EVENTS = 500
# The lines of a log that the box of the cause has room for.
MAX_LINES = 20


def job_page(
    job: Object,
    pods: Iterable[Object],
    events: Iterable[Object],
    now: datetime,
    progress: TrainingProgress | None = None,
) -> dict[str, Any]:
    """Return everything that the page of a job shows."""
    status, gang = status_of(job), gang_of(job)
    job_events = in_order(event for event in events if is_about(event, job))
    attempts = attempts_of(job, status, pods, job_events)
    # They are ordered by number, so the last one of a replica wins.
    newest = {attempt.place: attempt.number for attempt in attempts}
    return {
        "now": to_wire(now),
        **_identity(job, status),
        "cause": _cause(job, status, gang),
        "restarts": _restarts(status, gang),
        "progress": {"unit": progress.unit, "done": progress.done, "total": progress.total} if progress else None,
        "timeline": _timeline(attempts, gang),
        "facts": _facts(job, status, gang),
        "roles": _roles(job, status),
        "replicas": [_replica(attempt, newest[attempt.place]) for attempt in attempts],
        "conditions": list((job.get("status") or {}).get("conditions") or ()),
        "events": [event_row(event) for event in job_events[-MAX_EVENTS:]],
        "eventCount": len(job_events),
        "logs": _log_sources(attempts, gang, status),
        "tensorboard": _tensorboard(status),
        "actions": [_action(plan_action(action, job, Choices(now=now))) for action in JOB_ACTIONS],
    }


def _action(plan: ActionPlan) -> dict[str, Any]:
    """Return whether the button of an action works, and why not."""
    return {"action": plan.action.value, "possible": plan.is_possible, "reason": refusal_of(plan)}


def _identity(job: Object, status: JobStatus) -> dict[str, Any]:
    ready, desired = replicas_of(job)
    annotations = annotations_of(job)
    return {
        "kind": job.get("kind"),
        "apiVersion": job.get("apiVersion"),
        "namespace": namespace_of(job),
        "name": name_of(job),
        "uid": uid_of(job),
        "isDeleting": is_deleting(job),
        "phase": status.phase.value,
        "ready": ready,
        "desired": desired,
        "attempt": status.attempt,
        "elastic": dict(status.elastic) if status.elastic and not status.phase.is_final else None,
        "askedBy": annotations.get(well_known_labels.ASKED_BY, ""),
        "copyOf": annotations.get(well_known_labels.COPY_OF, ""),
    }


def _cause(job: Object, status: JobStatus, gang: Gang | None) -> dict[str, Any] | None:
    """Return why the job failed, waits or was restarted; None if there is nothing to explain."""
    if status.phase is Phase.FAILED:
        return _failed(status)
    if status.phase is Phase.SUCCEEDED:
        return None
    if is_rejected(job):
        return _plain("Rejected", reasons.INVALID, status.waiting)
    if status.waiting:
        return _waiting(status)
    if status.failure is not None and status.backoff_count:
        return {
            "kind": "Restarted",
            **_failure(status.failure, reasons.ERROR_IN_POD),
            "message": status.failure.message,
        }
    return _plain("Invalid", reasons.INVALID, "") if gang is None and not status.conditions else None


def _failed(status: JobStatus) -> dict[str, Any]:
    condition = status.condition(ConditionType.FAILED)
    reason = condition.reason if condition else reasons.FAILED
    message = condition.message if condition else ""
    if status.failure is None:
        return _plain("Failed", reason, message) | {"time": _wire(status.completion_time)}
    cause = {"kind": "Failed", **_failure(status.failure, reason), "message": message}
    return cause | {"time": _wire(status.completion_time)}


def _failure(failure: Failure, reason: str) -> dict[str, Any]:
    code = failure.exit_code
    signal = SIGNALS.get(code - 128, SIGNALS.get(-code, "")) if code is not None else ""
    return {
        "reason": reason,
        "advice": failure_advice(failure, reason),
        "replica": failure.replica,
        "pod": failure.pod,
        "container": failure.container,
        "exitCode": code,
        "signal": signal,
        "podReason": failure.reason,
        "detail": failure.message,
        "lastLines": list(failure.last_lines or ())[-MAX_LINES:],
    }


def _waiting(status: JobStatus) -> dict[str, Any]:
    running, initialized = status.condition(ConditionType.RUNNING), status.condition(ConditionType.INITIALIZED)
    reason = running.reason if running else reasons.NONE
    if initialized is not None and not initialized.status and initialized.reason != reasons.NONE:
        reason = initialized.reason
    cause = _plain("Waiting", reason, status.waiting)
    cause |= {"shortages": shortages(status.waiting), "neverRuns": NEVER_RUNS in status.waiting}
    return cause | {"startAfter": _wire(status.start_after)}


def _plain(kind: str, reason: str, message: str) -> dict[str, Any]:
    return {"kind": kind, "reason": reason, "message": message, "advice": {"code": reason, "subject": ""}}


def _restarts(status: JobStatus, gang: Gang | None) -> dict[str, Any]:
    """Return how many restarts counted, and how many are left for the role that failed, if that is limited."""
    used, limit = status.backoff_count, gang.backoff_limit if gang else None
    if gang is not None and limit is None and status.failure is not None:
        role = status.failure.replica.rpartition("-")[0]
        limit, used = gang.role_limits.get(role), status.role_restarts.get(role, 0)
    return {"used": used, "limit": limit, "left": None if limit is None else max(limit - used, 0)}


def _timeline(attempts: list[Attempt], gang: Gang | None) -> list[dict[str, Any]]:
    """Return one row per replica with the spans of all its attempts."""
    rows: dict[str, dict[str, Any]] = {}
    for attempt in attempts:
        row = rows.setdefault(str(attempt.place), {"replica": str(attempt.place), "spans": []})
        row["isLeader"] = gang is not None and attempt.place == gang.leader
        row["spans"] += [
            {
                "attempt": attempt.number,
                "pod": attempt.pod,
                "node": attempt.node,
                "state": span.state,
                "start": _wire(span.start),
                "end": _wire(span.end),
                "exitCode": span.exit_code,
                "reason": span.reason,
            }
            for span in spans_of(attempt)
        ]
    return list(rows.values())


def _facts(job: Object, status: JobStatus, gang: Gang | None) -> dict[str, Any]:
    spec, labels = job.get("spec") or {}, labels_of(job)
    amounts = totals(gang) if gang else None
    return {
        "created": _wire(created_of(job)),
        "started": _wire(status.start_time),
        "running": _wire(status.running_time),
        "ended": _wire(status.completion_time),
        "pausedSeconds": status.paused_seconds,
        "queue": gang.queue if gang else "",
        "priority": gang.priority if gang else 0,
        "source": _source(spec, status),
        "images": list(dict.fromkeys(image for role in _templates(job) for image in role)),
        "claims": [{"claim": claim, "path": path} for claim, path in claims_of(job)],
        "input": _place(spec.get("input")),
        "output": _place(spec.get("output")),
        "hyperparameters": dict((spec.get("hyperparameters") or {}).get("values") or {}),
        "requests": {name: f"{amount:f}" for name, amount in (amounts.requests if amounts else {}).items()},
        "limits": {name: f"{amount:f}" for name, amount in (amounts.limits if amounts else {}).items()},
        "labels": labels,
        "app": labels.get(well_known_labels.APP, ""),
        "revision": labels.get(well_known_labels.REVISION, ""),
        "activeDeadlineSeconds": gang.active_deadline_seconds if gang else None,
        "ttlSeconds": gang.ttl_seconds if gang else None,
    }


def _source(spec: Mapping[str, Any], status: JobStatus) -> dict[str, str]:
    source = spec.get("source") or {}
    git = source.get("git") or {}
    return {
        "url": str(git.get("url") or ""),
        "revision": str(git.get("revision") or ""),
        "commit": str(status.source.get("commit", "")),
    }


def _place(place: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Return where data come from or go to: the sort of place, and its name."""
    for sort in ("claim", "directory"):
        if place and place.get(sort):
            return {"sort": sort, "name": str(place[sort]), "path": str(place.get("path") or "")}
    if place and (bucket := place.get("bucket")):
        return {"sort": "bucket", "name": str(bucket.get("url") or bucket.get("secret") or ""), "path": ""}
    return None


def _templates(job: Object) -> list[list[str]]:
    """Return the images of every role."""
    return [
        [
            str(container["image"])
            for container in containers_of(replica.get("template") or {})
            if container.get("image")
        ]
        for replica in replica_specs(job)
    ]


def _roles(job: Object, status: JobStatus) -> list[dict[str, Any]]:
    """Return one row per role: its size, states, image and restart policy."""
    rows: dict[str, dict[str, Any]] = {}
    for replica, images in zip(replica_specs(job), _templates(job), strict=True):
        policy = replica.get("restartPolicy")
        rows[str(replica.get("type") or "worker")] = {
            "replicas": int(replica.get("replicas", 1)),
            "images": images,
            "restartPolicy": policy.get("policy", "") if isinstance(policy, dict) else str(policy or ""),
        }
    for record in status.replicas:
        row = rows.setdefault(record.place.role, {"replicas": 1, "images": [], "restartPolicy": ""})
        states = row.setdefault("states", {})
        states[record.phase.value] = states.get(record.phase.value, 0) + 1
    restarts = status.role_restarts
    return [{"role": role, "restarts": restarts.get(role, 0), "states": {}, **row} for role, row in rows.items()]


def _replica(attempt: Attempt, newest: int) -> dict[str, Any]:
    return {
        "replica": str(attempt.place),
        "role": attempt.place.role,
        "index": attempt.place.index,
        "attempt": attempt.number,
        "isCurrent": attempt.number == newest,
        "exists": attempt.exists,
        "pod": attempt.pod,
        "uid": attempt.uid,
        "phase": attempt.phase,
        "exitCode": attempt.exit_code,
        "reason": attempt.reason,
        "message": attempt.message,
        "restarts": attempt.restarts,
        "node": attempt.node,
        "address": attempt.address,
        "containers": list(attempt.containers),
        "created": _wire(attempt.created),
        "started": _wire(attempt.started),
        "ended": _wire(attempt.ended),
    }


def _log_sources(attempts: list[Attempt], gang: Gang | None, status: JobStatus) -> list[dict[str, Any]]:
    """Return every container whose log can be read: that of the command first, then those of the stages."""
    failed = status.failure.pod if status.failure else ""
    return [
        {
            "replica": str(attempt.place),
            "attempt": attempt.number,
            "pod": attempt.pod,
            "uid": attempt.uid,
            "node": attempt.node,
            "container": container,
            "isStage": container in attempt.init_containers,
            "isLeader": gang is not None and attempt.place == gang.leader,
            "isFailed": attempt.pod == failed and (not status.failure or container == status.failure.container),
            "exists": attempt.exists,
            "isRunning": attempt.started is not None and attempt.ended is None,
            "restarts": attempt.restarts,
            "started": _wire(attempt.started),
            "ended": _wire(attempt.ended),
        }
        for attempt in attempts
        for container in (*attempt.containers, *attempt.init_containers)
    ]


def _tensorboard(status: JobStatus) -> dict[str, str] | None:
    board = status.tensorboard
    if not board:
        return None
    return {"name": str((board.get("dependent") or {}).get("name", "")), "note": str(board.get("note", ""))}


def _wire(moment: datetime | None) -> str | None:
    return to_wire(moment) if moment is not None else None
