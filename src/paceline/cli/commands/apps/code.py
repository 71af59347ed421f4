"""`paceline code`: repositories by name, with the revision and folder that are meant."""

from typing import Any

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import err, out, say_hint
from paceline.cli.output.durations import age
from paceline.cli.output.table import table
from paceline.cli.prompts import can_ask, confirm
from paceline.cli.sessions import session as session_with
from paceline.cli.sessions import session_started
from paceline.host.clock import RealClock
from paceline.sdk.job_summary import created_of
from paceline.sdk.resources.code_repositories import Code, CodeRepositories


@click.group()
def command() -> None:
    r"""Create, list and delete code by name: repositories and revisions.

    \b
    paceline code create mnist --git https://example.org/team/mnist.git --revision v1.2
    paceline code create closed --git https://example.org/team/closed.git --secret team-git
    paceline train --code mnist --command 'python3 train.py' NAME
    """


@command.command("create")
@click.argument("name")
@click.option("--git", "url", required=True, metavar="URL", help="Repository with the code, http or https.")
@click.option("--revision", default="", help="Branch, tag or commit of it.")
@click.option("--directory", default="", help="Folder of it in which the command runs.")
@click.option("--secret", default="", help="Secret with username and password, if it is private.")
@reaches_cluster
def create(*, reach: ClusterOptions, **told: Any) -> int:
    """Give a repository a name.

    A password is not part of it: put user and password into a secret, with the keys username and password, and name
    that secret.
    """
    code = Code(**told)
    code.check()
    with session_started(reach) as session:
        CodeRepositories(cluster=session.cluster, namespace=session.namespace).create(code)
    out().line(f"code/{code.name} created")
    say_hint(f"paceline train --code {code.name} … trains with it")
    return exit_codes.OK


@command.command("list")
@reaches_cluster
def list_codes(*, reach: ClusterOptions) -> int:
    """List the code that has a name."""
    with session_with(reach) as session:
        found = CodeRepositories(cluster=session.cluster, namespace=session.namespace).all()
        namespace = session.namespace
    if not found:
        err().line(f"No code found in namespace {namespace}.")
        return exit_codes.OK
    now = RealClock().now()
    rows = [
        (each.name, *(text or "<none>" for text in each.values.values()), age(created_of(each.object), now))
        for each in found
    ]
    out().lines(table(("NAME", "URL", "REVISION", "DIRECTORY", "SECRET", "AGE"), rows))
    return exit_codes.OK


@command.command("delete")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@reaches_cluster
def delete(*, reach: ClusterOptions, name: str, yes: bool) -> int:
    """Forget code; the repository stays, and so do applications that were made with it."""
    with session_with(reach) as session:
        codes = CodeRepositories(cluster=session.cluster, namespace=session.namespace)
        found = codes.named(name)
        if not yes and can_ask() and not confirm(f"Delete code {found.name} ({found.url})?"):
            return exit_codes.FAILED
        codes.delete(found)
    out().line(f"code/{name} deleted")
    say_hint(f"the repository {found.url} stays")
    return exit_codes.OK
