"""`paceline status`: one application in full, in the order of `helm status`."""

import click

from paceline.assembly.clock import RealClock
from paceline.cli import failures
from paceline.cli.applications import print_status
from paceline.cli.output import out
from paceline.cli.reach import Reach, reaches_cluster
from paceline.cli.sessions import session as session_with
from paceline.cli.verbs.upgrade import app_named


@click.command()
@click.argument("name", metavar="NAME")
@reaches_cluster
def command(*, reach: Reach, name: str) -> int:
    r"""Show an application and everything that belongs to it.

    \b
    paceline status mnist
    """
    with session_with(reach) as session:
        print_status(session, app_named(session, name), to=out(), now=RealClock().now())
    return failures.OK
