"""`paceline backup`: copy the objects of the embedded cluster into one file."""

from pathlib import Path

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import settings
from paceline.cli.output.console import err, out
from paceline.errors import HostError


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
def command(*, file: Path, force: bool) -> int:
    r"""Copy the objects of the embedded cluster into one file.

    The cluster may run meanwhile. The file is whole or not there at all, can be read by its owner only, and has been
    checked. Volumes, logs and keys are not in it.

    \b
    paceline backup monday.paceline
    """
    from paceline.cluster.backup import back_up

    if file.exists() and not force:
        raise HostError(f"{file} is there already; choose another name, or say --force to replace it")
    contents = back_up(settings(), file)
    out().line(f"Backed up {contents.objects} objects at revision {contents.revision} to {file}.")
    err().line(f"  to go back to it: paceline down  ·  paceline restore {file}", "dim")
    return exit_codes.OK
