"""`paceline run`: create the objects in files and follow the job until it ends."""

from contextlib import closing
from dataclasses import dataclass

import click

from paceline.apimachinery.meta import Object
from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import err, out, say_hint
from paceline.cli.output.follow import FollowView, Screen
from paceline.cli.output.job_outcome import say_ending
from paceline.cli.prompts import Interrupts, can_ask, choose
from paceline.cli.sessions import session_started
from paceline.errors import AlreadyExists
from paceline.host.clock import RealClock
from paceline.model.job_status import Phase
from paceline.sdk.client import Session
from paceline.sdk.follow import Ended, FollowOptions, ReplicaSelector
from paceline.sdk.job import JobRef
from paceline.sdk.job_summary import phase_of
from paceline.sdk.submission.manifest import read_file
from paceline.sdk.submission.submit import Document, with_namespace

TICK_SECONDS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `paceline run`."""

    detach: bool = False
    all: bool = False
    replace: bool = False


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-d", "--detach", is_flag=True, help="Return as soon as the objects are created.")
@click.option("--all", is_flag=True, help="Follow the logs of all replicas instead of the leader only.")
@click.option("--replace", is_flag=True, help="Delete an existing job of the same name first.")
@reaches_cluster
def command(*, reach: ClusterOptions, files: tuple[str, ...], **options: bool) -> int:
    r"""Create the objects in YAML files and follow the job until it ends.

    Starts the embedded cluster if it is not running. The job continues when this command is interrupted.
    A file may contain several objects, such as a job and its claims; - reads standard input.

    Exit code: 0 if the job succeeded, 1 if it failed.

    \b
    Examples:
      paceline run job.yaml
      paceline run job.yaml --all --replace
    """
    return run(reach, files, RunOptions(**options))


def run(reach: ClusterOptions, files: tuple[str, ...], manner: RunOptions) -> int:
    """Create all objects, then follow the jobs one after another unless detached."""
    documents = tuple(document for path in files for document in read_file(path))
    if reach.namespace:
        documents = tuple(with_namespace(document, reach.namespace, is_chosen=True) for document in documents)
    with session_started(reach) as session:
        if manner.replace:
            remove_old(session, documents)
        jobs = create(session, documents)
        if manner.detach:
            for ref in jobs:
                say_next(ref)
            return exit_codes.OK
        codes = [follow(session, ref, manner) for ref in jobs]
    return max(codes, default=exit_codes.OK)


def create(session: Session, documents: tuple[Document, ...]) -> tuple[JobRef, ...]:
    """Create all objects, print them, and return the jobs."""
    try:
        created = session.create(documents)
    except AlreadyExists as error:
        raise AlreadyExists(f"{error}; choose another name, or replace it with --replace") from error
    err().lines(str(entry) for entry in created)
    return tuple(entry.job for entry in created if entry.job is not None)


def remove_old(session: Session, documents: tuple[Document, ...]) -> None:
    """Delete existing jobs with the same names and wait until they are gone."""
    from paceline.cli.resource_args import remove_and_wait

    for document in documents:
        kind = session.kinds.of(document.object["apiVersion"], document.object["kind"])
        if kind.is_job:
            remove_and_wait(session, kind, document.object["metadata"])


def follow(session: Session, ref: JobRef, manner: RunOptions) -> int:
    """Follow one job until it ends and return the exit code; Ctrl-C asks what to do."""
    clock = RealClock()
    screen = Screen(out(), err(), clock.monotonic)
    watcher = FollowView(ref.name, screen, clock, has_prefix=manner.all)
    # Request ticks even without a status line: Ctrl-C is checked on each event.
    options = FollowOptions(choice=ReplicaSelector(is_all=manner.all), has_earlier_tries=True, tick=TICK_SECONDS)
    with Interrupts() as interrupts, closing(ref.follow(options)) as events:
        for event in events:
            watcher.show(event)
            if isinstance(event, Ended):
                return ended(session, ref, event.job)
            if interrupts.is_pressed:
                screen.close()
                code = interrupts.paused(lambda: interrupted(ref))
                if code is not None:
                    return code
    return exit_codes.FAILED


def ended(session: Session, ref: JobRef, job: Object | None) -> int:
    """Print how the job ended."""
    if job is None:
        err().line(f"✗ {ref.name} was deleted", "red")
        return exit_codes.FAILED
    say_ending(session, ref, job, to=err(), now=RealClock().now())
    return exit_codes.OK if phase_of(job) is Phase.SUCCEEDED else exit_codes.FAILED


def interrupted(ref: JobRef) -> int | None:
    """Ask what to do with the job after Ctrl-C. Return None to keep following, else an exit code."""
    if not can_ask():
        say_hint(
            f"{ref.name} keeps running; paceline logs -f {ref.name} follows it, paceline delete {ref.name} ends it"
        )
        return exit_codes.INTERRUPTED
    choices = {
        "detach": "detach: the job keeps running, this command exits",
        "stop": "stop the job: its processes exit, it can be resumed",
        "keep": "keep following",
    }
    match choose(f"{ref.name} is still running. What now?", choices, "detach"):
        case "stop":
            ref.pause()
            err().line(
                f"{ref.name} is being stopped; paceline resume {ref.name} starts it again, paceline delete ends it"
            )
        case "keep":
            return None
        case _:
            say_next(ref)
    return exit_codes.INTERRUPTED


def say_next(ref: JobRef) -> None:
    """Print the commands to try next for a running job."""
    say_hint(f"paceline logs -f {ref.name} follows it; paceline describe {ref.name} says how it is")
