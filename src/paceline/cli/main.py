"""Entry point of `paceline`: loads only the requested command and maps errors to exit codes."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

import click

from paceline import __version__
from paceline.cli import exit_codes
from paceline.cli.command_table import SECTIONS, Command, GroupEntry, summary_of
from paceline.cli.output.console import print_error, print_hint
from paceline.errors import PacelineError

# Commands of earlier versions whose name changed, for the hint in the error message.
RENAMED = {"code": "repo", "image": "env"}

Sections = Mapping[str, Mapping[str, Command]]


class LazyGroup(click.Group):
    """A click group that imports the module of a command when the command is used."""

    def __init__(self, name: str, sections: Sections, **options: object) -> None:
        super().__init__(name, **options)  # type: ignore[arg-type]
        self._sections = sections
        self._table = {name: entry for part in sections.values() for name, entry in part.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the help."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        entry = self._table.get(cmd_name)
        if isinstance(entry, GroupEntry):
            text = "\n\n".join([entry.summary, *(_unwrapped(part) for part in entry.help.split("\n\n"))])
            return LazyGroup(cmd_name, {"Commands": entry.commands}, help=text)
        if entry is None:
            return None
        module, _, function = entry[0].partition(":")
        command: click.Command = getattr(import_module(f"paceline.cli.commands.{module}"), function)
        # click expects the control character \b to keep line breaks; raw docstrings have a backslash and a b.
        command.help = (command.help or "").replace("\\b\n", "\b\n")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command to run; a usage error suggests where a mistyped or moved command is."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if not (suggestion := _suggestion(args[0], ctx.command_path, self._table)):
                raise
            raise click.UsageError(f"No such command {args[0]!r}; did you mean `{suggestion}`?", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the commands by section, without importing any of them."""
        width = max(map(len, self._table))
        for title, entries in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary_of(entry)) for name, entry in entries.items()])


def _unwrapped(paragraph: str) -> str:
    return f"\b\n{paragraph}" if paragraph.startswith("Example") else paragraph


def _suggestion(typed: str, path: str, table: Mapping[str, Command]) -> str:
    """Return the command that was probably meant: of the same name in a group, or with a similar name."""
    if typed in RENAMED:
        return f"{path} {RENAMED[typed]}"
    for name, entry in table.items():
        if isinstance(entry, GroupEntry) and typed in entry.commands:
            return f"{path} {name} {typed}"
    from difflib import get_close_matches

    close = get_close_matches(typed, table, n=1)
    return f"{path} {close[0]}" if close else ""


group = LazyGroup(
    "paceline",
    SECTIONS,
    help="Run distributed training jobs, on this machine or on Kubernetes, with the same YAML.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="To get started: paceline run job.yaml. For help on a command: paceline COMMAND --help",
)
click.version_option(__version__, message="paceline %(version)s")(group)


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
        print_error(f"this is a bug in Paceline: {type(error).__name__}: {error}")
        print_hint("run the command again with PACELINE_DEBUG=1 and report the traceback")
        return exit_codes.FAILED


def _run(args: Sequence[str] | None) -> int:
    try:
        code = group.main(args=args, prog_name="paceline", standalone_mode=False)
    except click.UsageError as error:
        print_error(error.format_message())
        if error.ctx is not None:
            print_hint(f"for help: {error.ctx.command_path} --help")
        return exit_codes.BAD_INPUT
    except click.ClickException as error:
        print_error(error.format_message())
        return exit_codes.BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        return exit_codes.INTERRUPTED
    except PacelineError as error:
        for message in exit_codes.messages(error):
            print_error(message)
        return exit_codes.exit_code(error)
    return code if isinstance(code, int) else exit_codes.OK
