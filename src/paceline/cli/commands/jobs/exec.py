"""`paceline exec`: run a command in a container of a job or pod."""

import contextlib
import os
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator

import click

from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.resource_args import job_or_pod
from paceline.cli.sessions import open_session
from paceline.errors import BadRequest
from paceline.sdk.exec import STDERR, ExecOptions, ExecStream, replica_to_exec, run_in_pod
from paceline.sdk.follow import ReplicaSelector

CHUNK = 64 * 1024


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--role", default="", help="Role of the replica, such as worker.")
@click.option("--index", type=click.IntRange(min=0), help="Index of the replica within its role.")
@click.option("-c", "--container", default="", help="Container name.")
@click.option("-i", "--stdin", "has_input", is_flag=True, help="Pass standard input to the command.")
@click.option("-t", "--tty", "has_terminal", is_flag=True, help="Allocate a terminal for the command.")
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="COMMAND...")
@with_cluster_options
def execute(*, cluster: ClusterOptions, name: str, role: str, index: int | None, **options: object) -> int:
    r"""Run a command in a container of a job or pod.

    NAME is a job or a pod. For a job, the command runs in the leader unless you choose another replica. The exit code
    is that of the command.

    \b
    Examples:
      paceline exec digits nvidia-smi
      paceline exec -it --role worker --index 1 digits bash
    """
    ask = exec_options(options)
    if ask.has_terminal and not sys.stdin.isatty():
        raise BadRequest("-t needs a terminal, but standard input is not a terminal; omit -t")
    with open_session(cluster) as session:
        target = job_or_pod(session, name)
        pod = (
            target if isinstance(target, str) else replica_to_exec(target, ReplicaSelector(role=role, index=index)).name
        )
        with run_in_pod(session, pod, ask) as line:
            return stream_command(line, ask)


def exec_options(options: dict[str, object]) -> ExecOptions:
    """Return the exec request; a leading `--` before the command is dropped, as kubectl does."""
    arguments = tuple(str(argument) for argument in options["words"])  # type: ignore[attr-defined]
    return ExecOptions(
        arguments=arguments[1:] if arguments[:1] == ("--",) and len(arguments) > 1 else arguments,
        container=str(options["container"]),
        has_input=bool(options["has_input"]),
        has_terminal=bool(options["has_terminal"]),
    )


def stream_command(line: ExecStream, ask: ExecOptions) -> int:
    """Connect standard input and output with the command and return its exit code."""
    with at_terminal(line) if ask.has_terminal else contextlib.nullcontext():
        if ask.has_input:
            # A daemon thread, because it may block on a read that never returns.
            threading.Thread(target=feed, args=(line,), daemon=True).start()
        for channel, data in line.pieces():
            to = sys.stderr if channel == STDERR else sys.stdout
            to.buffer.write(data)
            to.buffer.flush()
    return line.code()


def feed(line: ExecStream) -> None:
    """Copy standard input to the command until end of file."""
    while data := os.read(sys.stdin.fileno(), CHUNK):
        line.write(data)
    line.end_input()


@contextlib.contextmanager
def at_terminal(line: ExecStream) -> Iterator[None]:
    """Put the terminal into raw mode for the block and send its size to the command."""
    attributes = termios.tcgetattr(sys.stdin)

    def send_size(*_: object) -> None:
        # Ignore COLUMNS and LINES: they do not change when the terminal is resized.
        size = os.get_terminal_size(sys.stdin.fileno())
        line.resize(size.columns, size.lines)

    handler = signal.signal(signal.SIGWINCH, send_size)
    tty.setraw(sys.stdin)
    send_size()
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, attributes)
        signal.signal(signal.SIGWINCH, handler)
