"""`paceline stop`, `restart`, `rerun`, `pause`, `resume` and `scale`."""

import click

from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.output.console import out, print_hint
from paceline.cli.resource_args import JobOrApp, find_job_or_app
from paceline.cli.sessions import open_session
from paceline.errors import AlreadyExists, HostError
from paceline.host.clock import RealClock
from paceline.sdk.client import Session
from paceline.sdk.interactive import ServiceRef
from paceline.sdk.job import signal_named


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--no-wait", is_flag=True, help="Do not wait for the processes to exit.")
@click.option("--signal", "word", metavar="SIGNAL", default="", help="Signal to send, such as INT (default: TERM).")
@with_cluster_options
def stop(*, cluster: ClusterOptions, names: tuple[str, ...], no_wait: bool, word: str) -> None:
    r"""Stop a job or application and wait until it has stopped.

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
    with open_session(cluster) as session:
        stopped = [find_job_or_app(session, name) for name in names]
        for target in stopped:
            if target.job is not None and name:
                target.job.choose_signal(name)
            suspend(target)
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
    print_hint(f"to start it again: paceline restart {first}; to remove it: paceline delete {first}")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@with_cluster_options
def restart(*, cluster: ClusterOptions, names: tuple[str, ...]) -> None:
    r"""Restart the processes of a running or stopped job.

    All replicas are stopped and started again. This does not count towards the backoff limit. To run a job that has
    ended, use `paceline rerun`; an application that has ended runs again as its next revision.

    \b
    Example:
      paceline restart digits
    """
    with open_session(cluster) as session:
        for name in names:
            target = find_job_or_app(session, name)
            out().line(f"{target} {restart_target(target)}")
    print_hint(f"to follow it: paceline logs -f {names[0]}")


def restart_target(target: JobOrApp) -> str:
    """Restart a job, or resume or rerun an application, and return the text to print."""
    app, job = target.app, target.job
    if app is not None and app.status().phase.is_final:
        return f"restarting as revision {app.rerun()}"
    if app is not None and app.read()["spec"].get("suspend"):
        app.resume()
        return "resumed"
    if job is not None:
        job.restart()
    return "restarting"


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--name", "new", metavar="NEW", help="Name of the new job (default: NAME-2, or the next free number).")
@with_cluster_options
def rerun(*, cluster: ClusterOptions, name: str, new: str | None) -> None:
    r"""Run a job again, as a new job with the same spec.

    The original job and its logs are kept; it may have ended or still be running. The new job starts neither paused nor
    suspended. An application runs again as its next revision.

    \b
    Examples:
      paceline rerun digits
      paceline rerun digits --name digits-again
    """
    with open_session(cluster) as session:
        app = session.app(name)
        if app is not None and (new is None or "/" in name):
            out().line(f"{app} runs again as revision {app.rerun()}")
            print_hint(
                f"to follow it: paceline logs -f {app.name}; to compare revisions: paceline app history {app.name}"
            )
            return
        try:
            ref = session.rerun(session.job(name), new)
        except AlreadyExists as error:
            raise AlreadyExists(f"{error}; choose another --name") from error
        out().line(f"{ref} created")
    print_hint(f"to follow it: paceline logs -f {ref.name}; for details: paceline describe {ref.name}")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@with_cluster_options
def pause(*, cluster: ClusterOptions, names: tuple[str, ...]) -> None:
    r"""Pause a job: stop its processes but keep the job.

    Use `paceline resume` to continue: training starts from its last checkpoint if the script saves one. TensorBoards
    and notebooks can be paused with KIND/NAME.

    \b
    Examples:
      paceline pause digits
      paceline pause tensorboard/curves
    """
    with open_session(cluster) as session:
        for target in targets(session, names):
            if isinstance(target, ServiceRef):
                target.pause()
            else:
                suspend(target)
            out().line(f"{target} paused")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@with_cluster_options
def resume(*, cluster: ClusterOptions, names: tuple[str, ...]) -> None:
    r"""Resume a paused job.

    The processes of the job are started again. TensorBoards and notebooks can be resumed with KIND/NAME.

    \b
    Examples:
      paceline resume digits
      paceline resume notebook/desk
    """
    with open_session(cluster) as session:
        for target in targets(session, names):
            if isinstance(target, ServiceRef):
                target.resume(RealClock().now())
            elif target.app is not None:
                target.app.resume()
            elif target.job is not None:
                target.job.resume()
            out().line(f"{target} resumed")


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--replicas", type=click.IntRange(min=1), required=True, help="New number of replicas.")
@with_cluster_options
def scale(*, cluster: ClusterOptions, name: str, replicas: int) -> None:
    r"""Change the number of replicas of an elastic job.

    The job must have spec.elastic.enabled, and the number must be between its minReplicas and maxReplicas. Training
    processes restart with the new number and continue from their last checkpoint.

    \b
    Example:
      paceline scale digits --replicas 3
    """
    with open_session(cluster) as session:
        job = session.job(name)
        job.scale(replicas)
    out().line(f"{job} scaled to {replicas} replicas")


def targets(session: Session, names: tuple[str, ...]) -> list[ServiceRef | JobOrApp]:
    """Return the named jobs, applications, TensorBoards and notebooks."""
    return [session.service(name) or find_job_or_app(session, name) for name in names]


def suspend(target: JobOrApp) -> None:
    """Stop the processes of a job or application."""
    if target.app is not None:
        target.app.stop()
    elif target.job is not None:
        target.job.pause()
