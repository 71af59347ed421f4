"""`paceline history`: jobs of the past, also deleted ones."""

import itertools
from datetime import datetime, timedelta

import click

from paceline.apimachinery.meta import Object
from paceline.apimachinery.timestamps import from_wire
from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.output import formats
from paceline.cli.output.console import TextOutput, err, out
from paceline.cli.output.describe import section
from paceline.cli.output.table import age, pairs, short, table
from paceline.cli.sessions import open_session
from paceline.errors import NotFound
from paceline.host.clock import RealClock
from paceline.presentation.job_history import history_row, results_of
from paceline.sdk.client import Session
from paceline.sdk.follow import ReplicaSelector
from paceline.sdk.history import job_record, job_records
from paceline.sdk.logs.archived import LogArchiveReader
from paceline.sdk.logs.sources import LogOptions


@click.command()
@click.argument("job", default="")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Show all namespaces.")
@click.option("--logs", "has_logs", is_flag=True, help="Print the logs of all replicas of JOB that were archived.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), help="Print the record of JOB in this format.")
@with_cluster_options
def history(*, cluster: ClusterOptions, job: str, everywhere: bool, has_logs: bool, output: str | None) -> None:
    r"""List the jobs of the past, or show one, also after it was deleted.

    JOB is the name of a job, of which the latest is shown, or the name of a record. Records are kept for 90 days;
    `history` in settings.yaml changes that.

    \b
    Examples:
      paceline history
      paceline history mnist
      paceline history mnist --logs
      paceline history mnist-1f409c2e -o yaml   # the spec, to run it again
    """
    if not job and (has_logs or output):
        raise click.UsageError("--logs and --output need the name of a job")
    with open_session(cluster) as session:
        if not job:
            show_list(job_records(session.cluster, "" if everywhere else session.namespace), everywhere=everywhere)
            return
        record = job_record(session.cluster, session.namespace, job)
        if has_logs:
            show_logs(session, record)
        elif output:
            shown = {**record, "metadata": {**record["metadata"], "managedFields": None}}
            del shown["metadata"]["managedFields"]
            out().document(formats.as_yaml(shown) if output == "yaml" else formats.as_json(shown))
        else:
            show_record(record, to=out(), now=RealClock().now())


def show_list(records: tuple[Object, ...], *, everywhere: bool) -> None:
    """Print a line for each record."""
    if not records:
        err().line("No jobs were recorded yet.")
        return
    now = RealClock().now()
    rows = []
    for entry in map(history_row, records):
        cells = (entry["name"], entry["kind"], entry["phase"], ran(entry), age(from_wire(entry["created"]), now))
        rows.append((*((entry["namespace"],) if everywhere else ()), *cells, entry["record"], entry["reason"]))
    header = ("NAME", "KIND", "OUTCOME", "RAN", "AGE", "RECORD", "REASON")
    out().lines(table(("NAMESPACE", *header) if everywhere else header, rows, width=out().width))


def ran(entry: Object) -> str:
    """Format how long a job ran."""
    return "" if entry["seconds"] is None else short(timedelta(seconds=entry["seconds"]))


def show_record(record: Object, *, to: TextOutput, now: datetime) -> None:
    """Print what is known of a job."""
    entry, status = history_row(record), record.get("status") or {}
    outcome = f"{entry['phase']} (was {entry['lastPhase']})" if entry["lastPhase"] else entry["phase"]
    facts = (
        ("Name", entry["name"]),
        ("Namespace", entry["namespace"]),
        ("Kind", entry["kind"]),
        ("Outcome", outcome),
        ("Reason", entry["reason"]),
        ("Created", entry["created"]),
        ("Started", entry["started"]),
        ("Ended", entry["ended"]),
        ("Ran for", ran(entry)),
        ("UID", entry["uid"]),
        ("Record", entry["record"]),
        ("Asked by", entry["askedBy"]),
        ("Application", entry["app"]),
        ("Commit", entry["commit"]),
        ("Results", results_of(record)),
        ("Hyperparameters", values(entry["hyperparameters"])),
        ("Metrics", values(entry["metrics"])),
    )
    to.lines(pairs(facts))
    rows = [(str(row.get("name")), str(row.get("phase") or "")) for row in status.get("replicas") or ()]
    section(to, "Replicas", table(("POD", "PHASE"), rows) if rows else [])
    lines = (status.get("failure") or {}).get("lastLines") or ()
    section(to, "Last lines of the log", [f"  {line}" for line in lines])
    events = [
        (age(from_wire(event["time"]), now), event["type"], event["reason"], event["object"], event["message"])
        for event in status.get("events") or ()
    ]
    section(to, "Events", table(("AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"), events) if events else [])


def values(table_of: Object) -> str:
    """Format names and values in one line."""
    return ", ".join(f"{name}={value}" for name, value in table_of.items())


def show_logs(session: Session, record: Object) -> None:
    """Print the archived logs of a job's replicas, one after the other."""
    entry = history_row(record)
    reader = LogArchiveReader(cluster=session.cluster, namespace=entry["namespace"])
    pods = [pod for pod in reader.pods(job=entry["name"]) if pod.owner == entry["uid"] and not pod.pruned_at]
    if not pods:
        raise NotFound(f"no logs of {entry['name']} are archived; while its pods exist: paceline logs {entry['name']}")
    everything = ReplicaSelector(is_all=True)
    for logged in itertools.chain.from_iterable(reader.job_logs(pods, everything, LogOptions())):
        out().log(b"".join(f"{logged.place} │ ".encode() + line for line in logged.text.splitlines(keepends=True)))
