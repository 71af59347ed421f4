"""`paceline restart`: restart the processes of a job."""

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import out, say_hint
from paceline.cli.resource_args import JobOrApp, meant
from paceline.cli.sessions import session as session_with


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@reaches_cluster
def command(*, reach: ClusterOptions, names: tuple[str, ...]) -> int:
    r"""Restart the processes of a running or stopped job.

    All replicas are stopped and started again. This does not count towards the backoff limit. To run a job that has
    ended, use `paceline rerun`; an application that has ended runs again as its next revision.

    \b
    Example:
      paceline restart digits
    """
    with session_with(reach) as session:
        for name in names:
            target = meant(session, name)
            out().line(f"{target} {again(target)}")
    say_hint(f"paceline logs -f {names[0]} follows it")
    return exit_codes.OK


def again(target: JobOrApp) -> str:
    """Restart a job, or resume or rerun an application, and return the text to print."""
    app, job = target.app, target.job
    if app is not None and app.status().phase.is_final:
        return f"restarting as revision {app.rerun()}"
    if app is not None and app.read()["spec"].get("suspend"):
        app.resume()
        return "goes on"
    if job is not None:
        job.restart()
    return "restarting"
