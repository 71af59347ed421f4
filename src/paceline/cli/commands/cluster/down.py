"""`paceline down`: stop the embedded cluster, and ask what to do with running jobs."""

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, settings
from paceline.cli.output.console import err, out, print_error
from paceline.cli.prompts import can_ask, choose
from paceline.cli.sessions import open_session
from paceline.cluster.daemon import is_running, stop
from paceline.errors import HostError, PacelineError
from paceline.presentation.apps.app_summary import is_paused
from paceline.presentation.job_summary import is_running as job_runs
from paceline.sdk.client import Session
from paceline.sdk.interactive import ServiceRef
from paceline.sdk.job import MARGIN_SECONDS, JobRef, seconds_to_stop

Ref = JobRef | ServiceRef

KEEP, STOP, CANCEL = "keep", "stop", "cancel"


@click.command()
@click.option("--keep-jobs", "answer", flag_value=KEEP, help="Keep running jobs running without the cluster.")
@click.option("--stop-jobs", "answer", flag_value=STOP, help="Pause running jobs first; they can be resumed.")
def down(*, answer: str | None) -> int:
    r"""Stop the embedded cluster.

    If jobs, TensorBoards or notebooks are still running, asks whether to keep or stop them. Use --keep-jobs or
    --stop-jobs to skip the question.

    \b
    Examples:
      paceline down
      paceline down --stop-jobs
    """
    chosen = settings()
    if not is_running(chosen):
        err().line(f"No cluster is running in {chosen.home}.")
        return exit_codes.OK
    code = handle_running_jobs(answer)
    if code is not None:
        return code
    stop(chosen)
    out().line("The cluster has stopped.")
    return exit_codes.OK


def handle_running_jobs(answer: str | None) -> int | None:
    """Keep or stop the running jobs as requested. Return None if the cluster may stop, else an exit code."""
    if answer == KEEP:
        return None
    try:
        with open_session(ClusterOptions()) as session:
            running: list[Ref] = [*running_jobs(session), *running_services(session)]
            if not running:
                return None
            answer = answer or ask(running)
            if answer == STOP:
                stop_all(session, running)
    except PacelineError as error:
        if answer == STOP:
            raise
        # A control plane that does not respond can still be stopped; its jobs are left unchanged.
        err().line(f"The running jobs cannot be listed: {error}")
        return None
    if answer is None:
        return exit_codes.BAD_INPUT
    return exit_codes.FAILED if answer == CANCEL else None


def running_jobs(session: Session) -> list[JobRef]:
    """Return the jobs of all namespaces that have processes, or will have."""
    return [
        session.ref(kind, job)
        for kind in session.kinds.jobs()
        for job in session.list(kind, everywhere=True).items
        if job_runs(job)
    ]


def running_services(session: Session) -> list[ServiceRef]:
    """Return the TensorBoards and notebooks of all namespaces that have processes, or will have."""
    return [
        session.service_ref(kind, service)
        for kind in session.kinds.services()
        for service in session.list(kind, everywhere=True).items
        if not is_paused(service)
    ]


def ask(running: list[Ref]) -> str | None:
    """Ask what to do with the running objects; return None if there is no terminal to ask on."""
    shown = [str(ref) if isinstance(ref, ServiceRef) else ref.name for ref in running]
    names = ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
    one = len(running) == 1
    are_jobs = not any(isinstance(ref, ServiceRef) for ref in running)
    summary = f"{len(running)} job{' is' if one else 's are'} " if are_jobs else ""
    summary += f"still running: {names}"
    them = "it" if one else "them"
    if not can_ask():
        print_error(f"{summary}; add --keep-jobs to keep {them} running, or --stop-jobs to pause {them} first")
        return None
    choices = {
        KEEP: f"keep {them} running; the cluster manages {them} again after `paceline up`",
        STOP: f"pause {them} first; to continue later: paceline resume",
        CANCEL: "cancel: do not stop the cluster",
    }
    return choose(f"{summary}.", choices, CANCEL)


def stop_all(session: Session, running: list[Ref], margin: float = MARGIN_SECONDS) -> None:
    """Pause everything and wait until all processes have exited; HostError lists those that did not."""
    for ref in running:
        ref.pause()
    unstopped = []
    for ref in running:
        err().line(f"stopping {ref} …", "dim")
        try:
            _wait_stopped(session, ref, margin)
        except HostError as error:
            unstopped.append(f"{error}, or keep it running without the cluster with `paceline down --keep-jobs`")
    if unstopped:
        raise HostError("\n".join((*unstopped, "the cluster has not been stopped")))


def _wait_stopped(session: Session, ref: Ref, margin: float) -> None:
    if isinstance(ref, JobRef):
        ref.wait_stopped(margin)
        return
    pods = ref.pods()
    for pod in pods:
        try:
            session.wait_gone(session.kinds.named("pods"), pod, seconds_to_stop(pods, margin))
        except TimeoutError as error:
            raise HostError(
                f"{ref} did not stop in time; remove it and its pod with `paceline delete {ref}`"
            ) from error
