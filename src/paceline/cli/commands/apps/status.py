"""`paceline status`: details of one application, in the order of `helm status`."""

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.commands.apps.upgrade import app_named
from paceline.cli.output.applications import print_status
from paceline.cli.output.console import out
from paceline.cli.sessions import session as session_with
from paceline.host.clock import RealClock


@click.command()
@click.argument("name", metavar="NAME")
@reaches_cluster
def command(*, reach: ClusterOptions, name: str) -> int:
    r"""Show an application and its resources.

    \b
    Example:
      paceline status mnist
    """
    with session_with(reach) as session:
        print_status(session, app_named(session, name), to=out(), now=RealClock().now())
    return exit_codes.OK
