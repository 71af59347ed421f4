"""`paceline version`: this command's version, and the cluster's."""

from importlib.metadata import version

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import out
from paceline.errors import PacelineError


@click.command()
@click.option("--client", is_flag=True, help="Print the version of this command only.")
@reaches_cluster
def command(*, reach: ClusterOptions, client: bool) -> int:
    r"""Print the version of this command and of the cluster.

    \b
    Examples:
      paceline version
      paceline version --client
    """
    out().line(f"paceline {version('paceline')}")
    if client:
        return exit_codes.OK
    try:
        with reach.reader() as reader:
            info = reader.ask("/version")
            out().line(f"cluster  {info.get('gitVersion', 'unknown')}")
    except PacelineError:
        out().line("cluster  none is running")
    return exit_codes.OK
