"""`paceline history`: the revisions of an application with their changes and results."""

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, prints_objects, reaches_cluster
from paceline.cli.commands.apps.upgrade import app_named
from paceline.cli.output import formats
from paceline.cli.output.applications import history_rows
from paceline.cli.output.console import out, say_hint
from paceline.cli.output.table import table
from paceline.cli.sessions import session as session_with
from paceline.host.clock import RealClock

HEADER = ("REVISION", "STARTED", "STATUS", "DURATION", "CHANGES", "METRICS")


@click.command()
@click.argument("name", metavar="NAME")
@prints_objects
@reaches_cluster
def command(*, reach: ClusterOptions, name: str, output: str | None) -> int:
    r"""List the revisions of an application with their results.

    The records are kept after the jobs are deleted.

    \b
    Examples:
      paceline history mnist
      paceline diff mnist 1 2
    """
    with session_with(reach) as session:
        revisions = app_named(session, name).revisions()
    if output in ("json", "yaml"):
        listed = formats.listed([revision.record for revision in revisions], is_one=False)
        out().document(formats.as_json(listed) if output == "json" else formats.as_yaml(listed))
        return exit_codes.OK
    if output == "name":
        out().lines(f"jobrecord/{revision.record['metadata']['name']}" for revision in revisions)
        return exit_codes.OK
    width = None if output == "wide" else out().width
    out().lines(table(HEADER, history_rows(revisions, RealClock().now()), width=width))
    if len(revisions) > 1:
        say_hint(f"paceline diff {name} {revisions[-2].number} {revisions[-1].number} compares two revisions")
    return exit_codes.OK
