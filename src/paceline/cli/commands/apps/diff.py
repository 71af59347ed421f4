"""`paceline diff`: two revisions of an application side by side."""

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.commands.apps.upgrade import app_named
from paceline.cli.output.applications import diff_rows
from paceline.cli.output.console import out
from paceline.cli.output.table import table
from paceline.cli.sessions import session as session_with
from paceline.errors import NotFound
from paceline.host.clock import RealClock


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("first", type=click.IntRange(min=1), required=False)
@click.argument("second", type=click.IntRange(min=1), required=False)
@reaches_cluster
def command(*, reach: ClusterOptions, name: str, first: int | None, second: int | None) -> int:
    r"""Compare two revisions of an application.

    Shows the values that differ, all hyperparameters and the results. Without numbers, compares the last two revisions;
    with one number, compares that revision with the last one.

    \b
    Example:
      paceline diff mnist 1 2
    """
    with session_with(reach) as session:
        ref = app_named(session, name)
        revisions = ref.revisions()
        if first is None and len(revisions) < 2:
            raise NotFound(
                f"{ref} has {len(revisions)} revision so far; `paceline upgrade {name}` creates the next one"
            )
        older = ref.revision(first or revisions[-2].number)
        newer = ref.revision(second or revisions[-1].number)
    header = ("", f"REVISION {older.number}", f"REVISION {newer.number}")
    out().lines(table(header, diff_rows(older, newer, RealClock().now())))
    return exit_codes.OK
