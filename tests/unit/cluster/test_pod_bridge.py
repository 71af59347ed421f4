"""Pods get addresses that the machine does not use for anything else."""

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.host.pod_bridge import POOLS, USUAL, choose_subnet

SEEDS = st.integers(0, 2**32 - 1)
NETWORKS = st.builds(
    lambda pool, at, bits: IPv4Network((int(pool.network_address) + at % pool.num_addresses, bits), strict=False),
    st.sampled_from(POOLS),
    st.integers(0, 2**24),
    st.integers(9, 32),
)


@given(st.lists(NETWORKS, max_size=8), SEEDS)
def test_what_is_chosen_is_private_and_nobodys(taken, seed):
    chosen = choose_subnet(taken, seed=seed)

    assert chosen is None or not any(chosen.overlaps(other) for other in (*taken, *USUAL))
    assert chosen is None or any(chosen.subnet_of(pool) for pool in POOLS)


@given(SEEDS)
def test_a_second_cluster_finds_another_one(seed):
    first = choose_subnet((), seed=seed)
    second = choose_subnet((first,), seed=seed)

    assert first is not None
    assert second is not None
    assert not first.overlaps(second)


def test_a_cluster_that_starts_again_chooses_the_same():
    assert choose_subnet((), seed=7) == choose_subnet((), seed=7)


@pytest.mark.parametrize("count", range(1, len(POOLS) + 1))
def test_when_a_whole_pool_is_routed_elsewhere_the_next_one_is_used(count):
    chosen = choose_subnet(POOLS[:count], seed=3)

    if count == len(POOLS):
        assert chosen is None
    else:
        assert chosen.subnet_of(POOLS[count])
