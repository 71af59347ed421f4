"""`paceline submit`: `paceline run --detach` by another name."""

import click

from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.commands.jobs.run import RunOptions, run


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--replace", is_flag=True, help="Delete an existing job of the same name first.")
@reaches_cluster
def command(*, reach: ClusterOptions, files: tuple[str, ...], replace: bool) -> int:
    r"""Create the objects in YAML files and return.

    The same as `paceline run --detach`.

    \b
    Example:
      paceline submit job.yaml
    """
    return run(reach, files, RunOptions(detach=True, replace=replace))
