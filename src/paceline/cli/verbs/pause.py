"""`paceline pause`: stop a job's processes and keep the job."""

import click

from paceline.cli import failures
from paceline.cli.output import out
from paceline.cli.reach import Reach, reaches_cluster
from paceline.cli.sessions import session as session_with


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@reaches_cluster
def command(*, reach: Reach, names: tuple[str, ...]) -> int:
    r"""Stop a job's processes and keep the job.

    The job can be resumed. Training goes on from its last checkpoint, if the script keeps one.
    TensorBoards and Notebooks are paused too, by KIND/NAME.

    \b
    paceline pause digits
    paceline pause tensorboard/curves
    """
    with session_with(reach) as session:
        for ref in [session.service(name) or session.job(name) for name in names]:
            ref.pause()
            out().line(f"{ref} paused")
    return failures.OK
