"""Who of several controllers acts: given a lease as it was seen, what should this one do with it next?

Moments are seconds of one's own monotonic clock and are never compared with those of others: a lease counts as
abandoned when it has not changed before one's own eyes for as long as its holder promised to renew it.
"""

from dataclasses import dataclass
from enum import StrEnum

# How long others wait for a holder that is silent; a holder stops acting well before that.
LEASE_SECONDS = 15.0
ACT_SECONDS = 10.0
# How often a holder renews its lease and others look at it.
AGAIN_SECONDS = 2.0


class LeaseAction(StrEnum):
    """What to do with the lease."""

    MAKE = "make"
    # It is free, or whoever held it is gone.
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseView:
    """Everything the decision may look at."""

    me: str
    # None while nobody has made the lease; empty when its holder has let go of it.
    holder: str | None
    # How long its holder promised at most not to touch it, and since when it has been as it is.
    promised_seconds: float = LEASE_SECONDS
    unchanged_since: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePlan:
    """What to do, and when to look again."""

    step: LeaseAction
    look_again: float


def decide(view: LeaseView, now: float) -> LeasePlan:
    """Make, take, renew or leave the lease."""
    soon = now + AGAIN_SECONDS
    if view.holder is None:
        return LeasePlan(step=LeaseAction.MAKE, look_again=soon)
    if view.holder == view.me:
        return LeasePlan(step=LeaseAction.RENEW, look_again=soon)
    abandoned = view.unchanged_since + view.promised_seconds
    if not view.holder or now >= abandoned:
        return LeasePlan(step=LeaseAction.TAKE, look_again=soon)
    return LeasePlan(step=LeaseAction.WAIT, look_again=min(soon, abandoned))


def acts_until(asked_at: float) -> float:
    """Return until when a holder may act whose last renewal, asked for at this moment, was granted.

    Counted from the question, not the answer: others begin to count when the lease changes, which is later.
    """
    return asked_at + ACT_SECONDS
