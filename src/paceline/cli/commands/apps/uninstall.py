"""`paceline uninstall`: delete an application and the resources it owns."""

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import err, out, say_hint
from paceline.cli.prompts import can_ask, confirm
from paceline.cli.sessions import session as session_with
from paceline.sdk.apps.app import KIND


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the deletion to finish.")
@reaches_cluster
def command(*, reach: ClusterOptions, names: tuple[str, ...], yes: bool, no_wait: bool) -> int:
    r"""Uninstall applications and delete their resources.

    Deletes revisions, records, claims and TensorBoards; files on volumes are kept. An application that does not exist
    is not an error.

    \b
    Example:
      paceline uninstall mnist
    """
    with session_with(reach) as session:
        refs = [(name, session.app(name)) for name in names]
        existing = [ref for _, ref in refs if ref is not None]
        if existing and not yes and can_ask() and not confirm(f"Remove {', '.join(map(str, existing))} and all of it?"):
            return exit_codes.FAILED
        for name, ref in refs:
            if ref is None:
                err().line(f"app/{name} is not there")
                continue
            app = ref.read()
            ref.delete()
            if not no_wait:
                session.wait_gone(KIND, app)
            out().line(f"{ref} uninstalled")
    if existing:
        say_hint("files on volumes stay; `paceline get pv` shows the volumes")
    return exit_codes.OK
