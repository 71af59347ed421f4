"""Objects as text: JSON, YAML and names for scripts, rows for people."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from paceline.apimachinery.meta import Object, name_of, namespace_of
from paceline.cli.output.console import escaped
from paceline.cli.output.table import age, short
from paceline.model.scheduling_queue import EMPTY, SchedulingQueue
from paceline.presentation.job_summary import created_of, duration_of, phase_of, reason_of, replicas_of, status_of
from paceline.presentation.queue_position import queue_sentence
from paceline.sdk.discovery import ResourceKind

JOB_HEADER = ("NAME", "KIND", "PHASE", "REPLICAS", "AGE", "REASON")
WIDE_JOB_HEADER = ("NAME", "KIND", "PHASE", "REPLICAS", "RESTARTS", "DURATION", "AGE", "REASON")


def job_row(job: Object, now: datetime, *, is_wide: bool = False, queue: SchedulingQueue = EMPTY) -> tuple[str, ...]:
    """Return the table cells of one job."""
    ready, desired = replicas_of(job)
    phase = "Deleting" if (job.get("metadata") or {}).get("deletionTimestamp") else phase_of(job).value
    first = (name_of(job), str(job.get("kind", "")), phase, f"{ready}/{desired}")
    last = (age(created_of(job), now), queue_sentence(job, queue) or reason_of(job))
    if not is_wide:
        return (*first, *last)
    status = status_of(job)
    lasted = duration_of(status, now)
    restarts = status.attempt + sum(status.role_restarts.values())
    return (*first, str(restarts), short(lasted) if lasted is not None else "", *last)


def as_json(objects: Any) -> str:
    """Format objects as JSON."""
    import orjson

    return escaped(orjson.dumps(objects, option=orjson.OPT_INDENT_2).decode())


def as_yaml(objects: Any) -> str:
    """Format objects as YAML, in field order, with multi-line texts as blocks."""
    # Imported here so that other formats do not load PyYAML.
    from paceline.cli.output.yaml_text import dump

    return dump(objects)


def as_text(objects: Any, output: str | None) -> str:
    """Format objects as JSON or YAML; empty for other formats, which are for people."""
    return {"json": as_json, "yaml": as_yaml}[output](objects) if output in ("json", "yaml") else ""


def listed(objects: Sequence[Object], *, is_one: bool) -> Object:
    """Return what `-o json` prints: the object itself, or a List."""
    if is_one and len(objects) == 1:
        return objects[0]
    return {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": list(objects)}


def names(kinds: Iterable[tuple[ResourceKind, Object]]) -> list[str]:
    """Return KIND/NAME of every object, the form that other commands accept."""
    return [f"{kind.singular}/{name_of(obj)}" for kind, obj in kinds]


def table_rows(
    answer: Object, now: datetime, *, is_wide: bool, has_namespace: bool
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return header and rows of a server-side table; from plain objects, names and ages."""
    if answer.get("kind") != "Table":
        items = answer.get("items", [answer])
        header: tuple[str, ...] = ("NAME", "AGE")
        rows: list[tuple[str, ...]] = [(name_of(item), age(created_of(item), now)) for item in items]
        spaces = [namespace_of(item) for item in items]
    else:
        shown = [
            number
            for number, column in enumerate(answer.get("columnDefinitions") or ())
            if is_wide or not column.get("priority")
        ]
        header = tuple(str(answer["columnDefinitions"][number]["name"]).upper() for number in shown)
        rows = [tuple(_cell(row["cells"][number]) for number in shown) for row in answer.get("rows") or ()]
        spaces = [namespace_of(row.get("object") or {}) for row in answer.get("rows") or ()]
    if not has_namespace:
        return header, list(rows)
    return ("NAMESPACE", *header), [(space, *row) for space, row in zip(spaces, rows, strict=True)]


def _cell(value: object) -> str:
    if value is None:
        return "<none>"
    return str(value).lower() if isinstance(value, bool) else str(value)
