"""`paceline version` and `paceline completion`."""

import click
from click.shell_completion import get_completion_class

from paceline import __version__
from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.output.console import out
from paceline.errors import PacelineError


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, *, shell: str) -> None:
    r"""Print the completion script for your shell.

    \b
    Examples:
      source <(paceline completion bash)
      paceline completion fish > ~/.config/fish/completions/paceline.fish
    """
    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"no completion for {shell}")
    out().document(script(ctx.find_root().command, {}, "paceline", "_PACELINE_COMPLETE").source())


@click.command()
@click.option("--client", is_flag=True, help="Print the version of this command only.")
@with_cluster_options
def version(*, cluster: ClusterOptions, client: bool) -> None:
    r"""Print the version of this command and of the cluster.

    \b
    Examples:
      paceline version
      paceline version --client
    """
    out().line(f"paceline {__version__}")
    if client:
        return
    try:
        with cluster.reader() as reader:
            info = reader.ask("/version")
            out().line(f"cluster  {info.get('gitVersion', 'unknown')}")
    except PacelineError:
        out().line("cluster  not running")
