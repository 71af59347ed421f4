"""Choose addresses for pods that this machine does not use for anything else."""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network

# As many as pods may have names, also those that have ended and are still listed.
BITS = 18
# In this order. The first two are private; the last is carriers' own, which some private networks use too.
POOLS = tuple(IPv4Network(each) for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))
# What others on such machines begin with: services and pods of Kubernetes, of k3s, Podman and Docker.
USUAL = tuple(
    IPv4Network(each)
    for each in ("10.96.0.0/12", "10.244.0.0/16", "10.42.0.0/15", "10.88.0.0/16", "172.17.0.0/16", "10.0.0.0/16")
)


def choose_subnet(taken: Iterable[IPv4Network], *, seed: int) -> IPv4Network | None:
    """Find a subnet that overlaps with none that is taken; which one is looked at first is up to the seed."""
    avoided = (*USUAL, *taken)
    return next((each for each in _candidates(seed) if not any(each.overlaps(other) for other in avoided)), None)


def _candidates(seed: int) -> Iterator[IPv4Network]:
    for pool in POOLS:
        count = 2 ** (BITS - pool.prefixlen)
        step = 2 ** (32 - BITS)
        for number in range(count):
            at = int(pool.network_address) + (seed + number) % count * step
            yield IPv4Network((at, BITS))
