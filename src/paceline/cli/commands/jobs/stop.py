"""`paceline stop`: stop the processes of a job, wait for them, and keep the job."""

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import out, say_hint
from paceline.cli.resource_args import meant
from paceline.cli.sessions import session as session_with
from paceline.errors import HostError
from paceline.sdk.job import signal_named


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--no-wait", is_flag=True, help="Do not wait for the processes to exit.")
@click.option("--signal", "word", metavar="SIGNAL", default="", help="Signal to send, such as INT (default: TERM).")
@reaches_cluster
def command(*, reach: ClusterOptions, names: tuple[str, ...], no_wait: bool, word: str) -> int:
    r"""Stop a job or application and wait until its processes have exited.

    Workers are stopped before the servers they use. Processes that do not exit within the grace period are killed. The
    job, its logs and its files are kept. Like `paceline pause`, but waits until all processes have exited.

    --signal works on the embedded cluster only; on Kubernetes, set lifecycle.stopSignal of the container.

    \b
    Examples:
      paceline stop digits
      paceline stop digits --signal INT
      paceline restart digits
    """
    name = signal_named(word) if word else ""
    with session_with(reach) as session:
        stopped = [meant(session, name) for name in names]
        for target in stopped:
            if target.job is not None and name:
                target.job.choose_signal(name)
            if target.app is not None:
                target.app.stop()
            elif target.job is not None:
                target.job.pause()
        unstopped = []
        for target in stopped:
            try:
                if target.job is not None and not no_wait:
                    target.job.wait_stopped()
                out().line(f"{target} {'stopping' if no_wait else 'stopped'}")
            except HostError as error:
                unstopped.append(str(error))
        if unstopped:
            raise HostError("\n".join(unstopped))
    first = names[0]
    say_hint(f"paceline restart {first} starts it again; paceline delete {first} removes it")
    return exit_codes.OK
