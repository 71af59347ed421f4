"""`paceline resume`: let a paused job run on."""

import click

from paceline.cli import failures
from paceline.cli.output import out
from paceline.cli.reach import Reach, reaches_cluster
from paceline.cli.sessions import session as session_with


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@reaches_cluster
def command(*, reach: Reach, names: tuple[str, ...]) -> int:
    """Let a paused job run on.

    Its processes are started anew.
    """
    with session_with(reach) as session:
        for ref in [session.job(name) for name in names]:
            ref.resume()
            out().line(f"{ref} resumed")
    return failures.OK
