"""`paceline stop`: end a job's processes, free what they used, and keep the job."""

import click

from paceline.cli import failures
from paceline.cli.output import out, say_hint
from paceline.cli.reach import Reach, reaches_cluster
from paceline.cli.sessions import session as session_with
from paceline.cli.targets import meant


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--no-wait", is_flag=True, help="Do not wait until the processes have ended.")
@reaches_cluster
def command(*, reach: Reach, names: tuple[str, ...], no_wait: bool) -> int:
    r"""End the processes of a job or application, and keep it.

    Processes are asked to end, and killed after their grace period. Logs and files stay. The same as paceline pause,
    but it waits until everything has ended.

    \b
    paceline stop digits
    paceline restart digits
    """
    with session_with(reach) as session:
        stopped = [meant(session, name) for name in names]
        for each in stopped:
            if each.app is not None:
                each.app.stop()
            elif each.job is not None:
                each.job.pause()
        for each in stopped:
            if each.job is not None and not no_wait:
                each.job.wait_quiet()
            out().line(f"{each} {'stopping' if no_wait else 'stopped'}")
    first = names[0]
    say_hint(f"paceline restart {first} starts it again; paceline delete {first} removes it")
    return failures.OK
