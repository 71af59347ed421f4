"""What records say about jobs of the past: rows of a list, and the facts of one."""

from collections.abc import Mapping
from typing import Any

from paceline.apimachinery.meta import Object, annotations_of, name_of, namespace_of
from paceline.apimachinery.timestamps import from_wire
from paceline.model import reasons, well_known_labels
from paceline.model.job_status import Failure, Phase
from paceline.presentation.failure_advice import failure_line


def history_row(record: Object) -> dict[str, Any]:
    """Return what a list shows of a record; its phase is `NotFinished` until its outcome is written."""
    spec, status = record["spec"], record.get("status") or {}
    job = spec["job"]
    started, ended = str(status.get("startTime") or ""), end_of(record)
    return {
        "record": name_of(record),
        "namespace": namespace_of(record),
        "uid": str(spec.get("uid") or ""),
        "name": str(job.get("name") or ""),
        "kind": str(job.get("kind") or ""),
        "phase": str(status.get("phase") or reasons.NOT_FINISHED),
        "lastPhase": str(status.get("lastPhase") or ""),
        "isOver": bool(status.get("phase")),
        "reason": _reason(status),
        "created": str(spec.get("created") or record["metadata"]["creationTimestamp"]),
        "started": started,
        "ended": ended,
        "seconds": seconds_between(started, ended),
        "attempt": int(status.get("attempt") or 0),
        "app": str(spec.get("app") or ""),
        "askedBy": str(annotations_of(record).get(well_known_labels.ASKED_BY) or ""),
        "commit": str(status.get("commit") or ""),
        "metrics": dict(status.get("metrics") or {}),
        "hyperparameters": dict(spec.get("hyperparameters") or {}),
    }


def _reason(status: Mapping[str, Any]) -> str:
    """Return why a job ended: the replica that failed and its error, as the list of jobs has it, or the rule."""
    failure = status.get("failure") or {}
    if status.get("phase") != Phase.FAILED or not failure.get("replica"):
        return str(failure.get("message") or status.get("reason") or "")
    return failure_line(
        Failure(
            replica=str(failure["replica"]),
            exit_code=failure.get("exitCode"),
            reason=str(failure.get("reason") or ""),
            message=str(failure.get("message") or ""),
            last_lines=tuple(failure.get("lastLines") or ()),
        )
    )


def end_of(record: Object) -> str:
    """Return when a job ended or was deleted; empty if it has not."""
    status = record.get("status") or {}
    return str(status.get("completionTime") or status.get("deletionTime") or "")


def seconds_between(start: str, end: str) -> int | None:
    """Return the seconds between two times; None if one is missing or malformed."""
    try:
        return max(round((from_wire(end) - from_wire(start)).total_seconds()), 0) if start and end else None
    except ValueError:
        return None


def results_of(record: Object) -> str:
    """Return where the results of a job are; empty if its spec does not say."""
    output = (record["spec"]["job"].get("spec") or {}).get("output") or {}
    for sort in ("claim", "bucket", "directory"):
        if place := output.get(sort):
            name = place.get("name") if isinstance(place, dict) else place
            return f"{sort} {name}"
    return ""
