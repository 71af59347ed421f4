"""Tables of applications: their resources, their revisions, and the difference between two revisions."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from paceline.apimachinery.builtin.printers import service_address_cells
from paceline.apimachinery.meta import Object, labels_of, name_of
from paceline.apimachinery.pods import container_statuses_of, sidecars_of
from paceline.cli.output.console import TextOutput
from paceline.cli.output.table import CTIME, age, pairs, short, table
from paceline.errors import NotFound
from paceline.model import well_known_labels
from paceline.model.app_status import AppPhase
from paceline.model.replica_record import ReplicaPhase
from paceline.presentation.apps.app_summary import status_of
from paceline.presentation.apps.changed_values import changed_specs
from paceline.presentation.job_summary import created_of
from paceline.presentation.job_summary import status_of as job_status
from paceline.presentation.replica_pods import why
from paceline.sdk.apps.app import AppRef, Revision, resources_of_app
from paceline.sdk.client import Session
from paceline.sdk.job import JobRef

MAX_CHANGES = 3


def print_status(session: Session, ref: AppRef, *, to: TextOutput, now: datetime) -> None:
    """Print the summary of an application, then its resources by kind."""
    app = ref.read()
    status = status_of(app)
    template = app["spec"].get("template") or {}
    updated = status.updated.astimezone().strftime(CTIME) if status.updated else "not yet"
    to.lines(
        pairs(
            [
                ("NAME", ref.name),
                ("LAST DEPLOYED", updated),
                ("NAMESPACE", ref.namespace),
                ("STATUS", status.phase.value),
                ("REVISION", str(status.revision)),
                ("CHART", f"{template.get('name', '')}-{template.get('version', '')}".strip("-")),
                ("WAITING", status.waiting),
                ("REASON", status.message),
            ]
        )
    )
    job = current_job(session, ref)
    to.line("RESOURCES:")
    for title, header, rows in resources(session, ref, job, now=now):
        to.line(f"==> {title}")
        to.lines(table(header, rows))
        to.line()
    print_notes(ref, status.url, job, to=to)


def current_job(session: Session, ref: AppRef) -> JobRef | None:
    """Return the job of the current revision, or None."""
    try:
        return session.job(ref.name) if ref.status().job else None
    except NotFound:
        return None


Row = tuple[str, ...]
Group = tuple[str, Row, list[Row]]
Cells = Callable[[Object], Row]


def resources(session: Session, ref: AppRef, job: JobRef | None, *, now: datetime) -> Iterator[Group]:
    """Yield the resources of an application by kind, as table rows."""
    mine = resources_of_app(session.cluster, ref, job)
    groups: list[tuple[str, tuple[str, ...], tuple[Object, ...], Cells]] = [
        ("v1/ConfigMap", ("NAME", "DATA"), mine.config_maps, map_cells),
        ("v1/PersistentVolumeClaim", ("NAME", "STATUS", "VOLUME", "CAPACITY"), mine.claims, claim_cells),
        ("v1/Service", ("NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)"), mine.services, service_address_cells),
        ("v1beta1/TensorBoard", ("NAME", "DESIRED", "AVAILABLE", "IMAGE", "ADDRESS"), mine.boards, board_cells),
    ]
    for title, header, objects, cells in groups:
        if objects:
            rows = [(name_of(obj), *cells(obj), age(created_of(obj), now)) for obj in objects]
            yield title, (*header, "AGE"), rows
    if job is not None:
        yield "v1beta1/Job", ("NAME", "DESIRED", "SUCCESSFUL", "AGE"), replica_rows(job.read(), now)
    if mine.pods:
        rows = [(name_of(pod), *pod_cells(pod), age(created_of(pod), now)) for pod in mine.pods]
        yield "v1/Pod(related)", ("NAME", "READY", "STATUS", "RESTARTS", "AGE"), rows


def replica_rows(job: Object, now: datetime) -> list[Row]:
    """Return one row per replica: desired and succeeded. A single replica is shown without its index."""
    since, tasks = age(created_of(job), now), job_status(job).tasks
    members = [
        (str(task.get("type")), index, replica)
        for task in tasks
        for index, replica in enumerate(task.get("replicas") or ())
    ]
    rows: list[Row] = []
    for role, index, replica in members:
        done = replica.get("phase") == ReplicaPhase.SUCCEEDED.value
        rows.append((role if len(members) == 1 else f"{role}-{index}", "1", str(int(done)), since))
    return rows


def pod_cells(pod: Object) -> Row:
    """Return the cells READY, STATUS and RESTARTS of a pod; earlier attempts count as restarts."""
    status, statuses = pod.get("status") or {}, container_statuses_of(pod)
    long_running = {*sidecars_of(pod), *(container["name"] for container in pod["spec"]["containers"])}
    ready = sum(bool(container.get("ready")) for container in statuses if container["name"] in long_running)
    attempt = int(labels_of(pod).get(well_known_labels.ATTEMPT) or 0)
    restarts = attempt + sum(int(container.get("restartCount") or 0) for container in statuses)
    return f"{ready}/{len(long_running)}", why(status)[0] or str(status.get("phase") or "Pending"), str(restarts)


def map_cells(config_map: Object) -> Row:
    """Return the number of entries of a config map."""
    return (str(len(config_map.get("data") or {}) + len(config_map.get("binaryData") or {})),)


def claim_cells(claim: Object) -> Row:
    """Return the phase, volume and size of a claim."""
    status, spec = claim.get("status") or {}, claim["spec"]
    size = (status.get("capacity") or spec["resources"]["requests"]).get("storage", "")
    return str(status.get("phase") or "Pending"), str(spec.get("volumeName") or ""), str(size)


def board_cells(board: Object) -> Row:
    """Return the desired and available replicas, image and address of a TensorBoard."""
    desired = 0 if board["spec"].get("suspend") else 1
    status = board.get("status") or {}
    is_ready = status.get("phase") == "Running"
    image = str(board["spec"].get("image") or "the usual one")
    return str(desired), str(int(is_ready)), image, str(status.get("address") or "<none>")


def print_notes(ref: AppRef, url: str, job: JobRef | None, *, to: TextOutput) -> None:
    """Print the commands to try next."""
    notes = [
        ("Follow the training", f"paceline logs -f {ref.name}" if job is not None else ""),
        ("Compare revisions", f"paceline app history {ref.name}"),
        ("Show the curves", f"paceline tensorboard {ref.name}" if url else ""),
    ]
    to.line("NOTES:")
    to.lines(pairs(notes, indent=2))


def history_rows(revisions: tuple[Revision, ...], now: datetime) -> list[Row]:
    """Return one row per revision: start time, phase, duration, changes and metrics."""
    rows: list[Row] = []
    previous: Revision | None = None
    for revision in revisions:
        started = revision.status.start_time or created_of(revision.record)
        metrics = ", ".join(f"{name} {value}" for name, value in (revision.status.metrics or {}).items())
        rows.append(
            (
                str(revision.number),
                started.astimezone().strftime(CTIME) if started else "",
                revision.status.phase.value,
                duration(revision, now),
                changes(previous, revision),
                metrics or revision.status.message,
            )
        )
        previous = revision
    return rows


def duration(revision: Revision, now: datetime) -> str:
    """Format the duration of a revision, up to now if it is running."""
    status = revision.status
    is_over = status.completion_time is not None or status.phase is AppPhase.RUNNING
    if status.start_time is None or not is_over:
        return ""
    return short((status.completion_time or now) - status.start_time)


def changes(previous: Revision | None, current: Revision) -> str:
    """Summarize in one line what a revision changed."""
    if previous is None:
        return "installed"
    differences = differing(previous, current)
    if not differences:
        return "run again"
    first = [
        f"{where.removeprefix('values.')}={text(new)}" for where, (_, new) in list(differences.items())[:MAX_CHANGES]
    ]
    suffix = f" and {len(differences) - MAX_CHANGES} more" if len(differences) > MAX_CHANGES else ""
    return ", ".join(first) + suffix


def differing(older: Revision, newer: Revision) -> dict[str, tuple[Any, Any]]:
    """Return the differences between two revisions."""
    return changed_specs(older.record["spec"], newer.record["spec"])


def diff_rows(older: Revision, newer: Revision, now: datetime) -> list[Row]:
    """Return rows that compare two revisions: differing values, all hyperparameters, and the results."""
    rows: list[Row] = [(where, text(old), text(new)) for where, (old, new) in differing(older, newer).items()]
    pair = (older, newer)
    parameters = [revision.record["spec"].get("hyperparameters") or {} for revision in pair]
    shown = {row[0] for row in rows}
    rows += [
        (f"hyperparameters.{name}", parameters[0].get(name, ""), parameters[1].get(name, ""))
        for name in dict.fromkeys((*parameters[0], *parameters[1]))
        if f"hyperparameters.{name}" not in shown
    ]
    rows.append(("phase", *(revision.status.phase.value for revision in pair)))
    rows.append(("duration", *(duration(revision, now) for revision in pair)))
    if any(revision.status.commit for revision in pair):
        rows.append(("commit", *(revision.status.commit[:12] for revision in pair)))
    counted = [revision.status.metrics or {} for revision in pair]
    rows += [
        (f"metrics.{name}", counted[0].get(name, ""), counted[1].get(name, ""))
        for name in dict.fromkeys((*counted[0], *counted[1]))
    ]
    rows.append(("results", *(str(revision.record["spec"].get("results") or "") for revision in pair)))
    return rows


def text(value: object) -> str:
    """Format a value, or a placeholder if there is none."""
    return "-" if value is None else str(value)
