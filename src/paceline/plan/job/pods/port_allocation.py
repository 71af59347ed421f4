"""Ports for jobs whose members share one network: chosen before any member is made, so that all can be told."""

from collections.abc import Set as AbstractSet

from paceline.errors import HostError


def allocate_ports(names: tuple[str, ...], taken: AbstractSet[int], *, start: int, size: int) -> dict[str, int]:
    """Return the next free port of the range for each name; HostError when the range is used up."""
    free = (port for port in range(start, start + size) if port not in taken)
    chosen = dict(zip(names, free, strict=False))
    if len(chosen) < len(names):
        raise HostError(f"all {size} ports from {start} are taken by jobs; delete jobs that are no longer needed")
    return chosen
