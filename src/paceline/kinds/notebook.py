"""Notebook: a JupyterLab on a claim, to look into data and to write the script that the next job runs.

In     a spec whose fields already satisfy their bounds.
Out    its faults, and the claims it mounts.
Never  starts anything: its controller does.
"""

from typing import Annotated, Literal

import msgspec

from paceline.errors import Fault
from paceline.kinds.draft import Draft
from paceline.kinds.fields import Part, Template, about
from paceline.kinds.kind import Claim, ServiceKind
from paceline.kinds.schedule import Scheduler
from paceline.kinds.suspend import run_mode_to_suspend
from paceline.kinds.template import Words, check_template, claims_in


class Ssh(Part, frozen=True, kw_only=True, rename=None):
    """Logging in from outside. Read, but not acted on: `kubectl exec` opens a shell in the notebook."""

    enabled: Annotated[bool, about("Whether an SSH server runs in the notebook.")] = False
    service_type: Annotated[str, about("Type of the service in front of it.")] | None = msgspec.field(
        default=None, name="serviceType"
    )
    # T9k's spelling, on the wire as here.
    authorized_keys: Annotated[Words, about("Secrets with the public keys that may log in.")] = ()


class NotebookSpec(Part, frozen=True, kw_only=True):
    """A JupyterLab in the browser, with a terminal, on a claim."""

    type: Annotated[Literal["jupyter", "Jupyter", "RStudio"], about("Which program it is; jupyter is run here.")] = (
        "jupyter"
    )
    template: Template
    ssh: Annotated[Ssh, about("Logging in from outside.")] | None = None
    suspend: Annotated[bool, about("Stop it and keep the object; may change at any time.")] = False
    scheduler: Annotated[Scheduler, about("Who places the pod.")] | None = None


class OldNotebook(Part, frozen=True, kw_only=True):
    """What was written until 2024."""

    run_mode: Annotated[Literal["running", "paused"], about("Old form of suspend.")] | None = None


def check(spec: NotebookSpec, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    return tuple(check_template(spec.template, f"{path}.template"))


def claims(spec: NotebookSpec, path: str) -> tuple[Claim, ...]:
    """Give the claims it mounts, each with the path that names it."""
    return tuple(claims_in(spec.template, f"{path}.template"))


def modernise(draft: Draft) -> None:
    """Turn `runMode: paused` into `suspend: true`."""
    run_mode_to_suspend(draft)


KIND = ServiceKind(
    kind="Notebook",
    plural="notebooks",
    short_names=("nb",),
    spec=NotebookSpec,
    check=check,
    claims=claims,
    old=OldNotebook,
    modernise=modernise,
)
