"""`paceline resume`: let a paused job run on."""

import click

from paceline.assembly.clock import RealClock
from paceline.cli import failures
from paceline.cli.output import out
from paceline.cli.reach import Reach, reaches_cluster
from paceline.cli.sessions import session as session_with
from paceline.sdk.service import ServiceRef


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@reaches_cluster
def command(*, reach: Reach, names: tuple[str, ...]) -> int:
    r"""Let a paused job run on.

    Its processes are started anew. TensorBoards and Notebooks go on too, by KIND/NAME.

    \b
    paceline resume digits
    paceline resume notebook/desk
    """
    with session_with(reach) as session:
        for ref in [session.service(name) or session.job(name) for name in names]:
            if isinstance(ref, ServiceRef):
                ref.resume(RealClock().now())
            else:
                ref.resume()
            out().line(f"{ref} resumed")
    return failures.OK
