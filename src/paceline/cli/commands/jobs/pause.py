"""`paceline pause`: stop the processes of a job and keep the job."""

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import out
from paceline.cli.resource_args import meant
from paceline.cli.sessions import session as session_with
from paceline.sdk.interactive import ServiceRef


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@reaches_cluster
def command(*, reach: ClusterOptions, names: tuple[str, ...]) -> int:
    r"""Pause a job: stop its processes but keep the job.

    Use `paceline resume` to continue: training starts from its last checkpoint if the script saves one. TensorBoards
    and notebooks can be paused with KIND/NAME.

    \b
    Examples:
      paceline pause digits
      paceline pause tensorboard/curves
    """
    with session_with(reach) as session:
        for target in [session.service(name) or meant(session, name) for name in names]:
            if isinstance(target, ServiceRef):
                target.pause()
            elif target.app is not None:
                target.app.stop()
            elif target.job is not None:
                target.job.pause()
            out().line(f"{target} paused")
    return exit_codes.OK
