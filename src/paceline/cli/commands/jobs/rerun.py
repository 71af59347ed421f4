"""`paceline rerun`: run a job again, as a new job."""

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import out, say_hint
from paceline.cli.sessions import session as session_with
from paceline.errors import AlreadyExists


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--name", "new", metavar="NEW", help="Name of the new job (default: NAME-2, or the next free number).")
@reaches_cluster
def command(*, reach: ClusterOptions, name: str, new: str | None) -> int:
    r"""Run a job again, as a new job with the same spec.

    The original job and its logs are kept; it may have ended or still be running. The new job starts neither paused nor
    suspended. An application runs again as its next revision.

    \b
    Examples:
      paceline rerun digits
      paceline rerun digits --name digits-again
    """
    with session_with(reach) as session:
        app = session.app(name)
        if app is not None and (new is None or "/" in name):
            out().line(f"{app} runs again as revision {app.rerun()}")
            say_hint(f"paceline logs -f {app.name} follows it; paceline history {app.name} compares the revisions")
            return exit_codes.OK
        try:
            ref = session.rerun(session.job(name), new)
        except AlreadyExists as error:
            raise AlreadyExists(f"{error}; choose another --name") from error
        out().line(f"{ref} created")
    say_hint(f"paceline logs -f {ref.name} follows it; paceline describe {ref.name} says how it is")
    return exit_codes.OK
