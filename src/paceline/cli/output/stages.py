"""The stages of a job's replicas: init containers, sidecars and uploads with their state."""

from collections.abc import Mapping
from typing import Any

from paceline.cli.output.table import table
from paceline.model.job_status import JobStatus

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
