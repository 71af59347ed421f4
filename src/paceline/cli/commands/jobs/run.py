"""`paceline run`, `submit` and `check`: create or validate the objects in YAML files."""

from contextlib import closing
from dataclasses import dataclass

import click

from paceline.apimachinery.meta import Object
from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, settings, with_cluster_options
from paceline.cli.output.console import err, out, print_error, print_hint, print_warning
from paceline.cli.output.follow import FollowView, Screen
from paceline.cli.output.job_outcome import print_outcome
from paceline.cli.prompts import Interrupts, can_ask, choose
from paceline.cli.sessions import open_session, open_session_or_start
from paceline.errors import AlreadyExists, BadRequest, Invalid, PacelineError, TooLarge
from paceline.host.clock import RealClock
from paceline.model.job_status import Phase
from paceline.presentation.job_summary import phase_of
from paceline.sdk.apps.app import OWN_GROUP
from paceline.sdk.client import Session
from paceline.sdk.discovery import JOB_GROUP, PACELINE_GROUPS, SERVICE_GROUP
from paceline.sdk.follow import FollowOptions, JobEnded, ReplicaSelector
from paceline.sdk.job import JobRef
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
@with_cluster_options
def run(*, cluster: ClusterOptions, files: tuple[str, ...], **options: bool) -> int:
    r"""Run the jobs in YAML files and follow them until they end.

    Starts the embedded cluster if it is not running. The job continues when this command is interrupted.
    A file may contain several objects, such as a job and its claims; - reads standard input.

    Exit code: 0 if the job succeeded, 1 if it failed.

    \b
    Examples:
      paceline run job.yaml
      paceline run job.yaml --all --replace
    """
    return create_and_follow(cluster, files, RunOptions(**options))


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--replace", is_flag=True, help="Delete an existing job of the same name first.")
@with_cluster_options
def submit(*, cluster: ClusterOptions, files: tuple[str, ...], replace: bool) -> int:
    r"""Create the objects in YAML files and return at once.

    The same as `paceline run --detach`.

    \b
    Example:
      paceline submit job.yaml
    """
    return create_and_follow(cluster, files, RunOptions(detach=True, replace=replace))


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@with_cluster_options
def check(*, cluster: ClusterOptions, files: tuple[str, ...]) -> int:
    r"""Validate YAML files without creating anything.

    Applies the same rules as `paceline submit`. If the embedded cluster is running, or --kubeconfig selects a cluster,
    that cluster validates the objects. Otherwise only jobs, applications, TensorBoards and notebooks are validated, and
    claims that they refer to are not looked up.

    Exit code: 0 if all objects are valid, 1 if not.

    \b
    Example:
      paceline check job.yaml
    """
    documents: list[Document] = []
    problems: list[PacelineError] = []
    for path in files:
        try:
            documents += placed(cluster, read_file(path))
        except (BadRequest, TooLarge) as error:
            problems.append(error)
    validated, errors = validate(cluster, tuple(documents))
    for message in (message for error in (*problems, *errors) for message in exit_codes.messages(error)):
        print_error(message)
    if problems or errors:
        return exit_codes.FAILED
    out().lines(f"{document.place}: {document.object['kind']} {name(document)} is valid" for document in validated)
    return exit_codes.OK


Validation = tuple[tuple[Document, ...], tuple[PacelineError, ...]]


def validate(cluster: ClusterOptions, documents: tuple[Document, ...]) -> Validation:
    """Return the validated objects and their errors.

    Our kinds are validated here first, because that finds all faults at once; another cluster may have other rules.
    """
    from paceline.cluster.daemon import is_running
    from paceline.kinds import registry

    ours = tuple(document for document in documents if group_of(document) in PACELINE_GROUPS)
    invalid = {document.place: error for document in ours if (error := validate_locally(document))}
    if not cluster.is_embedded:
        invalid = {}
    elif not is_running(settings()):
        for document in documents:
            if document not in ours:
                label = f"{document.place}: {document.object['kind']} {name(document)}"
                print_warning(f"{label} was not validated, because no cluster is running")
        return ours, tuple(invalid.values())
    with open_session(cluster, find_claim_faults=registry.claim_faults) as session:
        remaining = tuple(document for document in documents if document.place not in invalid)
        return documents, (*invalid.values(), *session.check(remaining))


def validate_locally(document: Document) -> PacelineError | None:
    """Return why an object of one of our kinds is invalid."""
    from paceline.kinds import registry

    checks = {JOB_GROUP: registry.faults, SERVICE_GROUP: registry.service_faults, OWN_GROUP: registry.app_faults}
    faults = checks[group_of(document)](document.object)
    label = f"{document.place}: {str(document.object['kind']).lower()}/{name(document)}"
    return Invalid(faults, what=label) if faults else None


def group_of(document: Document) -> str:
    """Return the API group of an object; empty for the core group."""
    return str(document.object["apiVersion"]).rpartition("/")[0]


def name(document: Document) -> str:
    """Return the name of an object, or its prefix if the cluster generates the name."""
    metadata = document.object["metadata"]
    return str(metadata.get("name") or metadata.get("generateName"))


def placed(cluster: ClusterOptions, documents: tuple[Document, ...]) -> tuple[Document, ...]:
    """Return the objects in the namespace of -n, if that was given."""
    if not cluster.namespace:
        return documents
    return tuple(with_namespace(document, cluster.namespace, is_chosen=True) for document in documents)


def create_and_follow(cluster: ClusterOptions, files: tuple[str, ...], flags: RunOptions) -> int:
    """Create all objects, then follow the jobs one after another unless detached."""
    from paceline.kinds import registry

    documents = placed(cluster, tuple(document for path in files for document in read_file(path)))
    with open_session_or_start(cluster, find_claim_faults=registry.claim_faults) as session:
        session.check_claims(documents)
        if flags.replace:
            remove_old(session, documents)
        jobs = create(session, documents)
        if flags.detach:
            for ref in jobs:
                print_next_commands(ref)
            return exit_codes.OK
        codes = [follow(session, ref, flags) for ref in jobs]
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


def follow(session: Session, ref: JobRef, flags: RunOptions) -> int:
    """Follow one job until it ends and return the exit code; Ctrl-C asks what to do."""
    clock = RealClock()
    screen = Screen(out(), err(), clock.monotonic)
    watcher = FollowView(ref.name, screen, clock, has_prefix=flags.all)
    # Request ticks even without a status line: Ctrl-C is checked on each event.
    options = FollowOptions(choice=ReplicaSelector(is_all=flags.all), has_earlier_tries=True, tick=TICK_SECONDS)
    with Interrupts() as interrupts, closing(ref.follow(options)) as events:
        for event in events:
            watcher.show(event)
            if isinstance(event, JobEnded):
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
    print_outcome(session, ref, job, to=err(), now=RealClock().now())
    return exit_codes.OK if phase_of(job) is Phase.SUCCEEDED else exit_codes.FAILED


def interrupted(ref: JobRef) -> int | None:
    """Ask what to do with the job after Ctrl-C. Return None to keep following, else an exit code."""
    if not can_ask():
        print_hint(
            f"{ref.name} keeps running; follow it with `paceline logs -f {ref.name}`, "
            f"end it with `paceline delete {ref.name}`"
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
            err().line(f"{ref.name} is being stopped; to start it again: paceline resume {ref.name}")
        case "keep":
            return None
        case _:
            print_next_commands(ref)
    return exit_codes.INTERRUPTED


def print_next_commands(ref: JobRef) -> None:
    """Print the commands to try next for a running job."""
    print_hint(f"to follow it: paceline logs -f {ref.name}; for details: paceline describe {ref.name}")
