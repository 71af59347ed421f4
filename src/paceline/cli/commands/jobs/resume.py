"""`paceline resume`: resume a paused job."""

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import out
from paceline.cli.resource_args import meant
from paceline.cli.sessions import session as session_with
from paceline.host.clock import RealClock
from paceline.sdk.interactive import ServiceRef


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@reaches_cluster
def command(*, reach: ClusterOptions, names: tuple[str, ...]) -> int:
    r"""Resume a paused job.

    The processes of the job are started again. TensorBoards and notebooks can be resumed with KIND/NAME.

    \b
    Examples:
      paceline resume digits
      paceline resume notebook/desk
    """
    with session_with(reach) as session:
        for target in [session.service(name) or meant(session, name) for name in names]:
            if isinstance(target, ServiceRef):
                target.resume(RealClock().now())
            elif target.app is not None:
                target.app.resume()
            elif target.job is not None:
                target.job.resume()
            out().line(f"{target} resumed")
    return exit_codes.OK
