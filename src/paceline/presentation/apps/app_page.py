"""The page of an application: status, services, containers, logs, routes, revisions and values.

In     an application with its records, jobs, pods, services, TensorBoards and events, and the time.
Out    one JSON object, the same on both clusters; words and relative times are the reader's.
Never  a sentence of its own, and no password: values name the Secrets that have one.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from paceline.apimachinery.meta import Object, annotations_of, is_deleting, name_of, namespace_of, uid_of
from paceline.apimachinery.timestamps import to_wire
from paceline.model import well_known_labels
from paceline.model.app_status import AppStatus
from paceline.presentation.actions import APP_ACTIONS, Choices, plan_action, refusal_of
from paceline.presentation.apps.app_parts import AppObjects, board_logs, containers_in, routes_of, services_of
from paceline.presentation.apps.app_summary import record_status_of, status_of
from paceline.presentation.apps.changed_values import changed_specs, effective_values
from paceline.presentation.events import event_row, in_order
from paceline.presentation.job_page import MAX_EVENTS, job_page

# What the page of an application shows differently, or not at all.
LEFT_OUT = ("now", "events", "eventCount", "conditions", "actions", "tensorboard")


def app_page(objects: AppObjects, now: datetime) -> dict[str, Any]:
    """Return everything that the page of an application shows."""
    app, status = objects.app, status_of(objects.app)
    jobs = {name_of(job): job for job in objects.owned_by(app, objects.jobs)}
    pages = {name: _job_page(objects, job, now) for name, job in jobs.items()}
    current = status.job[1] if status.job else ""
    job, page = jobs.get(current), pages.get(current)
    events = list(_events(objects, page))
    return {
        "now": to_wire(now),
        **_identity(app, status),
        "job": {name: value for name, value in page.items() if name not in LEFT_OUT} if page else None,
        "services": services_of(objects, page, job),
        "containers": containers_in(objects, page, job),
        "logs": [*_logs(objects, pages), *({**log, "revision": None} for log in board_logs(objects))],
        "routes": routes_of(objects),
        "revisions": list(_revisions(objects, frozenset(jobs))),
        "values": _values(app),
        "events": events[-MAX_EVENTS:],
        "eventCount": len(events),
        "actions": [
            {"action": plan.action.value, "possible": plan.is_possible, "reason": refusal_of(plan)}
            for plan in (plan_action(action, app, Choices(now=now)) for action in APP_ACTIONS)
        ],
    }


def _job_page(objects: AppObjects, job: Object, now: datetime) -> dict[str, Any]:
    return job_page(job, objects.owned_by(job, objects.pods), objects.events, now)


def _identity(app: Object, status: AppStatus) -> dict[str, Any]:
    spec = app.get("spec") or {}
    template = spec.get("template") or {}
    return {
        "kind": "TrainingApp",
        "apiVersion": app.get("apiVersion"),
        "namespace": namespace_of(app),
        "name": name_of(app),
        "uid": uid_of(app),
        "isDeleting": is_deleting(app),
        "phase": status.phase.value,
        "revision": status.revision,
        "created": str((app.get("metadata") or {}).get("creationTimestamp") or "") or None,
        "updated": to_wire(status.updated) if status.updated else None,
        "waiting": status.waiting,
        "message": status.message,
        "template": str(template.get("name") or ""),
        "templateVersion": str(template.get("version") or ""),
        "jobName": status.job[1] if status.job else "",
        "jobKind": status.job[0] if status.job else str((spec.get("job") or {}).get("kind") or ""),
        "askedBy": annotations_of(app).get(well_known_labels.ASKED_BY, ""),
    }


def _logs(objects: AppObjects, pages: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the logs of all revisions whose jobs are kept, the newest first."""
    numbers = {record["spec"]["job"]["name"]: record["spec"]["revision"] for record in _records(objects)}
    for name, page in sorted(pages.items(), key=lambda item: -numbers.get(item[0], 0)):
        for log in page["logs"]:
            yield {**log, "revision": numbers.get(name)}


def _records(objects: AppObjects) -> list[Object]:
    """Return the records of the application's revisions, oldest first."""
    return sorted(objects.owned_by(objects.app, objects.records), key=lambda record: int(record["spec"]["revision"]))


def _revisions(objects: AppObjects, jobs: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Yield the revisions, newest first, each with what it changed."""
    records = _records(objects)
    for index in reversed(range(len(records))):
        spec = records[index]["spec"]
        changes = changed_specs(records[index - 1]["spec"], spec) if index else {}
        job, status = spec["job"], record_status_of(records[index])
        yield {
            "revision": spec["revision"],
            "isFirst": index == 0,
            "job": str(job["name"]),
            "kind": str(job["kind"]),
            "exists": job["name"] in jobs,
            "phase": status.phase.value,
            "created": (records[index].get("metadata") or {}).get("creationTimestamp"),
            "started": to_wire(status.start_time) if status.start_time else None,
            "ended": to_wire(status.completion_time) if status.completion_time else None,
            "commit": status.commit,
            "message": status.message,
            "metrics": dict(status.metrics or {}),
            "hyperparameters": dict(spec.get("hyperparameters") or {}),
            "results": str(spec.get("results") or ""),
            "template": str(spec.get("template") or ""),
            "askedBy": annotations_of(records[index]).get(well_known_labels.ASKED_BY, ""),
            "changes": [{"path": path, "old": pair[0], "new": pair[1]} for path, pair in changes.items()],
        }


def _values(app: Object) -> dict[str, Any]:
    """Return the values as they are written, and as they hold together with the template's defaults."""
    spec = app.get("spec") or {}
    defaults = effective_values({"template": spec.get("template")})
    return {"written": spec.get("values") or {}, "effective": effective_values(spec), "defaults": defaults}


def _events(objects: AppObjects, page: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    """Yield the events of the application, its current job and its TensorBoards, oldest first."""
    boards = objects.boards
    pods = (pod for board in boards for pod in objects.owned_by(board, objects.pods))
    uids = {uid_of(obj) for obj in (objects.app, *boards, *pods)}
    rows = [
        event_row(event) for event in in_order(objects.events) if (event.get("involvedObject") or {}).get("uid") in uids
    ]
    yield from sorted([*rows, *(page["events"] if page else ())], key=lambda row: str(row["time"])[:19])
