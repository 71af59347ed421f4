"""Elastic jobs: the number of replicas changes while the job runs (T9k's elastic)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated

from msgspec import Meta

from paceline.apimachinery.field_errors import invalid
from paceline.errors import Fault
from paceline.kinds.spec.fields import MAX_REPLICAS, Part, about
from paceline.model.gang import Gang, RestartScope

Size = Annotated[int, Meta(ge=1, le=MAX_REPLICAS)]


class Elastic(Part, frozen=True, kw_only=True):
    """Bounds for the number of replicas of an elastic job."""

    enabled: Annotated[bool, about("Allow the number of replicas to change while the job runs.")] = False
    min_replicas: Annotated[Size, about("Minimum number of replicas.")] | None = None
    max_replicas: Annotated[Size, about("Maximum number of replicas.")] | None = None
    expected_replicas: (
        Annotated[
            Size,
            about(
                "Desired number of replicas, instead of the sum of replicas; may change at any time. If omitted, the "
                "sum of replicas, limited by the bounds."
            ),
        ]
        | None
    ) = None


def check_elastic(elastic: Elastic | None, path: str) -> Iterator[Fault]:
    """Yield a fault if the bounds contradict each other or the desired size is outside of them."""
    if elastic is None:
        return
    lowest, highest, desired = elastic.min_replicas, elastic.max_replicas, elastic.expected_replicas
    if lowest is not None and highest is not None and lowest > highest:
        yield invalid(f"{path}.minReplicas", lowest, f"must be at most maxReplicas, {highest}")
    elif desired is not None and not (lowest or 1) <= desired <= (highest or desired):
        bounds = f"between {lowest or 1} and {highest}" if highest is not None else f"at least {lowest}"
        yield invalid(f"{path}.expectedReplicas", desired, f"must be {bounds}")


def is_elastic(elastic: Elastic | None) -> bool:
    """Return whether the job is elastic."""
    return elastic is not None and elastic.enabled


def with_size(gang: Gang, elastic: Elastic | None) -> Gang:
    """Return the gang marked as elastic, with its minimum size if members can join one by one."""
    if elastic is None or not elastic.enabled:
        return gang
    fewest = min(elastic.min_replicas or 1, len(gang.members))
    # Members that restart together need all the others: each has been given the full list.
    return replace(gang, is_elastic=True, least=fewest if gang.scope is RestartScope.REPLICA else None)


def sizes(replicas: Mapping[str, int], weights: Mapping[str, int], elastic: Elastic | None) -> dict[str, int]:
    """Return the number of replicas of each type: as written, or the desired total distributed by weight.

    Whole shares are rounded down; the remaining replicas go to the largest remainders, ties to the earlier type. The
    first type always has at least one replica, because its first replica is the leader.
    """
    written = sum(replicas.values())
    desired = _desired(written, elastic) if elastic is not None and elastic.enabled else None
    if desired is None:
        return dict(replicas)
    total = sum(weights.values())
    if not total:
        weights, total = dict(replicas), written
    shares = {role: desired * weights.get(role, 0) // total for role in replicas}
    remaining = desired - sum(shares.values())
    for role in sorted(replicas, key=lambda role: -(desired * weights.get(role, 0) % total))[:remaining]:
        shares[role] += 1
    first = next(iter(shares))
    if not shares[first]:
        shares[max(shares, key=lambda role: shares[role])] -= 1
        shares[first] = 1
    return shares


def _desired(written: int, elastic: Elastic) -> int | None:
    """Return the desired number of replicas within the bounds; None if it equals the number written."""
    if elastic.expected_replicas is not None:
        return elastic.expected_replicas
    within = max(min(written, elastic.max_replicas or written), elastic.min_replicas or 1)
    return None if within == written else within
