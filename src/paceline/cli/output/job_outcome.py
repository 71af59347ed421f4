"""The result of a job: its outcome, the root cause with its last log lines, and the next commands."""

import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.cli.output.console import TextOutput
from paceline.cli.output.table import short, table
from paceline.errors import PacelineError
from paceline.model.job_status import Failure, JobStatus, Phase
from paceline.presentation.job_summary import (
    PLAIN_REASONS,
    claims_of,
    describe_exit_code,
    duration_of,
    reason_of,
    status_of,
)
from paceline.presentation.replica_pods import ReplicaPod, first_failed
from paceline.sdk.client import Session
from paceline.sdk.job import JobRef
from paceline.sdk.logs.sources import LogOptions

LAST_LINES = 20


def print_outcome(session: Session, ref: JobRef, job: Object, *, to: TextOutput, now: datetime) -> None:
    """Print how the job ended."""
    status = status_of(job)
    lasted = duration_of(status, now)
    if status.phase is Phase.SUCCEEDED:
        to.line(f"✓ {ref.name} succeeded{f' in {short(lasted)}' if lasted is not None else ''}", "green")
        for claim, mounted, path in folders(session, job):
            if path:
                to.line(f"  {mounted} of the job (claim {claim}) is {path}")
        to.line(
            f"  next: paceline logs {ref.name}  ·  paceline describe {ref.name}  ·  paceline delete {ref.name}", "dim"
        )
        return
    to.line(f"✗ {ref.name} failed{f' after {short(lasted)}' if lasted is not None else ''}", "red")
    failed = print_failure(ref, job, to=to)
    whose = f" --role {failed.place.role} --index {failed.place.index}" if failed else ""
    to.line(f"  see: paceline logs {ref.name}{whose}  ·  paceline describe {ref.name}", "dim")


def print_failure(ref: JobRef, job: Object, *, to: TextOutput) -> ReplicaPod | None:
    """Print why the job failed, which pod failed, and its last log lines."""
    pod, reason = failed_pod(ref, job), reason_of(job)
    if reason and (pod is None or pod.name not in reason):
        to.line(f"  {reason}")
    if pod is None:
        failure = status_of(job).failure
        print_log_tail(failure.pod if failure else "", archived_lines(failure), to=to)
        return None
    failure = status_of(job).failure
    mine = failure if failure and failure.pod == pod.name else None
    if mine is not None and mine.message and not pod.has_started:
        to.lines(stage_failure(mine))
        return pod
    reason = f" ({pod.reason})" if pod.reason not in PLAIN_REASONS else ""
    message = f": {pod.message}" if pod.message else ""
    to.line(f"  {pod.name} ended with {describe_exit_code(pod.exit_code)}{reason}{message}")
    print_log_tail(str(pod.place), last_lines(ref, pod) or archived_lines(mine), to=to)
    return pod


def stage_failure(failure: Failure) -> list[str]:
    """Return the lines about a stage that failed before the command started, with the message of the failed tool."""
    stage = f"the stage {failure.container.removeprefix(OURS)}" if failure.container else "a stage before its command"
    headline = f"  {failure.pod} failed at {stage} with {describe_exit_code(failure.exit_code)}:"
    return [headline, *(f"    {line}" for line in failure.message.splitlines())]


def print_log_tail(whose: str, lines: list[bytes], *, to: TextOutput) -> None:
    """Print the last lines of a log, if any."""
    if lines:
        to.line(f"  the last lines of {whose}:")
        to.log(b"".join(b"    " + line + b"\n" for line in lines))


def archived_lines(failure: Failure | None) -> list[bytes]:
    """Return the log lines that the status holds of a failed pod, which may be deleted."""
    return [line.encode() for line in (failure.last_lines or ())] if failure else []


def failed_pod(ref: JobRef, job: Object) -> ReplicaPod | None:
    """Return the pod that caused the failure: the one named in the status, or the first that failed."""
    pods = ref.pods()
    failure = status_of(job).failure
    named = next((pod for pod in pods if failure and pod.name == failure.pod), None)
    return named or first_failed(pods)


def last_lines(ref: JobRef, pod: ReplicaPod) -> list[bytes]:
    """Return the last lines of a pod's log, or an empty list if it cannot be read."""
    ask = LogOptions(is_followed=False, tail=LAST_LINES)
    with contextlib.suppress(PacelineError):
        text = b"".join(logged.text for logged in ref.pod_chunks(pod, ask))
        return text.rstrip(b"\n").split(b"\n") if text else []
    return []


def folders(session: Session, job: Object) -> Iterator[tuple[str, str, str]]:
    """Yield every claim of a job with its mount path and, if it is on this machine, its folder."""
    for claim, mounted in claims_of(job):
        with contextlib.suppress(PacelineError):
            yield claim, mounted, session.claim_folder(claim)


OURS = "paceline-"
# Cut long messages; the status has the full text.
MOST_LETTERS = 100


def stages_table(status: JobStatus) -> list[str]:
    """Return a table of all stages of all replicas; empty if the job has none."""
    rows = [
        (str(row["name"]), str(stage["name"]).removeprefix(OURS), _state(stage), _message(stage))
        for task in status.tasks
        for row in task.get("replicas") or ()
        for stage in row.get("stages") or ()
    ]
    return table(("REPLICA", "STAGE", "STATE", "MESSAGE"), rows) if rows else []


def values_of(job: Mapping[str, Any]) -> str:
    """Return a job's hyperparameters in one line."""
    values = ((job.get("spec") or {}).get("hyperparameters") or {}).get("values") or {}
    return ", ".join(f"{name}={value}" for name, value in sorted(values.items()))


def _state(stage: Mapping[str, Any]) -> str:
    if stage["state"] != "Terminated":
        return str(stage["state"])
    return "Done" if stage.get("exitCode") == 0 else "Failed"


def _message(stage: Mapping[str, Any]) -> str:
    message = " ".join(str(stage.get("message") or "").split())
    return message if len(message) <= MOST_LETTERS else f"{message[: MOST_LETTERS - 1]}…"
