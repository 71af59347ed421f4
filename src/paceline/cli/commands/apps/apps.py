"""`paceline app list`, `status`, `history`, `diff` and `uninstall`, with the output of Helm's commands."""

import click

from paceline.apimachinery.field_errors import nearest
from paceline.apimachinery.meta import Object, name_of, namespace_of
from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, with_cluster_options, with_output_option
from paceline.cli.output import formats
from paceline.cli.output.console import err, out, print_hint
from paceline.cli.output.table import CTIME, table
from paceline.cli.prompts import confirm
from paceline.cli.sessions import open_session
from paceline.errors import NotFound
from paceline.host.clock import RealClock
from paceline.presentation.apps.app_summary import status_of
from paceline.sdk.apps.app import KIND, AppRef
from paceline.sdk.client import Session

LIST_HEADER = ("NAME", "REVISION", "UPDATED", "STATUS", "CHART", "NAMESPACE")
HISTORY_HEADER = ("REVISION", "STARTED", "STATUS", "DURATION", "CHANGES", "METRICS")


@click.command()
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="List applications in all namespaces.")
@with_output_option
@with_cluster_options
def list_apps(*, cluster: ClusterOptions, everywhere: bool, output: str | None) -> None:
    r"""List applications.

    Shows the revision, update time, status and template of each application.

    \b
    Examples:
      paceline app list
      paceline app list --all-namespaces
    """
    with open_session(cluster) as session:
        apps = sorted(session.apps(everywhere=everywhere), key=lambda app: (namespace_of(app), name_of(app)))
        namespace = session.namespace
    if output == "name":
        out().lines(formats.names((KIND, app) for app in apps))
    elif text := formats.as_text(formats.listed(apps, is_one=False), output):
        out().document(text)
    elif not apps:
        err().line("No applications found" + ("." if everywhere else f" in namespace {namespace}."))
    else:
        out().lines(table(LIST_HEADER, [row(app) for app in apps]))


def row(app: Object) -> tuple[str, ...]:
    """Return the table cells of one application."""
    status = status_of(app)
    updated = status.updated.astimezone().strftime(CTIME) if status.updated else ""
    return (name_of(app), str(status.revision), updated, status.phase.value, chart(app), namespace_of(app))


def chart(app: Object) -> str:
    """Return the template and its version, or the kind of the job."""
    spec = app["spec"]
    template = spec.get("template") or {}
    if template:
        return f"{template.get('name')}-{template.get('version', '')}".rstrip("-")
    return str((spec.get("job") or {}).get("kind") or "")


@click.command()
@click.argument("name", metavar="NAME")
@with_cluster_options
def status(*, cluster: ClusterOptions, name: str) -> None:
    r"""Show an application and its resources.

    \b
    Example:
      paceline app status mnist
    """
    from paceline.cli.output.applications import print_status

    with open_session(cluster) as session:
        print_status(session, app_named(session, name), to=out(), now=RealClock().now())


@click.command()
@click.argument("name", metavar="NAME")
@with_output_option
@with_cluster_options
def history(*, cluster: ClusterOptions, name: str, output: str | None) -> None:
    r"""List the revisions of an application with their results.

    The records are kept after the jobs are deleted.

    \b
    Examples:
      paceline app history mnist
      paceline app diff mnist 1 2
    """
    from paceline.cli.output.applications import history_rows

    with open_session(cluster) as session:
        revisions = app_named(session, name).revisions()
    if text := formats.as_text(formats.listed([revision.record for revision in revisions], is_one=False), output):
        out().document(text)
        return
    if output == "name":
        out().lines(f"jobrecord/{revision.record['metadata']['name']}" for revision in revisions)
        return
    width = None if output == "wide" else out().width
    out().lines(table(HISTORY_HEADER, history_rows(revisions, RealClock().now()), width=width))
    if len(revisions) > 1:
        print_hint(f"to compare two revisions: paceline app diff {name} {revisions[-2].number} {revisions[-1].number}")


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("first", type=click.IntRange(min=1), required=False)
@click.argument("second", type=click.IntRange(min=1), required=False)
@with_cluster_options
def diff(*, cluster: ClusterOptions, name: str, first: int | None, second: int | None) -> None:
    r"""Compare two revisions of an application.

    Shows the values that differ, all hyperparameters and the results. Without numbers, compares the last two revisions;
    with one number, compares that revision with the last one.

    \b
    Example:
      paceline app diff mnist 1 2
    """
    from paceline.cli.output.applications import diff_rows

    with open_session(cluster) as session:
        ref = app_named(session, name)
        revisions = ref.revisions()
        if first is None and len(revisions) < 2:
            raise NotFound(
                f"{ref} has only {len(revisions)} revision; to create the next one: paceline app upgrade {name}"
            )
        older = ref.revision(first or revisions[-2].number)
        newer = ref.revision(second or revisions[-1].number)
    header = ("", f"REVISION {older.number}", f"REVISION {newer.number}")
    out().lines(table(header, diff_rows(older, newer, RealClock().now())))


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the deletion to finish.")
@with_cluster_options
def uninstall(*, cluster: ClusterOptions, names: tuple[str, ...], yes: bool, no_wait: bool) -> int:
    r"""Uninstall applications and delete their resources.

    Deletes revisions, records, claims and TensorBoards; files on volumes are kept. An application that does not exist
    is not an error.

    \b
    Example:
      paceline app uninstall mnist
    """
    with open_session(cluster) as session:
        refs = [(name, session.app(name)) for name in names]
        existing = [ref for _, ref in refs if ref is not None]
        if existing and not yes and not confirm(f"Remove {', '.join(map(str, existing))} and all of it?"):
            return exit_codes.FAILED
        for name, ref in refs:
            if ref is None:
                err().line(f"app/{name} does not exist")
                continue
            app = ref.read()
            ref.delete()
            if not no_wait:
                session.wait_gone(KIND, app)
            out().line(f"{ref} uninstalled")
    if existing:
        print_hint("files on volumes are kept; to list the volumes: paceline get pv")
    return exit_codes.OK


def app_named(session: Session, name: str) -> AppRef:
    """Return an application; NotFound suggests a similar name."""
    app = session.app(name)
    if app is not None:
        return app
    suggestion = nearest(name, (str(app_object["metadata"]["name"]) for app_object in session.apps()))
    hint = f"did you mean {suggestion}?" if suggestion else "to list applications: paceline app list"
    raise NotFound(f"there is no application named {name!r} in namespace {session.namespace!r}; {hint}")
