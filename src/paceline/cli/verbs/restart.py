"""`paceline restart`: start a job's processes anew."""

import click

from paceline.cli import failures
from paceline.cli.output import out, say_hint
from paceline.cli.reach import Reach, reaches_cluster
from paceline.cli.sessions import session as session_with


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@reaches_cluster
def command(*, reach: Reach, names: tuple[str, ...]) -> int:
    r"""Start the processes of a running or stopped job anew.

    All replicas end and are tried again, as after a pause; it does not count as a restart after a failure. A job that
    has ended is run again by paceline rerun.

    \b
    paceline restart digits
    """
    with session_with(reach) as session:
        restarted = [session.job(name) for name in names]
        for ref in restarted:
            ref.restart()
            out().line(f"{ref} restarting")
    say_hint(f"paceline logs -f {restarted[0].name} follows it")
    return failures.OK
