"""The next revision of an application before it is made: what it changes in the values and in the job.

In     an application as it is, and as it would be; the record of its current revision.
Out    the differences and what follows, the same for the command line and the web console.
Never  reads from a cluster, and writes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Object, annotations_of, name_of
from paceline.errors import AlreadyExists
from paceline.kinds import registry
from paceline.kinds.apps.expand import digest_of, expand_app, release_of
from paceline.model import well_known_labels
from paceline.presentation.apps.app_summary import status_of
from paceline.presentation.apps.changed_values import Differences, changed_values, effective_values, template_of

# Fields of the spec that say what is trained.
TRAINED = ("template", "values", "job")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppChange:
    """The next revision of an application, before it is made."""

    revision: int
    # The job of the next revision.
    job_name: str
    # The job that is stopped first; empty if none runs.
    stops: str
    # The application is stopped, so that the next revision waits until it is resumed.
    is_suspended: bool
    # By path, the old and the new value: with the defaults of the template, and of the job that is created from them.
    values: Differences
    job: Differences


def with_values(app: Object, values: Mapping[str, Any]) -> Object:
    """Return an application with other values for its template."""
    return {**app, "spec": {**app["spec"], "values": dict(values)}}


def rolled_back(app: Object, record: Mapping[str, Any]) -> Object:
    """Return an application rolled back to one of its revisions; `record` is the spec of its JobRecord."""
    untrained_fields = {name: value for name, value in app["spec"].items() if name not in TRAINED}
    return {**app, "spec": {**untrained_fields, **recorded_spec(record)}}


def recorded_spec(record: Mapping[str, Any]) -> Object:
    """Return the part of an application's spec that the record of one of its revisions holds."""
    if template := str(record.get("template") or ""):
        return {"template": template_of(template), "values": record.get("values") or {}}
    return {"job": {"kind": record["job"]["kind"], "spec": record["job"]["spec"]}}


def noted(app: Object, person: str) -> Object:
    """Return an application with the name of the person who asks for its spec; unchanged if the name is unknown."""
    if not person:
        return app
    annotations = {**annotations_of(app), well_known_labels.ASKED_BY: person}
    return {**app, "metadata": {**app["metadata"], "annotations": annotations}}


def reject_unchanged(current: Object, updated: Object) -> None:
    """Raise AlreadyExists if an update changes nothing."""
    if digest_of(current) == digest_of(updated):
        name = name_of(current)
        raise AlreadyExists(
            f"nothing to change: revision {status_of(current).revision} of {name} already has these values; "
            f"to run it again: paceline rerun {name}"
        )


def app_change(current: Object, updated: Object, record: Mapping[str, Any] | None = None) -> AppChange:
    """Return what an update of a valid application changes.

    The record's spec shows the job that ran; without it, or if it is not that of the current spec, the job is
    rendered again.
    """
    status = status_of(current)
    job = status.job[1] if status.job else ""
    return AppChange(
        revision=status.revision + 1,
        job_name=release_of(updated, status.revision + 1).job,
        stops=job if not status.phase.is_final else "",
        is_suspended=bool(updated["spec"].get("suspend")),
        values=changed_app_values(current, updated),
        job=changed_values(*_jobs(current, updated, record)),
    )


def changed_app_values(current: Object, updated: Object) -> Differences:
    """Return the values that an update changes, also if it is not valid."""
    return changed_values(effective_values(current["spec"]), effective_values(updated["spec"]))


def _jobs(current: Object, updated: Object, record: Mapping[str, Any] | None) -> tuple[Object, Object]:
    # Both with the current revision's number: names and folders that contain it are not a change by a person.
    revision = max(status_of(current).revision, 1)
    if record is not None and record.get("digest") == digest_of(current):
        old_job = {"kind": record["job"]["kind"], "spec": record["job"]["spec"]}
    else:
        old_job = {} if registry.app_faults(current) else _job(current, revision)
    return old_job, _job(updated, revision)


def _job(app: Object, revision: int) -> Object:
    parts = expand_app(app, revision)
    return {"kind": parts.kind, "spec": dict(parts.spec)}
