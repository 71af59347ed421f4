"""TensorBoard: curves of trainings, over logs that outlive the jobs that wrote them.

In     a spec whose fields already satisfy their bounds.
Out    its faults, and the claims it reads.
Never  starts anything: its controller does.
"""

from typing import Annotated, Literal

from paceline.errors import Fault
from paceline.kinds.draft import Draft
from paceline.kinds.fields import Part, about
from paceline.kinds.kind import ServiceKind
from paceline.kinds.suspend import run_mode_to_suspend
from paceline.kinds.tensorboardspec import TensorBoardSpec, check_logs, log_claims


class OldTensorBoard(Part, frozen=True, kw_only=True):
    """What was written until 2024."""

    run_mode: Annotated[Literal["running", "paused"], about("Old form of suspend.")] | None = None


def check(spec: TensorBoardSpec, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    return tuple(check_logs(spec, path))


def modernise(draft: Draft) -> None:
    """Turn `runMode: paused` into `suspend: true`."""
    run_mode_to_suspend(draft)


KIND = ServiceKind(
    kind="TensorBoard",
    plural="tensorboards",
    short_names=("tb",),
    spec=TensorBoardSpec,
    check=check,
    claims=log_claims,
    old=OldTensorBoard,
    modernise=modernise,
)
