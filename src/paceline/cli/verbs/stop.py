"""`paceline stop`: end a job's processes, free what they used, and keep the job."""

import click

from paceline.cli import failures
from paceline.cli.output import out, say_hint
from paceline.cli.reach import Reach, reaches_cluster
from paceline.cli.sessions import session as session_with


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--no-wait", is_flag=True, help="Do not wait until the processes have ended.")
@reaches_cluster
def command(*, reach: Reach, names: tuple[str, ...], no_wait: bool) -> int:
    r"""End a job's processes, free what they used, and keep the job.

    Processes are asked to end, and killed after their grace period. Logs and files stay. The same as paceline pause,
    but it waits until everything has ended.

    \b
    paceline stop digits
    paceline restart digits
    """
    with session_with(reach) as session:
        stopped = [session.job(name) for name in names]
        for ref in stopped:
            ref.pause()
        for ref in stopped:
            if not no_wait:
                ref.wait_quiet()
            out().line(f"{ref} {'stopping' if no_wait else 'stopped'}")
    first = stopped[0].name
    say_hint(f"paceline restart {first} starts it again; paceline delete {first} removes it")
    return failures.OK
