"""`paceline restore`: replace the objects of the embedded cluster with a backup."""

from pathlib import Path

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import settings
from paceline.cli.output.console import err, out


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def command(*, file: Path) -> int:
    r"""Restore the objects of the embedded cluster from a backup.

    The cluster must be stopped. The current objects are moved aside. Processes of pods that are not in the backup are
    stopped at the next start of the cluster.

    \b
    Examples:
      paceline down
      paceline restore monday.paceline
      paceline up -d
    """
    from paceline.cluster.backup import restore
    from paceline.host.clock import RealClock

    chosen = settings()
    restored = restore(chosen, file, RealClock())
    out().line(f"Restored {restored.contents.objects} objects into {chosen.home}.")
    if restored.aside:
        err().line(f"  what was there before lies in {restored.aside}; remove it when you do not need it", "dim")
    err().line("  next: paceline up -d", "dim")
    return exit_codes.OK
