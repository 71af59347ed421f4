"""`paceline app template`: list, explain and render templates; and the options that set values."""

import functools
from collections.abc import Callable
from typing import Any

import click

from paceline.apimachinery.meta import Object
from paceline.cli.output.console import out, print_hint
from paceline.cli.output.table import table
from paceline.kinds.apps.templates.registry import TEMPLATES, find, rows_of
from paceline.sdk.apps.values import ValueOverrides, check, parts_of, render

Command = Callable[..., Any]


def with_values_options(command: Command) -> Command:
    """Add the options that set values to a command, which receives them as `overrides`."""

    @click.option(
        "-f", "--values", "files", multiple=True, metavar="FILE", help="YAML file with values; - reads standard input."
    )
    @click.option(
        "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set one value, such as worker.number=2."
    )
    @click.option("--set-string", "texts", multiple=True, metavar="NAME=TEXT", help="Set one value as a string.")
    @functools.wraps(command)
    def wrapped(*, files: tuple[str, ...], settings: tuple[str, ...], texts: tuple[str, ...], **options: Any) -> Any:
        return command(overrides=ValueOverrides(files=files, settings=settings, texts=texts), **options)

    return wrapped


@click.command()
def list_templates() -> None:
    r"""List the templates.

    \b
    Example:
      paceline app template list
    """
    out().lines(
        table(
            ("NAME", "VERSION", "DESCRIPTION"),
            [(template.name, template.version, template.description) for template in TEMPLATES],
        )
    )
    print_hint(f"to explain one: paceline app template show {TEMPLATES[0].name}")


@click.command()
@click.argument("template", metavar="TEMPLATE")
@click.option("--values", "is_values", is_flag=True, help="Print only the default values, as a YAML file to edit.")
def show_template(*, template: str, is_values: bool) -> None:
    r"""Show a template: what it does, and its values with their defaults.

    \b
    Examples:
      paceline app template show tensorflow-training
      paceline app template show tensorflow-training --values > values.yaml
    """
    chosen = find(template)
    if is_values:
        from paceline.cli.output.yaml_text import dump

        out().document(dump(chosen.defaults()))
        return
    out().line(f"{chosen.name} {chosen.version}: {chosen.description}")
    out().line()
    out().document(chosen.readme)
    out().line()
    out().lines(table(("VALUE", "DEFAULT", "MEANING"), rows_of(chosen), width=out().width))
    print_hint(f"to get a file to edit: paceline app template show {chosen.name} --values > values.yaml")


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("template", metavar="TEMPLATE")
@with_values_options
@click.option("--debug", is_flag=True, help="Also print the job and its resources.")
def render_template(*, name: str, template: str, overrides: ValueOverrides, debug: bool) -> None:
    r"""Print the application that a template renders with the given values.

    The output is the same as that of the Helm chart.

    \b
    Example:
      paceline app template render mnist tensorflow-training -f values.yaml
    """
    chosen = find(template)
    app = render(name, chosen, overrides.over(chosen.defaults()))
    check(app)
    print_plan(app, is_full=debug)


def print_plan(app: Object, *, namespace: str = "", is_full: bool = False) -> None:
    """Print the application; with `is_full`, also the job of its first revision and its resources."""
    from paceline.cli.output.yaml_text import dump

    to = out()
    to.document(dump(app))
    if not is_full:
        return
    placed = {**app, "metadata": {**app["metadata"], "namespace": namespace or "default"}}
    job, parts = parts_of(placed)
    to.document(f"---\n# The job of its first revision.\n{dump(job)}")
    for name, spec in parts.claims.items():
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": dict(spec)}
        to.document(f"---\n# The claim that all revisions share.\n{dump(claim)}")
    for name, spec in parts.boards.items():
        board = {
            "apiVersion": "tensorstack.dev/v1beta1",
            "kind": "TensorBoard",
            "metadata": {"name": name},
            "spec": dict(spec),
        }
        to.document(f"---\n# A TensorBoard that all revisions share.\n{dump(board)}")
