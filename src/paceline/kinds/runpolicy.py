"""How long a job may run, how often it is tried, and what goes when it ends (T9k's runPolicy)."""

from typing import Annotated, Literal

from paceline.kinds.fields import Count, Part, Positive, about
from paceline.objects.gang import CleanUp, RestartScope

CleanUpPolicy = Annotated[
    Literal["None", "All", "Unfinished"],
    about("Which pods are deleted when the job ends: None, All, or the Unfinished ones."),
]
Scope = Annotated[
    RestartScope,
    about(
        "Who is tried again when one replica fails: the whole Gang, or that Replica alone. Left out: Gang where peers "
        "of a dead rank cannot go on without it; Replica for GenericJob, parameter servers and elastic PyTorch."
    ),
]


class RunPolicy(Part, frozen=True, kw_only=True):
    """The limits of a job's life."""

    active_deadline_seconds: (
        Annotated[Positive, about("Seconds after its start when the job fails, done or not; pauses do not count.")]
        | None
    ) = None
    backoff_limit: Annotated[Count, about("Restarts that all replicas of the job share.")] = 3
    clean_up_policy: CleanUpPolicy = "Unfinished"


def clean_up(policy: str) -> CleanUp:
    """Read a clean-up policy."""
    return CleanUp(policy)
