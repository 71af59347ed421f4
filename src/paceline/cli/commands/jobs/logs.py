"""`paceline logs`: print or follow the logs of a job's replicas."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.output.console import out, print_hint
from paceline.cli.output.follow import prefixed
from paceline.cli.output.table import seconds_of
from paceline.cli.resource_args import PODS, job_or_pod
from paceline.cli.sessions import open_session
from paceline.errors import BadRequest, NotFound
from paceline.host.clock import RealClock
from paceline.model.app_status import AppPhase
from paceline.sdk.client import Session
from paceline.sdk.follow import Logged, ReplicaSelector
from paceline.sdk.job import JobRef
from paceline.sdk.logs.archived import LogArchiveReader, pod_log
from paceline.sdk.logs.merge import MOST, in_time_order
from paceline.sdk.logs.sources import LogOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """The replicas whose logs are shown, and the options that the server handles."""

    choice: ReplicaSelector
    ask: LogOptions

    @property
    def is_shared(self) -> bool:
        """Return True if several replicas may be shown, so that lines need a prefix."""
        return self.choice.is_all or bool(self.choice.role and self.choice.index is None)

    @property
    def is_merged(self) -> bool:
        """Return True if the logs of several replicas are sorted by time; followed logs already arrive in order."""
        return self.is_shared and not self.ask.is_followed

    @property
    def stamped(self) -> LogOptions:
        """Return the options for merging: timestamps are requested even if they are not shown."""
        return replace(self.ask, has_timestamps=True) if self.is_merged else self.ask


def read_moment(_ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """Parse --since and --until: a duration or a time."""
    if value is None:
        return None
    now = RealClock().now()
    with contextlib.suppress(ValueError):
        return now - timedelta(seconds=seconds_of(value))
    try:
        # A time without a zone is local time.
        return datetime.fromisoformat(value).astimezone()
    except ValueError as error:
        hint = "write a duration, such as 30s, 5m or 1h30m, or a time, such as 2030-01-31T12:00:00"
        raise click.BadParameter(f"{value!r} is neither a duration nor a time; {hint}", param=param) from error


@click.command()
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Follow the logs until the job ends, across restarts.")
@click.option("--all", is_flag=True, help="Logs of all replicas, ordered by time, each line prefixed with its replica.")
@click.option("--role", default="", help="Logs of the replicas of this role, such as worker.")
@click.option("--index", type=click.IntRange(min=0), help="Index of the replica within its role.")
@click.option("-c", "--container", default="", help="Container name.")
@click.option("--tail", type=click.IntRange(min=0), help="Number of recent lines to show per replica.")
@click.option(
    "--since", callback=read_moment, metavar="WHEN", help="Only lines newer than a duration (30s, 5m, 1h30m) or a time."
)
@click.option("--until", callback=read_moment, metavar="WHEN", help="Only lines older than a duration or a time.")
@click.option("--timestamps", is_flag=True, help="Prefix each line with its timestamp.")
@click.option("-p", "--previous", is_flag=True, help="Logs of the previous attempt.")
@click.option("-o", "--output", default="", metavar="FILE", help="Write the logs to FILE.")
@with_cluster_options
def logs(*, cluster: ClusterOptions, name: str, output: str, **options: Any) -> None:
    r"""Print or follow the logs of a job or pod.

    NAME is a job or a pod. For a job, the logs of the leader are shown unless you choose other replicas. Logs of
    deleted jobs and pods remain available for a while.

    \b
    Examples:
      paceline logs -f digits
      paceline logs digits --all --tail 20
      paceline logs digits --role worker --index 1
      paceline logs digits --all --since 2030-01-31T12:00 --until 2030-01-31T12:05 -o digits.log
    """
    choice = ReplicaSelector(is_all=options["all"], role=options["role"], index=options["index"])
    ask = LogOptions(
        is_followed=options["follow"],
        tail=options["tail"],
        since=options["since"],
        until=options["until"],
        has_timestamps=options["timestamps"],
        is_previous=options["previous"],
        container=options["container"],
    )
    if ask.is_followed and ask.until:
        raise BadRequest("--until and --follow cannot be combined; omit one of them")
    with open_session(cluster) as session:
        pieces = chunks(session, name, LogRequest(choice=choice, ask=ask))
        # Do not create or truncate the file before there is something to write.
        first = list(itertools.islice(pieces, 1))
        with written(output) as write:
            for member, text in itertools.chain(first, pieces):
                write(prefixed(text, f"{member} │ ".encode()) if member else text)
    if output:
        print_hint(f"written to {output}")


@contextlib.contextmanager
def written(file: str) -> Iterator[Callable[[bytes], object]]:
    """Yield the function that writes the logs: to a file unchanged, or to the terminal."""
    if not file:
        yield out().log
        return
    try:
        with Path(file).open("wb") as opened:
            yield opened.write
    except OSError as error:
        raise BadRequest(f"--output {file}: cannot be written: {error.strerror}") from error


def chunks(session: Session, name: str, options: LogRequest) -> Iterator[tuple[str, bytes]]:
    """Yield pieces of the log with their replica if several are shown; fall back to archived logs of deleted pods."""
    has_begun = False
    try:
        for piece in present(session, name, options):
            has_begun = True
            yield piece
    except NotFound as error:
        if has_begun:
            raise
        yield from gone(session, name, options, error)


def present(session: Session, name: str, options: LogRequest) -> Iterator[tuple[str, bytes]]:
    """Yield the log of an existing job or pod."""
    ref = followed_job(session, name) if options.ask.is_followed else job_or_pod(session, name)
    if isinstance(ref, str):
        yield from (("", text) for text in pod_log(session, ref, options.ask))
        return
    count = 0
    for logged in logs_of(session, ref, options):
        count += 1
        yield (str(logged.place) if options.is_shared else ""), logged.text
    if not count:
        print_hint(f"{ref} has no log lines{' in this period' if options.ask.since or options.ask.until else ''}")


def followed_job(session: Session, name: str) -> JobRef | str:
    """Return the job or pod to follow; the controller creates the job of a new application a moment later."""
    try:
        return job_or_pod(session, name)
    except NotFound:
        app = session.app(name)
        if app is None or app.status().phase is not AppPhase.PENDING:
            raise
    # Imported here because only this case needs it.
    from paceline.sdk.submission.train import wait_job

    return wait_job(session, app.name)


def logs_of(session: Session, ref: JobRef, options: LogRequest) -> Iterator[Logged]:
    """Return the logs of the selected replicas; several are merged by time."""
    if not options.is_merged:
        return ref.chunks(options.choice, options.ask)
    archived = archived_streams(session, ref, options) if not options.ask.is_previous else []
    try:
        live = ref.streams(options.choice, options.stamped)
    except NotFound:
        if not archived:
            raise
        live = []
    return together([*live, *archived], options)


def together(streams: list[Iterator[Logged]], options: LogRequest) -> Iterator[Logged]:
    """Merge logs by time, or concatenate them if there are too many to read at once."""
    if len(streams) > MOST:
        print_hint(f"more than {MOST} replicas: their logs are printed one after the other, with timestamps")
        return itertools.chain.from_iterable(streams)
    return in_time_order(streams, keeps_stamps=options.ask.has_timestamps)


def archived_streams(session: Session, ref: JobRef, options: LogRequest) -> list[Iterator[Logged]]:
    """Return the archived logs of replicas whose pods were deleted while the job still exists."""
    live = {pod.name for pod in ref.pods()}
    tasks = [task for task in ref.status().tasks if options.choice.is_all or task.get("type") == options.choice.role]
    missing = {row["name"] for task in tasks for row in task.get("replicas") or ()} - live
    history = LogArchiveReader(cluster=session.cluster, namespace=session.namespace)
    archived = history.pods(job=ref.name) if missing else ()
    deleted = [pod for pod in archived if pod.owner == ref.uid and pod.name in missing and not pod.pruned_at]
    if not deleted:
        return []
    names = ", ".join(sorted(pod.name for pod in deleted))
    print_hint(f"these pods were deleted; showing their archived logs: {names}")
    return history.job_logs(deleted, options.choice, options.stamped)


def gone(session: Session, name: str, options: LogRequest, error: NotFound) -> Iterator[tuple[str, bytes]]:
    """Yield the archived log of a deleted job or pod; raise the original error if there is none."""
    kind, slash, bare_name = name.partition("/")
    history, plain = LogArchiveReader(cluster=session.cluster, namespace=session.namespace), bare_name or name
    is_pod = bool(slash) and kind in PODS
    job = None if is_pod else job_named(session, name)
    # The name of an application stands for its current job.
    owner, plain = (job.uid, job.name) if job is not None else ("", plain)
    # If the job exists, skip logs of an earlier job with the same name.
    pods = [] if is_pod else [pod for pod in history.pods(job=plain) if owner in ("", pod.owner)]
    if pods:
        print_hint(f"the pods of {plain} were deleted at {pods[0].gone_at[:19]}Z; showing their archived logs")
        streams = history.job_logs(pods, options.choice, options.stamped)
        entries = together(streams, options) if options.is_merged else itertools.chain.from_iterable(streams)
        for logged in entries:
            yield (str(logged.place) if options.is_shared else ""), logged.text
        return
    pods = [] if owner or (slash and not is_pod) else list(history.pods(pod=plain))
    if not pods:
        raise error
    print_hint(f"pod {plain} was deleted at {pods[0].gone_at[:19]}Z; showing its archived log")
    yield from (("", text) for text in history.pod_log(pods[0], options.ask))


def job_named(session: Session, name: str) -> JobRef | None:
    """Return the job of this name, or None."""
    try:
        return session.job(name)
    except NotFound:
        return None
