"""`paceline app install`, `upgrade`, `rollback` and `template`: commands that render values with a template."""

from collections.abc import Callable
from typing import Any

import click

from paceline.apimachinery.meta import Object
from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.commands.apps.apps import app_named
from paceline.cli.commands.apps.templates import print_plan, with_values_options
from paceline.cli.output.console import out, print_hint, print_warning
from paceline.cli.sessions import open_session, open_session_or_start
from paceline.errors import AlreadyExists, BadRequest
from paceline.kinds.apps.templates.registry import find
from paceline.presentation.apps.app_change import app_change, reject_unchanged, rolled_back
from paceline.presentation.apps.app_summary import status_of
from paceline.presentation.apps.changed_values import Differences
from paceline.sdk.apps.app import APPS, AppRef, ref_of
from paceline.sdk.apps.values import ValueOverrides, check, render

Command = Callable[..., Any]


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("template", metavar="TEMPLATE")
@with_values_options
@click.option("--dry-run", is_flag=True, help="Print the application without creating it.")
@click.option("--debug", is_flag=True, help="With --dry-run, also print the job and its resources.")
@with_cluster_options
def install(*, cluster: ClusterOptions, name: str, template: str, overrides: ValueOverrides, **flags: bool) -> None:
    r"""Install an application from a template and values.

    Starts the embedded cluster if it is not running. Values that you do not set keep the template's defaults. To change
    values later, use `paceline app upgrade`, which runs the next revision.

    \b
    Examples:
      paceline app template show tensorflow-training
      paceline app install mnist tensorflow-training -f values.yaml
      paceline app install mnist tensorflow-training --set worker.gpuCount=0 --dry-run --debug
    """
    chosen = find(template)
    app = render(name, chosen, overrides.over(chosen.defaults()))
    check(app)
    if flags["dry_run"]:
        print_plan(app, namespace=cluster.namespace, is_full=flags["debug"])
        return
    with open_session_or_start(cluster) as session:
        placed: Object = {**app, "metadata": {**app["metadata"], "namespace": session.namespace}}
        try:
            created = session.cluster.create(APPS, placed)
        except AlreadyExists as error:
            raise AlreadyExists(
                f"application {name} already exists; choose another name, or change it with `paceline app upgrade`"
            ) from error
        out().line(f"{ref_of(session.cluster, created)} installed")
    print_hint(f"to follow its training: paceline logs -f {name}; for details: paceline app status {name}")


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("template", metavar="[TEMPLATE]", default="")
@with_values_options
@click.option(
    "--reset-values", is_flag=True, help="Start from the template's default values instead of the current ones."
)
@click.option("--dry-run", is_flag=True, help="Print the changes without applying them.")
@with_cluster_options
def upgrade(*, cluster: ClusterOptions, name: str, template: str, overrides: ValueOverrides, **flags: bool) -> None:
    r"""Change the values of an application and run its next revision.

    Values that you do not set keep their current value. The previous revision is stopped first; its logs, results and
    record are kept. An upgrade that changes nothing is rejected. With --dry-run, the changed fields of the job are
    printed, too.

    \b
    Examples:
      paceline app upgrade mnist --set hyperparams.learningrate=0.0005
      paceline app upgrade mnist -f values.yaml --reset-values
    """
    with open_session(cluster) as session:
        ref = app_named(session, name)
        current = ref.read()
        updated = changed(current, overrides, template=template, is_reset=flags["reset_values"])
        change(ref, current, updated, is_dry_run=flags["dry_run"])


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("revision", type=click.IntRange(min=1), required=False)
@click.option("--dry-run", is_flag=True, help="Print the changes without applying them.")
@with_cluster_options
def rollback(*, cluster: ClusterOptions, name: str, revision: int | None, dry_run: bool) -> None:
    r"""Run an earlier revision of an application again.

    Without REVISION, the one before the current revision is used. The current revision is stopped first; its logs,
    results and record are kept. With --dry-run, the changed fields of the job are printed, too.

    \b
    Examples:
      paceline app history mnist
      paceline app rollback mnist 1
    """
    with open_session(cluster) as session:
        ref = app_named(session, name)
        current = ref.read()
        record = ref.revision(revision or status_of(current).revision - 1).record["spec"]
        change(ref, current, rolled_back(current, record), is_dry_run=dry_run)


def change(ref: AppRef, current: Object, updated: Object, *, is_dry_run: bool) -> None:
    """Print what changes and, unless it is a dry run, update the application to its next revision."""
    reject_unchanged(current, updated)
    check(updated)
    plan = app_change(current, updated, current_record(ref, current) if is_dry_run else None)
    print_differences(plan.values)
    if is_dry_run or not plan.values:
        print_differences(plan.job, prefix="job.")
    if is_dry_run:
        return
    ref.change(updated)
    out().line(f"{ref} upgraded to revision {plan.revision}")
    if plan.is_suspended:
        print_warning(f"{ref.name} is stopped; to run the new revision: paceline resume {ref.name}")
    print_hint(f"to follow it: paceline logs -f {ref.name}; to compare revisions: paceline app history {ref.name}")


def current_record(ref: AppRef, app: Object) -> Object | None:
    """Return the spec of the record of the current revision; None if it is not recorded yet."""
    number = status_of(app).revision
    return next((revision.record["spec"] for revision in ref.revisions() if revision.number == number), None)


def print_differences(differences: Differences, prefix: str = "") -> None:
    """Print a line for each difference: its path, the old and the new value."""
    out().lines(f"{prefix}{where}: {text(old)} → {text(new)}" for where, (old, new) in differences.items())


def changed(current: Object, overrides: ValueOverrides, *, template: str, is_reset: bool) -> Object:
    """Return the application with the new values."""
    spec = current["spec"]
    named = template or (spec.get("template") or {}).get("name")
    if not named:
        name = current["metadata"]["name"]
        raise BadRequest(
            f"{name} was created from a job, not from a template; change spec.job with kubectl edit app {name}"
        )
    chosen = find(str(named))
    values = overrides.over(chosen.defaults() if is_reset else spec.get("values") or {})
    latest = {"name": chosen.name, "version": chosen.version}
    reference = spec["template"] if not template and spec["template"]["name"] in (chosen.name, *chosen.also) else latest
    return {**current, "spec": {**spec, "template": reference, "values": values}}


def text(value: object) -> str:
    """Format a value, or a placeholder if there is none."""
    return "not set" if value is None else str(value)
