"""`paceline down`: stop the embedded cluster, and ask what becomes of running jobs."""

import click

from paceline.assembly.daemon import is_running, stop
from paceline.cli import failures
from paceline.cli.output import err, out, say_error
from paceline.cli.prompts import can_ask, choose
from paceline.cli.reach import Reach, settings
from paceline.cli.sessions import session as session_with
from paceline.errors import PacelineError
from paceline.sdk.facts import is_running as job_runs
from paceline.sdk.job import JobRef
from paceline.sdk.session import Session

KEEP, STOP, CANCEL = "keep", "stop", "cancel"


@click.command()
@click.option("--keep-jobs", "answer", flag_value=KEEP, help="Let running jobs run on without the cluster.")
@click.option(
    "--stop-jobs", "answer", flag_value=STOP, help="Stop running jobs first; they are paused, and can be resumed."
)
def command(*, answer: str | None) -> int:
    """Stop the embedded cluster.

    Jobs that still run are asked about; the flags answer beforehand.
    """
    chosen = settings()
    if not is_running(chosen):
        err().line(f"No cluster is running in {chosen.home}.")
        return failures.OK
    code = settle_jobs(answer)
    if code is not None:
        return code
    stop(chosen)
    out().line("The cluster has stopped.")
    return failures.OK


def settle_jobs(answer: str | None) -> int | None:
    """Do with the running jobs what the person wants; None means that the cluster may stop."""
    if answer == KEEP:
        return None
    try:
        with session_with(Reach()) as session:
            jobs = running_jobs(session)
            if not jobs:
                return None
            answer = answer or ask(jobs)
            if answer == STOP:
                stop_jobs(jobs)
    except PacelineError as error:
        if answer == STOP:
            raise
        # A control plane that does not answer can still be stopped; its jobs are then left as they are.
        err().line(f"The cluster does not say which jobs run: {error}")
        return None
    if answer is None:
        return failures.BAD_INPUT
    return failures.FAILED if answer == CANCEL else None


def running_jobs(session: Session) -> list[JobRef]:
    """Find the jobs of all namespaces that have processes, or will have."""
    return [
        session.ref(kind, job)
        for kind in session.kinds.jobs()
        for job in session.list(kind, everywhere=True).items
        if job_runs(job)
    ]


def ask(jobs: list[JobRef]) -> str | None:
    """Ask what becomes of the jobs; None when nobody is there to answer."""
    names = ", ".join(ref.name for ref in jobs[:5]) + (f" and {len(jobs) - 5} more" if len(jobs) > 5 else "")
    one = len(jobs) == 1
    told = f"{len(jobs)} job{' is' if one else 's are'} still running: {names}"
    it, them = ("it runs", "it") if one else ("they run", "them")
    if not can_ask():
        say_error(f"{told}; say --keep-jobs ({it} on without the cluster) or --stop-jobs (pauses {them} first)")
        return None
    choices = {
        KEEP: f"keep {them} running; `paceline up` finds {them} again",
        STOP: f"stop {them} first; a stopped job is paused and can be resumed",
        CANCEL: "cancel: leave everything as it is",
    }
    return choose(f"{told}.", choices, CANCEL)


def stop_jobs(jobs: list[JobRef]) -> None:
    """Stop all jobs, then wait until none of them has a process."""
    for ref in jobs:
        ref.pause()
    for ref in jobs:
        err().line(f"stopping {ref} …", "dim")
        ref.wait_quiet()
