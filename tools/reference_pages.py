"""The reference pages that are not about kinds: commands, SDK, settings, events and reasons.

In     the command table, the public names of the SDK, the settings and the closed list of reasons.
Out    one page each, as text.
Never  holds a fact: what a page should say better, the help or docstring says better.
"""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import paceline
from paceline.cli import exit_codes
from paceline.cli.command_table import SECTIONS
from paceline.cli.main import group, main
from paceline.cluster import config
from paceline.errors import BY_REASON, Invalid
from paceline.model import reasons
from paceline.settings import VARIABLES, Settings

COMMAND = "make reference"
NOTE = f"Written by `{COMMAND}` from the code; do not edit this page."


def cell(text: str) -> str:
    """Write a text so that it stays one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: str, rows: Iterator[tuple[str, ...]] | list[tuple[str, ...]]) -> list[str]:
    """Write a table: `head` has the titles, divided by bars."""
    columns = head.count("|") + 1
    return [f"| {head} |", "|" + "---|" * columns, *(f"| {' | '.join(map(cell, row))} |" for row in rows)]


def cli_page() -> str:
    """Write the page of all commands, in the order of `paceline --help`."""
    lines = ["# Commands", "", NOTE, "", "`paceline COMMAND --help` shows the same texts.", ""]
    lines += ["## Exit codes", "", cell(main.__doc__ or "").partition(": ")[2].rstrip("."), ""]
    codes = [
        (f"`{value}`", name.lower().replace("_", " ")) for name, value in vars(exit_codes).items() if _is_code(name)
    ]
    lines += table("exit code | name", codes)
    with click.Context(group, info_name="paceline") as root:
        for title, entries in SECTIONS.items():
            lines += ["", f"## {title}"]
            for name in entries:
                lines += _command(root, name)
    return "\n".join([*lines, ""])


def _is_code(name: str) -> bool:
    return name.isupper() and not name.startswith("_")


def _command(parent: click.Context, name: str) -> Iterator[str]:
    """Write one command, and those of its group below it."""
    _, command, _ = parent.command.resolve_command(parent, [name])
    ctx = click.Context(command, info_name=name, parent=parent)
    yield from ("", f"### {ctx.command_path}")
    yield from _help(command.help or "")
    if isinstance(command, click.Group):
        for child in command.list_commands(ctx):
            yield from _command(ctx, child)
        return
    yield from ("", "```text", " ".join((ctx.command_path, *command.collect_usage_pieces(ctx))), "```", "")
    options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    yield from table("option | description", [_option(option, ctx) for option in options])


def _help(text: str) -> Iterator[str]:
    """Write the help of a command; its examples are commands that a test reads."""
    for part in inspect.cleandoc(text).split("\n\n"):
        paragraph = part.replace("\b\n", "").strip()
        title, _, examples = paragraph.partition("\n")
        if re.fullmatch(r"Examples?:", title):
            yield from ("", "```sh", *(line.strip() for line in examples.splitlines()), "```")
        else:
            yield from ("", " ".join(paragraph.split()))


def _option(option: click.Option, ctx: click.Context) -> tuple[str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    takes = "" if option.is_flag or option.count else f" {option.make_metavar(ctx)}"
    variable = f" Variable: `{option.envvar}`." if isinstance(option.envvar, str) else ""
    return f"{names}{takes}", f"{option.help or ''}{variable}"


def sdk_page() -> str:
    """Write the page of the SDK: every public name with its signature."""
    lines = ["# SDK", "", NOTE, "", " ".join((paceline.__doc__ or "").split("\n\n")[0].split()), ""]
    lines += ["```python", "import paceline", "", 'job = paceline.connect().submit("examples/02-hello/job.yaml")']
    lines += ["print(job.wait().phase)", "```"]
    for name, module in paceline._PUBLIC.items():  # noqa: SLF001 - the list is there for this page and for `dir`
        thing = getattr(import_module(module), name)
        lines += ["", f"## {name}", "", _doc(thing), ""]
        lines += list(_members(thing)) if inspect.isclass(thing) else _signature(f"paceline.{name}", thing)
    lines += ["", "## Errors", "", "All of them are classes of `paceline.errors`, below `PacelineError`.", ""]
    errors = (Invalid, *BY_REASON.values())
    lines += table("error | status code | meaning", [(f"`{e.__name__}`", f"{e.code}", _doc(e)) for e in errors])
    return "\n".join([*lines, ""])


def _members(thing: type) -> Iterator[str]:
    if dataclasses.is_dataclass(thing):
        # Connections and kinds are for the other methods.
        fields = [field for field in dataclasses.fields(thing) if field.type in (str, bool, int, int | None)]
        yield from table("field | type", [(f"`{field.name}`", f"`{_type(field.type)}`") for field in fields])
        yield ""
    methods = [
        (f"`{name}{_arguments(member)}`", _doc(member).partition("\n\n")[0])
        for name, member in inspect.getmembers(thing, inspect.isfunction)
        if not name.startswith("_") and member.__doc__
    ]
    yield from table("method | what it does", methods)


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation).rpartition(".")[2]


def _arguments(function: Callable[..., Any]) -> str:
    """Write the names of a function's arguments, with their defaults and without their types."""
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in signature.parameters.items()
        if name != "self"
    ]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def _signature(name: str, function: Callable[..., Any]) -> list[str]:
    return ["```text", name + re.sub(r"<function \w+ at [^>]+>", "...", _arguments(function)), "```"]


def _doc(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "")


def settings_page() -> str:
    """Write the page of everything that a person may set, and of the files under PACELINE_HOME."""
    lines = ["# Settings", "", NOTE, "", "## settings.yaml", ""]
    lines += [
        "A file in `PACELINE_HOME`, read at every start of the embedded cluster. It has four tables, all optional.",
        "",
    ]
    hints = {"devices": config.DEVICES_HINT, "environments": config.ENVIRONMENTS_HINT}
    hints |= {"history": config.HISTORY_HINT, "images": config.IMAGES_HINT}
    for name, meaning in config.SECTIONS.items():
        example = hints[name].split("`")[1]
        lines += [f"### {name}", "", cell(meaning), "", "```yaml", "# settings.yaml", example, "```", ""]
    lines += ["## Environment variables", ""]
    lines += table("variable | meaning", [(f"`{name}`", meaning) for name, meaning in VARIABLES.items()])
    lines += ["", "## Files in PACELINE_HOME", ""]
    lines += table("file or folder | what is there", list(_files()))
    lines += ["", "`paceline up` has options for the rest: see [commands](cli.md#paceline-up)."]
    return "\n".join([*lines, ""])


def _files() -> Iterator[tuple[str, str]]:
    settings = Settings(home=Path("/HOME"))
    for name, member in vars(Settings).items():
        if isinstance(member, property):
            yield f"`{str(getattr(settings, name)).removeprefix('/HOME/')}`", _doc(member)


def reasons_page() -> str:
    """Write the page of all reasons of conditions and events."""
    lines = ["# Events and reasons", "", NOTE, ""]
    lines += ["Conditions and events of all objects have one of these reasons. `paceline describe NAME` shows them."]
    lines += [
        "What to do about them: [debug a job](../guides/debug.md).",
        "",
        "## Of controllers and the scheduler",
        "",
    ]
    lines += _meanings(reasons.MEANINGS)
    lines += ["", "## Of the node", ""]
    lines += _meanings(reasons.NODE)
    return "\n".join([*lines, ""])


def _meanings(meanings: Mapping[str, str]) -> list[str]:
    return table("reason | meaning", [(f"`{reason}`", meaning) for reason, meaning in meanings.items()])


def index_page() -> str:
    """Write the page that lists the others."""
    rows = [
        ("[Kinds](kinds/README.md)", "Every field of every kind: type, default, bounds, help."),
        ("[Commands](cli.md)", "Every command with its options and examples."),
        ("[SDK](sdk.md)", "The Python interface."),
        ("[Settings](settings.md)", "settings.yaml, environment variables, and the files of a cluster."),
        ("[Events and reasons](reasons.md)", "Every reason of a condition or event, and its meaning."),
    ]
    return "\n".join(["# Reference", "", NOTE, "", *table("page | contents", rows), ""])


def pages() -> dict[str, str]:
    """Give every page by its path below docs/reference/."""
    return {
        "README.md": index_page(),
        "cli.md": cli_page(),
        "sdk.md": sdk_page(),
        "settings.md": settings_page(),
        "reasons.md": reasons_page(),
    }
