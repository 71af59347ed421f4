"""`paceline backup`: copy the objects of the embedded cluster to one file."""

from pathlib import Path

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import settings
from paceline.cli.output.console import err, out
from paceline.errors import HostError


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
def command(*, file: Path, force: bool) -> int:
    r"""Back up the objects of the embedded cluster to a file.

    The cluster may be running. The file is written atomically, verified, and readable by its owner only. It does not
    contain volumes, logs or keys.

    \b
    Example:
      paceline backup monday.paceline
    """
    from paceline.cluster.backup import back_up

    if file.exists() and not force:
        raise HostError(f"{file} is there already; choose another name, or say --force to replace it")
    contents = back_up(settings(), file)
    out().line(f"Backed up {contents.objects} objects at revision {contents.revision} to {file}.")
    err().line(f"  to restore it: paceline down  ·  paceline restore {file}", "dim")
    return exit_codes.OK
