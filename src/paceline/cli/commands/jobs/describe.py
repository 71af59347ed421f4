"""`paceline describe`: details of a job, or of any other object with its events."""

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.output.console import out
from paceline.cli.output.describe import describe_job, describe_other
from paceline.cli.resource_args import find
from paceline.cli.sessions import open_session
from paceline.host.clock import RealClock
from paceline.sdk.apps.app import KIND as APP
from paceline.sdk.apps.app import ref_of


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME|KIND/NAME...")
@with_cluster_options
def describe(*, cluster: ClusterOptions, names: tuple[str, ...]) -> int:
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
    return exit_codes.OK
