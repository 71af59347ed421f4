"""Entry point of `paceline`: loads only the requested command and maps errors to exit codes."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from paceline.cli import exit_codes
from paceline.cli.output.console import say_error, say_hint
from paceline.errors import PacelineError

# Command → its module below cli/commands/ and its summary, so that the help needs no imports.
VERBS = {
    "up": ("cluster.up", "Start the embedded cluster."),
    "down": ("cluster.down", "Stop the embedded cluster."),
    "run": ("jobs.run", "Create the objects in YAML files and follow the job until it ends."),
    "submit": ("jobs.submit", "Create the objects in YAML files and return."),
    "get": ("jobs.get", "List jobs, or resources of any kind."),
    "describe": ("jobs.describe", "Show the details of a job: replicas, conditions, events and failure."),
    "logs": ("jobs.logs", "Print or follow the logs of a job or pod."),
    "results": ("jobs.results", "List the output files of a job."),
    "tensorboard": ("jobs.tensorboard", "Open the TensorBoard of a job or application in your browser."),
    "notebook": ("jobs.notebook", "Open a notebook in your browser."),
    "exec": ("jobs.exec", "Run a command in a container of a job or pod."),
    "top": ("jobs.top", "Show the resource usage of jobs, pods, nodes or claims."),
    "pause": ("jobs.pause", "Pause a job: stop its processes but keep the job."),
    "resume": ("jobs.resume", "Resume a paused job."),
    "stop": ("jobs.stop", "Stop a job or application and wait until its processes have exited."),
    "restart": ("jobs.restart", "Restart the processes of a running or stopped job."),
    "rerun": ("jobs.rerun", "Run a job again, as a new job with the same spec."),
    "delete": ("jobs.delete", "Delete jobs or other resources."),
    "controller": ("cluster.controller", "Run the job controller against a Kubernetes cluster."),
    "crds": ("cluster.crds", "Print the CustomResourceDefinitions."),
    "train": ("apps.train", "Train with your own code, from a Git repository or from this machine."),
    "code": ("apps.code", "Manage named code repositories."),
    "volume": ("apps.volume", "Manage named volumes: folders, claims and buckets."),
    "install": ("apps.install", "Install an application from a template and values."),
    "upgrade": ("apps.upgrade", "Change the values of an application and run its next revision."),
    "list": ("apps.list", "List applications."),
    "status": ("apps.status", "Show an application and its resources."),
    "history": ("apps.history", "List the revisions of an application with their results."),
    "diff": ("apps.diff", "Compare two revisions of an application."),
    "uninstall": ("apps.uninstall", "Uninstall applications and delete their resources."),
    "template": ("apps.template", "List, explain and render application templates."),
    "image": ("cluster.image", "Manage the Python environments that images are mapped to."),
    "backup": ("cluster.backup", "Back up the objects of the embedded cluster to a file."),
    "restore": ("cluster.restore", "Restore the objects of the embedded cluster from a backup."),
    "check": ("cluster.check", "Verify the integrity of the object store or of a backup."),
    "completion": ("completion", "Print the completion script for your shell."),
    "version": ("version", "Print the version of this command and of the cluster."),
}


class Verbs(click.Group):
    """A click group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        if cmd_name not in VERBS:
            return None
        module, _ = VERBS[cmd_name]
        command: click.Command = import_module(f"paceline.cli.commands.{module}").command
        # click expects the control character \b to keep line breaks; raw docstrings contain a backslash and a b.
        for entry in (command, *getattr(command, "commands", {}).values()):
            entry.help = (entry.help or "").replace("\\b\n", "\b\n")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the list of commands from VERBS, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in VERBS.items()])


@click.command(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="To get started: paceline run job.yaml",
)
@click.version_option(package_name="paceline", message="paceline %(version)s")
def group() -> None:
    """Run distributed training jobs, on this machine or on Kubernetes, with the same YAML."""


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 success, 1 failed, 2 bad input, 3 no cluster, 130 Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        # Print a question mark for characters that the terminal cannot encode instead of failing.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        return _run(args)
    except BrokenPipeError:
        # The reader of our output closed the pipe. Without this, Python reports the error again at exit.
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
