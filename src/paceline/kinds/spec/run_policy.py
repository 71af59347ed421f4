"""Deadlines, restart limit and cleanup of a job (T9k's runPolicy)."""

from dataclasses import replace
from typing import Annotated, Literal

from paceline.kinds.spec.fields import Count, Part, Positive, about
from paceline.model.gang import CleanUp, Gang, RestartScope

CleanUpPolicy = Annotated[
    Literal["None", "All", "Unfinished"],
    about("Pods that are deleted when the job ends: None, All, or only the Unfinished ones."),
]
Scope = Annotated[
    RestartScope,
    about(
        "What is restarted when one replica fails: the whole Gang, or that Replica alone. If omitted, Replica for "
        "GenericJob, TensorFlow with parameter servers and elastic PyTorch; otherwise Gang, because the other replicas "
        "cannot continue without the failed one."
    ),
]


class Limits(Part, frozen=True, kw_only=True):
    """Deadlines of a job."""

    active_deadline_seconds: (
        Annotated[Positive, about("Seconds from its start after which an unfinished job fails; pauses do not count.")]
        | None
    ) = None
    starting_deadline_seconds: (
        Annotated[
            Positive,
            about(
                "Seconds from its creation, or from the end of a pause, after which the job fails unless all its pods "
                "have been running."
            ),
        ]
        | None
    ) = None
    stall_seconds: (
        Annotated[
            Positive,
            about(
                "Seconds without a new log line of any replica after which a running job is stalled: all replicas are "
                "restarted, which counts towards the restart limit, or the job fails. If omitted, there is no limit."
            ),
        ]
        | None
    ) = None
    ttl_seconds_after_finished: (
        Annotated[
            Count,
            about("Seconds from its end after which the job and its dependents are deleted; may change at any time."),
        ]
        | None
    ) = None


class RunPolicy(Limits, frozen=True, kw_only=True):
    """Deadlines, restart limit and cleanup of a job."""

    backoff_limit: Annotated[Count, about("Maximum number of restarts, summed over all replicas of the job.")] = 3
    clean_up_policy: CleanUpPolicy = "Unfinished"


def with_limits(gang: Gang, policy: Limits | None) -> Gang:
    """Return the gang with the deadlines of its policy."""
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
    """Return the clean-up policy as an enum."""
    return CleanUp(policy)
