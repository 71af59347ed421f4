"""Details of one object: summary, replicas, conditions, failure and events."""

from collections.abc import Iterable
from datetime import datetime

from paceline.apimachinery.event_manifest import last_seen
from paceline.apimachinery.meta import Object, annotations_of, labels_of, name_of, namespace_of, uid_of
from paceline.apimachinery.timestamps import from_wire
from paceline.cli.output import formats
from paceline.cli.output.console import TextOutput
from paceline.cli.output.job_outcome import folders, print_failure, stages_table, values_of
from paceline.cli.output.table import age, pairs, share, short, size, table
from paceline.errors import Invalid, PacelineError
from paceline.model import well_known_labels
from paceline.model.gang import Gang
from paceline.model.job_status import JobStatus, Phase
from paceline.model.scheduling_queue import EMPTY, SchedulingQueue
from paceline.presentation.events import in_order
from paceline.presentation.job_summary import created_of, duration_of, reason_of, replicas_of, status_of
from paceline.presentation.queue_position import queue_sentence, waits_for_room
from paceline.presentation.replica_pods import ReplicaPod
from paceline.sdk.client import Session
from paceline.sdk.discovery import ResourceKind
from paceline.sdk.job import JobRef
from paceline.sdk.reader import scheduling_queue
from paceline.sdk.usage import claim_usages


def describe_job(session: Session, ref: JobRef, job: Object, *, to: TextOutput, now: datetime) -> None:
    """Print the details of a job."""
    status = status_of(job)
    queue = scheduling_queue(session.cluster) if waits_for_room(job) else EMPTY
    to.lines(pairs(summary_rows(job, status, now, queue)))
    section(to, "Files", files_table(session, job))
    section(to, "Replicas (* is the leader)", replicas_table(ref.pods(), now))
    section(to, "Stages", stages_table(status))
    section(to, "Conditions", conditions_table(job, now))
    if status.phase is Phase.FAILED or status.failure is not None:
        to.line()
        to.line("Failure:" if status.phase is Phase.FAILED else "Last failure:")
        print_failure(ref, job, to=to)
    section(to, "Events", events_table(ref.events(), now))


def describe_other(session: Session, kind: ResourceKind, obj: Object, *, to: TextOutput, now: datetime) -> None:
    """Print an object of any kind as YAML, with its events."""
    shown = {key: value for key, value in obj.items() if key != "metadata"}
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    to.document(formats.as_yaml({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **shown}))
    if kind.kind == "PersistentVolumeClaim":
        section(to, "Use", use_table(session, obj))
    mine = [event for event in session.events() if (event.get("involvedObject") or {}).get("uid") == uid_of(obj)]
    section(to, "Events", events_table(in_order(mine), now))


def use_table(session: Session, claim: Object) -> list[str]:
    """Return how full a claim is, if a node measures it."""
    try:
        claims = claim_usages(session.cluster, namespace_of(claim))
    except PacelineError:
        # On other clusters, users may not be allowed to read from nodes.
        return []
    mine = next((usage for usage in claims if usage.name == name_of(claim)), None)
    if mine is None:
        return []
    used, capacity = mine.used_bytes, mine.capacity_bytes
    return pairs([("Used", f"{size(used)} of {size(capacity)} ({share(used, capacity)})")])


def summary_rows(
    job: Object, status: JobStatus, now: datetime, queue: SchedulingQueue = EMPTY
) -> list[tuple[str, str]]:
    """Return the summary at the top."""
    ready, desired = replicas_of(job)
    lasted = duration_of(status, now)
    labels = ", ".join(f"{key}={value}" for key, value in labels_of(job).items())
    gang = _gang(job)
    return [
        ("Name", name_of(job)),
        ("Namespace", namespace_of(job)),
        ("Kind", f"{job.get('kind')} ({job.get('apiVersion')})"),
        ("Labels", labels),
        ("Phase", status.phase.value),
        ("Reason", reason_of(job)),
        ("Queue", queue_sentence(job, queue)),
        ("Replicas", f"{ready} of {desired}{_counted(status)}"),
        ("Size", _size(status)),
        ("Resources", _resources(gang)),
        ("Attempt", str(status.attempt) if status.attempt else ""),
        ("Restarts", _restarts(status, gang)),
        ("Commit", status.source.get("commit", "")),
        ("Hyperparameters", values_of(job)),
        ("TensorBoard", _board(status)),
        ("Asked by", annotations_of(job).get(well_known_labels.ASKED_BY, "")),
        ("Created", moment(created_of(job), now)),
        ("Started", moment(status.start_time, now)),
        ("Ended", moment(status.completion_time, now)),
        ("Duration", short(lasted) if lasted is not None else ""),
    ]


def _gang(job: Object) -> Gang | None:
    from paceline.kinds import registry

    try:
        return registry.expand(job, registry.ports_of(job))[1]
    except Invalid:
        # The conditions of the job already report why it is invalid.
        return None


def _resources(gang: Gang | None) -> str:
    """Format the total requests and limits of all replicas."""
    from paceline.kinds.resource_totals import say, totals

    return f"{text} (requests / limits)" if gang and (text := say(totals(gang))) else ""


def _restarts(status: JobStatus, gang: Gang | None) -> str:
    """Format the number of restarts and the limit."""
    limit = gang.backoff_limit if gang else None
    most = "" if limit is None else f" of at most {limit}"
    return f"{status.backoff_count}{most}" if status.backoff_count else ""


def _size(status: JobStatus) -> str:
    """Format the current and expected size of an elastic job."""
    size = {} if status.phase.is_final else status.elastic
    return f"{size['currentReplicas']} of {size['expectedReplicas']} expected replicas" if size else ""


def _board(status: JobStatus) -> str:
    """Format the name and state of the job's TensorBoard."""
    board = status.tensorboard
    return f"{(board.get('dependent') or {}).get('name', '')}: {board.get('note', '')}" if board else ""


def _counted(status: JobStatus) -> str:
    counts = [f"{count} {name}" for name, count in status.aggregate.items() if count]
    return f" ({', '.join(counts)})" if counts else ""


def files_table(session: Session, job: Object) -> list[str]:
    """Return where the job's claims are mounted and which local folders they are."""
    rows = list(folders(session, job))
    return table(("CLAIM", "MOUNTED AT", "FOLDER HERE"), rows) if rows else []


def moment(when: datetime | None, now: datetime) -> str:
    """Format a time in full and as an age."""
    return f"{when:%Y-%m-%d %H:%M:%S} UTC ({age(when, now)} ago)" if when else ""


def replicas_table(pods: Iterable[ReplicaPod], now: datetime) -> list[str]:
    """Return one row per attempt of every replica."""
    rows = [
        (
            str(pod.place) + (" *" if pod.is_leader else ""),
            pod.name,
            "Terminating" if pod.is_deleting else pod.phase,
            "" if pod.exit_code is None else str(pod.exit_code),
            str(pod.restarts),
            age(pod.started, now) if pod.started else "",
            f"{pod.reason}: {pod.message}" if pod.message else pod.reason,
        )
        for pod in pods
    ]
    header = ("REPLICA", "POD", "PHASE", "EXIT", "RESTARTS", "STARTED", "REASON")
    return table(header, rows) if rows else []


def conditions_table(job: Object, now: datetime) -> list[str]:
    """Return the conditions of a job as a table."""
    rows = [
        (
            str(condition.get("type", "")),
            str(condition.get("status", "")),
            age(from_wire(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else None, now),
            str(condition.get("reason") or ""),
            str(condition.get("message") or ""),
        )
        for condition in (job.get("status") or {}).get("conditions") or ()
    ]
    return table(("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"), rows) if rows else []


def events_table(events: Iterable[Object], now: datetime) -> list[str]:
    """Return the events as a table, oldest first."""
    rows = []
    for event in events:
        about = event.get("involvedObject") or {}
        count = int(event.get("count") or (event.get("series") or {}).get("count") or 1)
        when = last_seen(event)
        rows.append(
            (
                (age(from_wire(when), now) if when else "") + (f" (x{count})" if count > 1 else ""),
                str(event.get("type") or "Normal"),
                str(event.get("reason") or ""),
                f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
                str(event.get("message") or "").strip(),
            )
        )
    return table(("AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"), rows) if rows else []


def section(to: TextOutput, title: str, lines: Iterable[str]) -> None:
    """Print an indented block with a title, or nothing if there are no lines."""
    shown = list(lines)
    if not shown:
        return
    to.line()
    to.line(f"{title}:")
    to.lines(f"  {line}" for line in shown)
