"""`paceline list`: the applications, in the columns of `helm list`."""

import click

from paceline.apimachinery.meta import Object, name_of, namespace_of
from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, prints_objects, reaches_cluster
from paceline.cli.output import formats
from paceline.cli.output.console import err, out
from paceline.cli.output.table import table
from paceline.cli.sessions import session as session_with
from paceline.sdk.apps.app import KIND, status_of

HEADER = ("NAME", "REVISION", "UPDATED", "STATUS", "CHART", "NAMESPACE")


@click.command()
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="List applications in all namespaces.")
@prints_objects
@reaches_cluster
def command(*, reach: ClusterOptions, everywhere: bool, output: str | None) -> int:
    r"""List applications.

    Shows the revision, update time, status and template of each application.

    \b
    Examples:
      paceline list
      paceline list --all-namespaces
    """
    with session_with(reach) as session:
        apps = sorted(session.apps(everywhere=everywhere), key=lambda app: (namespace_of(app), name_of(app)))
        namespace = session.namespace
    if output == "name":
        out().lines(formats.names((KIND, app) for app in apps))
    elif output in ("json", "yaml"):
        listed = formats.listed(apps, is_one=False)
        out().document(formats.as_json(listed) if output == "json" else formats.as_yaml(listed))
    elif not apps:
        err().line("No applications found" + ("." if everywhere else f" in namespace {namespace}."))
    else:
        out().lines(table(HEADER, [row(app) for app in apps]))
    return exit_codes.OK


def row(app: Object) -> tuple[str, ...]:
    """Return the table cells of one application."""
    status = status_of(app)
    updated = status.updated.astimezone().strftime("%a %b %e %H:%M:%S %Y") if status.updated else ""
    return (name_of(app), str(status.revision), updated, status.phase.value, chart(app), namespace_of(app))


def chart(app: Object) -> str:
    """Return the template and its version, or the kind of the job."""
    spec = app["spec"]
    template = spec.get("template") or {}
    if template:
        return f"{template.get('name')}-{template.get('version', '')}".rstrip("-")
    return str((spec.get("job") or {}).get("kind") or "")
