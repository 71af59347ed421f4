"""`paceline install`: create an application from a template and values."""

import click

from paceline.apimachinery.meta import Object
from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import out, say_hint
from paceline.cli.sessions import session_started
from paceline.cli.values_options import takes_values
from paceline.errors import AlreadyExists
from paceline.kinds.apps.templates.registry import find
from paceline.sdk.apps.app import APPS, ref_of
from paceline.sdk.apps.values import ValueOverrides, check, render


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("template", metavar="TEMPLATE")
@takes_values
@click.option("--dry-run", is_flag=True, help="Print the application without creating it.")
@click.option("--debug", is_flag=True, help="With --dry-run, also print the job and its resources.")
@reaches_cluster
def command(*, reach: ClusterOptions, name: str, template: str, overrides: ValueOverrides, **manner: bool) -> int:
    r"""Install an application from a template and values.

    Starts the embedded cluster if it is not running. Values that you do not set keep the template's defaults. To change
    values later, use `paceline upgrade`, which runs the next revision.

    \b
    Examples:
      paceline template show tensorflow-training
      paceline install mnist tensorflow-training -f values.yaml
      paceline install mnist tensorflow-training --set worker.gpuCount=0 --dry-run --debug
    """
    chosen = find(template)
    app = render(name, chosen, overrides.over(chosen.defaults()))
    check(app)
    if manner["dry_run"]:
        from paceline.cli.output.dry_run import print_plan

        print_plan(app, namespace=reach.namespace, is_full=manner["debug"])
        return exit_codes.OK
    with session_started(reach) as session:
        placed: Object = {**app, "metadata": {**app["metadata"], "namespace": session.namespace}}
        try:
            created = session.cluster.create(APPS, placed)
        except AlreadyExists as error:
            raise AlreadyExists(
                f"application {name} exists already; `paceline upgrade {name}` changes it, or choose another name"
            ) from error
        out().line(f"{ref_of(session.cluster, created)} installed")
    say_hint(f"paceline status {name} says how it is; paceline logs -f {name} follows its training")
    return exit_codes.OK
