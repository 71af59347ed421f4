"""`paceline upgrade`: change the values of an application and run its next revision."""

import click

from paceline.apimachinery.field_errors import nearest
from paceline.apimachinery.meta import Object
from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import out, say_hint, say_warning
from paceline.cli.sessions import session as session_with
from paceline.cli.values_options import takes_values
from paceline.errors import BadRequest, NotFound
from paceline.kinds.apps.templates.registry import find
from paceline.sdk.apps.app import AppRef, status_of
from paceline.sdk.apps.values import ValueOverrides, changed_values, check, refuse_unchanged
from paceline.sdk.client import Session


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("template", metavar="[TEMPLATE]", default="")
@takes_values
@click.option(
    "--reset-values", is_flag=True, help="Start from the template's default values instead of the current ones."
)
@click.option("--dry-run", is_flag=True, help="Print the changes without applying them.")
@reaches_cluster
def command(*, reach: ClusterOptions, name: str, template: str, overrides: ValueOverrides, **manner: bool) -> int:
    r"""Change the values of an application and run its next revision.

    Values that you do not set keep their current value. The previous revision is stopped first; its logs, results and
    record are kept. An upgrade that changes nothing is rejected.

    \b
    Examples:
      paceline upgrade mnist --set hyperparams.learningrate=0.0005
      paceline upgrade mnist -f values.yaml --reset-values
    """
    with session_with(reach) as session:
        ref = app_named(session, name)
        current = ref.read()
        updated = changed(current, overrides, template=template, is_reset=manner["reset_values"])
        number = status_of(current).revision
        refuse_unchanged(current, updated, number)
        check(updated)
        differences = changed_values(current["spec"].get("values") or {}, updated["spec"]["values"])
        out().lines(f"{where}: {said(old)} → {said(new)}" for where, (old, new) in differences.items())
        if manner["dry_run"]:
            return exit_codes.OK
        ref.change(updated)
        out().line(f"{ref} upgraded to revision {number + 1}")
        if updated["spec"].get("suspend"):
            say_warning(f"{name} is stopped; `paceline resume {name}` lets the new revision run")
    say_hint(f"paceline logs -f {name} follows it; paceline history {name} compares the revisions")
    return exit_codes.OK


def app_named(session: Session, name: str) -> AppRef:
    """Return an application; NotFound suggests a similar name."""
    app = session.app(name)
    if app is not None:
        return app
    suggestion = nearest(name, (str(app_object["metadata"]["name"]) for app_object in session.apps()))
    hint = f"did you mean {suggestion}?" if suggestion else "`paceline list` shows those there are"
    raise NotFound(f"there is no application named {name!r} in namespace {session.namespace!r}; {hint}")


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


def said(value: object) -> str:
    """Format a value, or a placeholder if there is none."""
    return "not set" if value is None else str(value)
