"""Turn an application, its records and its jobs into what a decision looks at."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from paceline.apimachinery.meta import Object, annotations_of, is_deleting, labels_of, name_of, uid_of
from paceline.apimachinery.untrusted import untrusted
from paceline.kinds import registry
from paceline.kinds.apps import expand
from paceline.model import well_known_labels
from paceline.model.app_status import AppStatus, RecordStatus
from paceline.model.job_status import JobStatus
from paceline.plan.app.decide import AppSeen, Recorded, RevisionJob
from paceline.plan.job.plan import LogRef

# Whose last words count, where there are several types of replicas.
LEADERS = ("chief", "master", "launcher", "worker")


def look(app: Object, records: Iterable[Object], jobs: Iterable[Object]) -> AppSeen:
    """Read everything that one decision may look at; Malformed when nobody can read what others wrote.

    What goes wrong in between is a bug of ours: an application and a job without faults can be expanded.
    """
    spec = expand.read_app(app)
    return AppSeen(
        digest=expand.digest_of(app),
        status=AppStatus.from_wire(app.get("status") or {}),
        records=tuple(sorted(map(_record, records), key=lambda record: record.revision)),
        jobs=tuple(sorted(map(_job, jobs), key=lambda job: job.revision)),
        generation=_generation(app),
        is_suspended=spec.suspend,
        keeps=spec.revision_history_limit,
        without_gpu=expand.without_gpu(app),
        asked_by=annotations_of(app).get(well_known_labels.ASKED_BY, ""),
    )


def record_spec(app: Object, revision: int, *, digest: str) -> dict[str, Any]:
    """Write down what a revision is made of."""
    spec, parts = expand.read_app(app), expand.expand_app(app, revision)
    template = f"{spec.template.name}-{spec.template.version}".rstrip("-") if spec.template else ""
    optional: dict[str, Any] = {
        "template": template,
        "values": spec.values,
        "hyperparameters": dict(parts.hyperparameters),
        "results": parts.results,
    }
    return {
        "app": name_of(app),
        "revision": revision,
        "digest": digest,
        "job": {"kind": parts.kind, "name": expand.release_of(app, revision).job, "spec": dict(parts.spec)},
        **{name: value for name, value in optional.items() if value},
    }


def leader_log(job: RevisionJob) -> LogRef | None:
    """Return the log of the job's leader; None when the job never had a replica."""
    tasks = {str(task.get("type")): task.get("replicas") or () for task in job.status.tasks}
    order = [*(role for role in LEADERS if role in tasks), *tasks]
    replicas = tasks[order[0]] if order else ()
    if not replicas or not replicas[0].get("uid"):
        return None
    containers = replicas[0].get("containers") or ()
    return LogRef(pod=str(replicas[0]["name"]), container=str(containers[0]["name"]) if containers else "")


@untrusted
def _generation(app: Object) -> int:
    return int(app["metadata"].get("generation", 1))


@untrusted
def _record(record: Object) -> Recorded:
    spec = record["spec"]
    return Recorded(
        name=name_of(record),
        revision=int(spec["revision"]),
        digest=str(spec["digest"]),
        job=str(spec["job"].get("name") or ""),
        status=RecordStatus.from_wire(record.get("status") or {}),
    )


def _job(job: Object) -> RevisionJob:
    read = _read(job)
    # Not among what may be misread: a job without faults can be expanded, or its kind is broken.
    return read if read.status.phase.is_final else replace(read, cluster=registry.cluster_spec(job, read.status.ports))


@untrusted
def _read(job: Object) -> RevisionJob:
    read = JobStatus.from_wire(job.get("status") or {})
    return RevisionJob(
        kind=str(job["kind"]),
        name=name_of(job),
        uid=uid_of(job),
        revision=int(labels_of(job).get(well_known_labels.REVISION) or 0),
        status=read,
        is_paused=registry.is_paused(job),
        is_deleting=is_deleting(job),
        commit=read.source.get("commit", ""),
    )
