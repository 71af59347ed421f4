"""Jobs that grow and shrink while they run (T9k's elastic)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated

from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds.fields import MAX_REPLICAS, Part, about
from paceline.objects.faults import invalid
from paceline.objects.gang import Gang, RestartScope

Size = Annotated[int, Meta(ge=1, le=MAX_REPLICAS)]


class Elastic(Part, frozen=True, kw_only=True):
    """How far the job may grow and shrink."""

    enabled: Annotated[bool, about("Let the number of replicas change while the job runs.")] = False
    min_replicas: Annotated[Size, about("Fewest replicas the job runs with.")] | None = None
    max_replicas: Annotated[Size, about("Most replicas the job runs with.")] | None = None
    expected_replicas: (
        Annotated[
            Size,
            about(
                "Replicas wanted now, in place of replicas; may change at any time. Left out: as replicas says, within "
                "the bounds."
            ),
        ]
        | None
    ) = None


def check_elastic(elastic: Elastic | None, path: str) -> Iterator[Fault]:
    """Name bounds that cross, and a size outside of them."""
    if elastic is None:
        return
    least, most, wanted = elastic.min_replicas, elastic.max_replicas, elastic.expected_replicas
    if least is not None and most is not None and least > most:
        yield invalid(f"{path}.minReplicas", least, f"ask for at most maxReplicas, {most}")
    elif wanted is not None and not (least or 1) <= wanted <= (most or wanted):
        bounds = f"{least or 1} to {most}" if most is not None else f"at least {least}"
        yield invalid(f"{path}.expectedReplicas", wanted, f"ask for {bounds}")


def is_elastic(elastic: Elastic | None) -> bool:
    """Tell whether the job may change its size."""
    return elastic is not None and elastic.enabled


def with_size(gang: Gang, elastic: Elastic | None) -> Gang:
    """Say of a gang that its size may change, and how few members are enough where each can join alone."""
    if elastic is None or not elastic.enabled:
        return gang
    fewest = min(elastic.min_replicas or 1, len(gang.members))
    # Where all start together, all are needed: each of them was told of all the others.
    return replace(gang, is_elastic=True, least=fewest if gang.scope is RestartScope.REPLICA else None)


def sizes(replicas: Mapping[str, int], weights: Mapping[str, int], elastic: Elastic | None) -> dict[str, int]:
    """Give the number of replicas of each type: as written, or the wanted number divided by weight.

    What is left over after whole shares goes to the largest remainders, and of equal ones to the type written first,
    which has one at least: its first replica leads, in every size.
    """
    written = sum(replicas.values())
    wanted = _wanted(written, elastic) if elastic is not None and elastic.enabled else None
    if wanted is None:
        return dict(replicas)
    total = sum(weights.values())
    if not total:
        weights, total = dict(replicas), written
    shares = {role: wanted * weights.get(role, 0) // total for role in replicas}
    left = wanted - sum(shares.values())
    for role in sorted(replicas, key=lambda role: -(wanted * weights.get(role, 0) % total))[:left]:
        shares[role] += 1
    first = next(iter(shares))
    if not shares[first]:
        shares[max(shares, key=lambda role: shares[role])] -= 1
        shares[first] = 1
    return shares


def _wanted(written: int, elastic: Elastic) -> int | None:
    """Tell how many replicas a job is to have, within its bounds; None where that is what is written."""
    if elastic.expected_replicas is not None:
        return elastic.expected_replicas
    within = max(min(written, elastic.max_replicas or written), elastic.min_replicas or 1)
    return None if within == written else within
