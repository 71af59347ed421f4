"""`paceline history`: the revisions of an application, with what was changed and what came of it."""

import click

from paceline.assembly.clock import RealClock
from paceline.cli import failures, show
from paceline.cli.applications import history_rows
from paceline.cli.output import out, say_hint
from paceline.cli.reach import Reach, prints_objects, reaches_cluster
from paceline.cli.sessions import session as session_with
from paceline.cli.table import table
from paceline.cli.verbs.upgrade import app_named

HEADER = ("REVISION", "STARTED", "STATUS", "DURATION", "CHANGES", "METRICS")


@click.command()
@click.argument("name", metavar="NAME")
@prints_objects
@reaches_cluster
def command(*, reach: Reach, name: str, output: str | None) -> int:
    r"""List the revisions of an application, with what came of each.

    Records stay when the jobs are gone.

    \b
    paceline history mnist
    paceline diff mnist 1 2
    """
    with session_with(reach) as session:
        revisions = app_named(session, name).revisions()
    if output in ("json", "yaml"):
        listed = show.listed([each.record for each in revisions], is_one=False)
        out().document(show.as_json(listed) if output == "json" else show.as_yaml(listed))
        return failures.OK
    if output == "name":
        out().lines(f"jobrecord/{each.record['metadata']['name']}" for each in revisions)
        return failures.OK
    width = None if output == "wide" else out().width
    out().lines(table(HEADER, history_rows(revisions, RealClock().now()), width=width))
    if len(revisions) > 1:
        say_hint(f"paceline diff {name} {revisions[-2].number} {revisions[-1].number} puts two side by side")
    return failures.OK
