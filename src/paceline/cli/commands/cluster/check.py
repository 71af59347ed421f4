"""`paceline check`: read the complete store or backup and verify its integrity."""

from pathlib import Path

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import settings
from paceline.cli.output.console import out


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
def command(*, file: Path | None) -> int:
    r"""Verify the integrity of the object store or of a backup.

    The cluster may be running.

    \b
    Examples:
      paceline check
      paceline check monday.paceline
    """
    from paceline.cluster.backup import check_store

    path = file or settings().store
    contents = check_store(path)
    out().line(f"{path} is intact: {contents.objects} objects at revision {contents.revision}.")
    return exit_codes.OK
