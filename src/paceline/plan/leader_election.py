"""Leader election: what should this controller do with the lease next?

Moments are seconds of one's own monotonic clock and are never compared with those of others: a lease counts as
abandoned when it has not changed before one's own eyes for as long as its holder promised to renew it.
"""

from dataclasses import dataclass
from enum import StrEnum

# How long others wait for a holder that does not renew; the holder stops acting well before that.
LEASE_SECONDS = 15.0
ACT_SECONDS = 10.0
# How often the holder renews the lease and others read it.
AGAIN_SECONDS = 2.0


class LeaseAction(StrEnum):
    """What to do with the lease."""

    MAKE = "make"
    # It is free or has expired.
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseView:
    """Everything the decision may look at."""

    me: str
    # None if the lease does not exist; empty if its holder has released it.
    holder: str | None
    # The duration of the lease, and since when it has not changed.
    promised_seconds: float = LEASE_SECONDS
    unchanged_since: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePlan:
    """What to do, and when to decide again."""

    step: LeaseAction
    look_again: float


def decide(view: LeaseView, now: float) -> LeasePlan:
    """Return whether to create, take or renew the lease, or to wait."""
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
