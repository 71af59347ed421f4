"""`paceline code`: named Git repositories, each with a revision and a folder."""

from typing import Any

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import err, out, say_hint
from paceline.cli.output.table import age, table
from paceline.cli.prompts import can_ask, confirm
from paceline.cli.sessions import session as session_with
from paceline.cli.sessions import session_started
from paceline.host.clock import RealClock
from paceline.sdk.code_repositories import Code, CodeRepositories
from paceline.sdk.job_summary import created_of


@click.group()
def command() -> None:
    r"""Manage named code repositories.

    \b
    Examples:
      paceline code create mnist --git https://example.org/team/mnist.git --revision v1.2
      paceline code create closed --git https://example.org/team/closed.git --secret team-git
      paceline train --code mnist --command 'python3 train.py' NAME
    """


@command.command("create")
@click.argument("name")
@click.option("--git", "url", required=True, metavar="URL", help="URL of the Git repository, http or https.")
@click.option("--revision", default="", help="Branch, tag or commit.")
@click.option("--directory", default="", help="Folder of the repository in which the command runs.")
@click.option("--secret", default="", help="Secret with the username and password of a private repository.")
@reaches_cluster
def create(*, reach: ClusterOptions, **options: Any) -> int:
    r"""Create a named code repository.

    For a private repository, store the credentials in a secret with the keys username and password, and pass its name
    with --secret.

    \b
    Example:
      paceline code create mnist --git https://example.org/team/mnist.git --revision v1.2
    """
    code = Code(**options)
    code.check()
    with session_started(reach) as session:
        CodeRepositories(cluster=session.cluster, namespace=session.namespace).create(code)
    out().line(f"code/{code.name} created")
    say_hint(f"paceline train --code {code.name} … trains with it")
    return exit_codes.OK


@command.command("list")
@reaches_cluster
def list_codes(*, reach: ClusterOptions) -> int:
    r"""List the named code repositories.

    \b
    Example:
      paceline code list
    """
    with session_with(reach) as session:
        codes = CodeRepositories(cluster=session.cluster, namespace=session.namespace).all()
        namespace = session.namespace
    if not codes:
        err().line(f"No code found in namespace {namespace}.")
        return exit_codes.OK
    now = RealClock().now()
    rows = [
        (code.name, *(text or "<none>" for text in code.values.values()), age(created_of(code.object), now))
        for code in codes
    ]
    out().lines(table(("NAME", "URL", "REVISION", "DIRECTORY", "SECRET", "AGE"), rows))
    return exit_codes.OK


@command.command("delete")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@reaches_cluster
def delete(*, reach: ClusterOptions, name: str, yes: bool) -> int:
    r"""Delete a named code repository.

    The Git repository and the applications that use it are kept.

    \b
    Example:
      paceline code delete mnist
    """
    with session_with(reach) as session:
        codes = CodeRepositories(cluster=session.cluster, namespace=session.namespace)
        code = codes.named(name)
        if not yes and can_ask() and not confirm(f"Delete code {code.name} ({code.url})?"):
            return exit_codes.FAILED
        codes.delete(code)
    out().line(f"code/{name} deleted")
    say_hint(f"the repository {code.url} stays")
    return exit_codes.OK
