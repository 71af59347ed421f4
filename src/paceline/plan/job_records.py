"""The JobRecord of a job: created when the job is first seen, completed when the job has ended or was deleted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from paceline.apimachinery.meta import Object, annotations_of, labels_of, name_of, namespace_of, uid_of
from paceline.apimachinery.timestamps import from_wire, to_wire
from paceline.model import well_known_labels
from paceline.model.job_status import Phase
from paceline.model.retention import RecordPolicy

# The phase of a record whose job was deleted before it ended.
DELETED = "Deleted"
MAX_EVENTS = 50
MAX_MESSAGE = 300
MAX_REPLICAS = 200
# How many characters of the job's name are in the name of its record.
MAX_NAME = 200
UID_CHARACTERS = 8
# Whose last words count, where there are several types of replicas.
LEADERS = ("chief", "master", "launcher", "worker")
FINAL = tuple(phase.value for phase in Phase if phase.is_final)
_COPIED = ("startTime", "runningTime", "completionTime", "attempt", "backoffCount", "failure", "waiting", "elastic")
_REPLICA = ("type", "index", "name", "uid", "phase", "nodeName", "exitCode", "reason", "containers")
_LABELS = (well_known_labels.APP, well_known_labels.REVISION)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRecord:
    """The facts about a record that decisions need."""

    namespace: str
    name: str
    job_uid: str
    created: datetime
    is_complete: bool


def record_name(job: Object) -> str:
    """Return the name of a job's record; another job of the same name has another one."""
    return f"{name_of(job)[:MAX_NAME]}-{uid_of(job)[:UID_CHARACTERS]}"


def record_manifest(api_version: str, job: Object) -> Object:
    """Return the record of a job. It has no owner: it stays when the job goes."""
    spec = job.get("spec") or {}
    values = (spec.get("hyperparameters") or {}).get("values") or {}
    hyperparameters = {name: str(value) for name, value in values.items()}
    asked_by = annotations_of(job).get(well_known_labels.ASKED_BY)
    labels = {name: value for name, value in labels_of(job).items() if name in _LABELS}
    described = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": name_of(job), "labels": labels_of(job)}
    return {
        "apiVersion": api_version,
        "kind": "JobRecord",
        "metadata": {
            "name": record_name(job),
            "namespace": namespace_of(job),
            "labels": {well_known_labels.JOB_UID: uid_of(job)},
            **({"annotations": {well_known_labels.ASKED_BY: asked_by}} if asked_by else {}),
        },
        "spec": {
            "uid": uid_of(job),
            "created": job["metadata"]["creationTimestamp"],
            "job": {**described, "spec": spec},
            **({"app": labels[well_known_labels.APP]} if well_known_labels.APP in labels else {}),
            **({"hyperparameters": hyperparameters} if hyperparameters else {}),
        },
    }


def outcome_of(
    job: Object, events: Iterable[Object], metrics: Mapping[str, str], *, gone_at: datetime | None
) -> Object:
    """Return the outcome of a job: the status of its record."""
    status = job.get("status") or {}
    phase = str(status.get("phase") or "Pending")
    copied = {name: status[name] for name in _COPIED if status.get(name)}
    commit = (status.get("source") or {}).get("commit")
    optional: dict[str, Any] = {
        "commit": commit,
        "reason": _reason(status),
        "metrics": dict(metrics),
        "replicas": list(_replicas(status)),
        "events": last_events(events),
        "deletionTime": None if gone_at is None else to_wire(gone_at),
    }
    is_over = phase in FINAL
    return {
        "phase": phase if is_over else DELETED,
        **({} if is_over else {"lastPhase": phase}),
        **copied,
        **{name: value for name, value in optional.items() if value},
    }


def lost_outcome(events: Iterable[Object], now: datetime) -> Object:
    """Return the outcome of a job that was deleted while no controller ran."""
    shown = last_events(events)
    return {"phase": DELETED, "deletionTime": to_wire(now), **({"events": shown} if shown else {})}


def _reason(status: Mapping[str, Any]) -> str:
    """Return why a job ended: the message of its last true condition."""
    for condition in status.get("conditions") or ():
        if condition.get("type") in ("Completed", "Failed") and condition.get("status") == "True":
            return str(condition.get("message") or condition.get("reason") or "")
    return ""


def _replicas(status: Mapping[str, Any]) -> Iterable[Object]:
    rows = [row for task in status.get("tasks") or () for row in task.get("replicas") or ()]
    for row in rows[:MAX_REPLICAS]:
        yield {name: row[name] for name in _REPLICA if row.get(name) is not None}


def pod_uids(job: Object) -> frozenset[str]:
    """Return the uids of the pods that are in a job's status."""
    tasks = (job.get("status") or {}).get("tasks") or ()
    return frozenset(str(row["uid"]) for task in tasks for row in task.get("replicas") or () if row.get("uid"))


def leader_log(job: Object) -> tuple[str, str] | None:
    """Return pod and container of the job's leader; None when the job never had a replica."""
    tasks = {str(task.get("type")): task.get("replicas") or () for task in (job.get("status") or {}).get("tasks") or ()}
    order = [*(role for role in LEADERS if role in tasks), *tasks]
    replicas = tasks[order[0]] if order else ()
    if not replicas or not replicas[0].get("uid"):
        return None
    containers = replicas[0].get("containers") or ()
    return str(replicas[0]["name"]), str(containers[0]["name"]) if containers else ""


def slim_event(event: Object) -> Object:
    """Return the part of an event that a record keeps."""
    about = event.get("involvedObject") or {}
    return {
        "uid": str(about.get("uid") or ""),
        "time": str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]),
        "type": str(event.get("type") or "Normal"),
        "reason": str(event.get("reason") or ""),
        "object": f"{about.get('kind', '')}/{about.get('name', '')}",
        "message": str(event.get("message") or "")[:MAX_MESSAGE],
        **({"count": event["count"]} if int(event.get("count") or 1) > 1 else {}),
    }


def last_events(events: Iterable[Object]) -> list[Object]:
    """Return the last events, oldest first, without the uids of their objects."""
    ordered = sorted(events, key=lambda event: str(event["time"]))[-MAX_EVENTS:]
    return [{name: value for name, value in event.items() if name != "uid"} for event in ordered]


def to_remove(records: Iterable[KnownRecord], policy: RecordPolicy, now: datetime) -> list[KnownRecord]:
    """Return the records that are too old or too many; those of jobs that have not ended stay."""
    complete = sorted((record for record in records if record.is_complete), key=lambda record: record.created)
    excess = max(len(complete) - policy.jobs, 0)
    return [record for index, record in enumerate(complete) if index < excess or now - record.created > policy.age]


def known(record: Object) -> KnownRecord:
    """Return the facts about a record."""
    return KnownRecord(
        namespace=namespace_of(record),
        name=name_of(record),
        job_uid=str(labels_of(record).get(well_known_labels.JOB_UID)),
        created=from_wire(record["metadata"]["creationTimestamp"]),
        is_complete=bool((record.get("status") or {}).get("phase")),
    )


def completed(record: KnownRecord) -> KnownRecord:
    """Return a record that has its outcome."""
    return replace(record, is_complete=True)
