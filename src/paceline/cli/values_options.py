"""Options that set values: files and single settings."""

import functools
from collections.abc import Callable
from typing import Any

import click

from paceline.sdk.apps.values import ValueOverrides

Command = Callable[..., Any]


def takes_values(command: Command) -> Command:
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
