"""`paceline template`: list, explain and render templates."""

import click

from paceline.cli import exit_codes
from paceline.cli.output.console import out, say_hint
from paceline.cli.output.table import table
from paceline.cli.values_options import takes_values
from paceline.kinds.apps.templates.explain import rows_of
from paceline.kinds.apps.templates.registry import TEMPLATES, find
from paceline.sdk.apps.values import ValueOverrides, check, render


@click.group()
def command() -> None:
    r"""List, explain and render application templates.

    \b
    Examples:
      paceline template list
      paceline template show tensorflow-training
      paceline template render mnist tensorflow-training -f values.yaml
    """


@command.command("list")
def list_templates() -> int:
    r"""List the templates.

    \b
    Example:
      paceline template list
    """
    out().lines(
        table(
            ("NAME", "VERSION", "DESCRIPTION"),
            [(template.name, template.version, template.description) for template in TEMPLATES],
        )
    )
    say_hint(f"paceline template show {TEMPLATES[0].name} explains one")
    return exit_codes.OK


@command.command("show")
@click.argument("template", metavar="TEMPLATE")
@click.option("--values", "is_values", is_flag=True, help="Print only the default values, as a YAML file to edit.")
def show_template(*, template: str, is_values: bool) -> int:
    r"""Show a template: what it does, and its values with their defaults.

    \b
    Examples:
      paceline template show tensorflow-training
      paceline template show tensorflow-training --values > values.yaml
    """
    chosen = find(template)
    if is_values:
        from paceline.cli.output.yaml_text import dump

        out().document(dump(chosen.defaults()))
        return exit_codes.OK
    out().line(f"{chosen.name} {chosen.version}: {chosen.description}")
    out().line()
    out().document(chosen.readme)
    out().line()
    out().lines(table(("VALUE", "DEFAULT", "MEANING"), rows_of(chosen), width=out().width))
    say_hint(f"paceline template show {chosen.name} --values > values.yaml writes a file to edit")
    return exit_codes.OK


@command.command("render")
@click.argument("name", metavar="NAME")
@click.argument("template", metavar="TEMPLATE")
@takes_values
@click.option("--debug", is_flag=True, help="Also print the job and its resources.")
def render_template(*, name: str, template: str, overrides: ValueOverrides, debug: bool) -> int:
    r"""Print the application that a template renders with the given values.

    The output is the same as that of the Helm chart.

    \b
    Example:
      paceline template render mnist tensorflow-training -f values.yaml
    """
    from paceline.cli.output.dry_run import print_plan

    chosen = find(template)
    app = render(name, chosen, overrides.over(chosen.defaults()))
    check(app)
    print_plan(app, is_full=debug)
    return exit_codes.OK
