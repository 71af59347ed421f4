"""The entry of `paceline`: finds the command that was typed, loads only that one, and turns errors into exit codes."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from paceline.cli import exit_codes
from paceline.cli.output.console import say_error, say_hint
from paceline.errors import PacelineError

# Command → its module below cli/commands/ and what it does; the help of all of them is printed without loading one.
VERBS = {
    "up": ("cluster.up", "Start the embedded cluster."),
    "down": ("cluster.down", "Stop the embedded cluster."),
    "run": ("jobs.run", "Create what YAML files describe, and follow the job to its end."),
    "submit": ("jobs.submit", "Create what YAML files describe, and return."),
    "get": ("jobs.get", "List jobs, or objects of any kind."),
    "describe": ("jobs.describe", "Show one job in full: replicas, conditions, events, failure."),
    "logs": ("jobs.logs", "Print or follow the log of a job."),
    "results": ("jobs.results", "List the files that a job has left in its output."),
    "tensorboard": ("jobs.tensorboard", "Show the curves of a job or application in your browser."),
    "notebook": ("jobs.notebook", "Open a Notebook in your browser."),
    "exec": ("jobs.exec", "Run a command in a job's container, and end as it ends."),
    "top": ("jobs.top", "Show what jobs, pods or nodes use right now."),
    "pause": ("jobs.pause", "Stop a job's processes and keep the job."),
    "resume": ("jobs.resume", "Let a paused job run on."),
    "stop": ("jobs.stop", "End the processes of a job or application, and keep it."),
    "restart": ("jobs.restart", "Start the processes of a running or stopped job anew."),
    "rerun": ("jobs.rerun", "Run a job once more, as a new job with the same spec."),
    "delete": ("jobs.delete", "Delete jobs or other objects."),
    "controller": ("cluster.controller", "Look after the jobs of a Kubernetes cluster."),
    "crds": ("cluster.crds", "Print what a Kubernetes cluster must know of our kinds."),
    "train": ("apps.train", "Train with your own code, from a repository or from here."),
    "code": ("apps.code", "Create, list and delete code by name: repositories and revisions."),
    "volume": ("apps.volume", "Create, list and delete volumes by name: folders, claims, buckets."),
    "install": ("apps.install", "Make an application of a template and values, and run it."),
    "upgrade": ("apps.upgrade", "Change values of an application; the next revision runs."),
    "list": ("apps.list", "List applications."),
    "status": ("apps.status", "Show an application and everything that belongs to it."),
    "history": ("apps.history", "List the revisions of an application, with what came of each."),
    "diff": ("apps.diff", "Put two revisions of an application side by side."),
    "uninstall": ("apps.uninstall", "Remove applications and everything that is their own."),
    "template": ("apps.template", "Show templates, their values, and what comes of them."),
    "image": ("cluster.image", "Show which environment an image becomes; build and remove environments."),
    "backup": ("cluster.backup", "Copy the objects of the embedded cluster into one file."),
    "restore": ("cluster.restore", "Put a backup in place of the objects of the embedded cluster."),
    "check": ("cluster.check", "Check that the stored objects, or those of a backup, are whole."),
    "completion": ("completion", "Print the script that completes words in your shell."),
    "version": ("version", "Print the versions of this command and of the cluster."),
}


class Verbs(click.Group):
    """A group that knows its commands by name and loads a file when its command is typed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the commands in the order in which people meet them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        if cmd_name not in VERBS:
            return None
        module, _ = VERBS[cmd_name]
        command: click.Command = import_module(f"paceline.cli.commands.{module}").command
        # What keeps examples on lines of their own is a control character to click, and two plain ones in our source.
        for each in (command, *getattr(command, "commands", {}).values()):
            each.help = (each.help or "").replace("\\b\n", "\b\n")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the list of commands from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, told) in VERBS.items()])


@click.command(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="The first thing to try: paceline run job.yaml",
)
@click.version_option(package_name="paceline", message="paceline %(version)s")
def group() -> None:
    """Run distributed training jobs, on this machine or on Kubernetes, with the same YAML."""


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code: 0 well, 1 failed or refused, 2 bad input, 3 no cluster, 130 Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a question mark, not a stack trace.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        return _run(args)
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain about it once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.BROKEN_PIPE
    except Exception as error:
        if os.environ.get("PACELINE_DEBUG"):
            raise
        say_error(f"this is a bug in Paceline: {type(error).__name__}: {error}")
        say_hint("PACELINE_DEBUG=1 shows where; please report it")
        return exit_codes.FAILED


def _run(args: Sequence[str] | None) -> int:
    try:
        code = group.main(args=args, prog_name="paceline", standalone_mode=False)
    except click.UsageError as error:
        say_error(error.format_message())
        if error.ctx is not None:
            say_hint(f"{error.ctx.command_path} --help")
        return exit_codes.BAD_INPUT
    except click.ClickException as error:
        say_error(error.format_message())
        return exit_codes.BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        return exit_codes.INTERRUPTED
    except PacelineError as error:
        for message in exit_codes.messages(error):
            say_error(message)
        return exit_codes.exit_code(error)
    return code if isinstance(code, int) else exit_codes.OK
