"""`paceline describe` and `paceline delete`: jobs, applications and objects of any kind."""

import click

from paceline.apimachinery.meta import name_of
from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.output.console import out, print_error, print_hint
from paceline.cli.output.describe import describe_job, describe_other
from paceline.cli.prompts import confirm
from paceline.cli.resource_args import FoundObject, find, remove
from paceline.cli.sessions import open_session
from paceline.errors import NotFound
from paceline.host.clock import RealClock
from paceline.presentation.job_summary import claims_of, is_running
from paceline.sdk.apps.app import KIND as APP
from paceline.sdk.apps.app import ref_of


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME|KIND/NAME...")
@with_cluster_options
def describe(*, cluster: ClusterOptions, names: tuple[str, ...]) -> None:
    r"""Show a job's replicas, conditions, events and failure.

    \b
    Examples:
      paceline describe digits
      paceline describe pod/digits-1a2b3-worker-0
    """
    now = RealClock().now()
    with open_session(cluster) as session:
        for number, target in enumerate(find(session, names)):
            if number:
                out().line()
            if target.kind.is_job:
                describe_job(session, session.ref(target.kind, target.object), target.object, to=out(), now=now)
            elif target.kind == APP:
                from paceline.cli.output.applications import print_status

                print_status(session, ref_of(session.cluster, target.object), to=out(), now=now)
            else:
                describe_other(session, target.kind, target.object, to=out(), now=now)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME|KIND/NAME...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@with_cluster_options
def delete(*, cluster: ClusterOptions, names: tuple[str, ...], yes: bool) -> int:
    r"""Delete jobs or other resources.

    Deleting a job also deletes its pods and logs. Files on its claims are kept.

    \b
    Examples:
      paceline delete digits
      paceline delete pvc/digits
      paceline delete pods web-0 web-1
    """
    with open_session(cluster) as session:
        targets = find(session, names)
        if not yes and not is_confirmed(targets):
            return exit_codes.FAILED
        for target in targets:
            try:
                remove(session, target.kind, target.object)
            except NotFound:
                print_error(f"{called(target)} was already deleted")
                continue
            out().line(f"{called(target)} deleted")
    claims = {claim for target in targets if target.kind.is_job for claim, _ in claims_of(target.object)}
    if claims:
        print_hint(f"the files on {', '.join(f'pvc/{claim}' for claim in sorted(claims))} are kept")
    return exit_codes.OK


def is_confirmed(targets: list[FoundObject]) -> bool:
    """Ask for confirmation of what is deleted."""
    names = ", ".join(called(target) for target in targets)
    running = [target for target in targets if target.kind.is_job and is_running(target.object)]
    still = " (still running)" if running else ""
    return confirm(f"Delete {names}{still}?")


def called(target: FoundObject) -> str:
    """Return KIND/NAME, the form that other commands accept."""
    return f"{target.kind.singular}/{name_of(target.object)}"
