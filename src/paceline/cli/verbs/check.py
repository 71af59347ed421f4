"""`paceline check`: read every byte of the store, or of a backup, and say whether it is whole."""

from pathlib import Path

import click

from paceline.cli import failures
from paceline.cli.output import out
from paceline.cli.reach import settings


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
def command(*, file: Path | None) -> int:
    r"""Check that the stored objects, or those of a backup, are whole.

    The cluster may run meanwhile.

    \b
    paceline check
    paceline check monday.paceline
    """
    from paceline.assembly.recovery import check_store

    path = file or settings().store
    contents = check_store(path)
    out().line(f"{path} is whole: {contents.objects} objects at revision {contents.revision}.")
    return failures.OK
