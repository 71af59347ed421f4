"""`paceline completion`: print the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

from paceline.cli import exit_codes
from paceline.cli.output.console import out


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, *, shell: str) -> int:
    r"""Print the completion script for your shell.

    \b
    Examples:
      source <(paceline completion bash)
      paceline completion fish > ~/.config/fish/completions/paceline.fish
    """
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"no completion for {shell}")
    out().document(completion(ctx.find_root().command, {}, "paceline", "_PACELINE_COMPLETE").source())
    return exit_codes.OK
