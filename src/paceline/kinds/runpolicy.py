"""How long a job may run, how often it is tried, and what goes when it ends (T9k's runPolicy)."""

from dataclasses import replace
from typing import Annotated, Literal

from paceline.kinds.fields import Count, Part, Positive, about
from paceline.objects.gang import CleanUp, Gang, RestartScope

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


class Limits(Part, frozen=True, kw_only=True):
    """The times of a job's life."""

    active_deadline_seconds: (
        Annotated[Positive, about("Seconds after its start when the job fails, done or not; pauses do not count.")]
        | None
    ) = None
    starting_deadline_seconds: (
        Annotated[
            Positive,
            about(
                "Seconds after its creation, or after a pause, when the job fails unless all its pods have run by then."
            ),
        ]
        | None
    ) = None
    stall_seconds: (
        Annotated[
            Positive,
            about(
                "Seconds without a new line in the log of any replica after which a running job counts as stalled: all "
                "replicas are tried again, which counts as a restart, or the job fails. Left out: it may be silent."
            ),
        ]
        | None
    ) = None
    ttl_seconds_after_finished: (
        Annotated[
            Count,
            about("Seconds after its end when the job is deleted with all that is its own; may change at any time."),
        ]
        | None
    ) = None


class RunPolicy(Limits, frozen=True, kw_only=True):
    """The limits of a job's life."""

    backoff_limit: Annotated[Count, about("Restarts that all replicas of the job share.")] = 3
    clean_up_policy: CleanUpPolicy = "Unfinished"


def with_limits(gang: Gang, policy: Limits | None) -> Gang:
    """Put the times of its life to a gang."""
    if policy is None:
        return gang
    return replace(
        gang,
        active_deadline_seconds=policy.active_deadline_seconds,
        starting_deadline_seconds=policy.starting_deadline_seconds,
        stall_seconds=policy.stall_seconds,
        ttl_seconds=policy.ttl_seconds_after_finished,
    )


def clean_up(policy: str) -> CleanUp:
    """Read a clean-up policy."""
    return CleanUp(policy)
