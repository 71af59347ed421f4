"""Ports are handed out once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import HostError
from paceline.plan.job.manifests import allocate_ports


def test_the_first_free_ports_are_given():
    assert allocate_ports(("master", "peer"), {100, 102}, start=100, size=5) == {"master": 101, "peer": 103}


def test_nothing_is_given_to_who_wants_nothing():
    assert allocate_ports((), set(), start=100, size=0) == {}


def test_a_used_up_range_says_what_to_do():
    with pytest.raises(HostError, match="all 2 ports from 100 are taken by jobs; delete jobs"):
        allocate_ports(("master",), {100, 101}, start=100, size=2)


@given(st.sets(st.integers(100, 130)), st.integers(0, 5))
def test_no_port_is_given_twice_nor_outside_the_range(taken, count):
    wanted = tuple(f"port-{index}" for index in range(count))
    try:
        given = allocate_ports(wanted, taken, start=100, size=20)
    except HostError:
        assert 20 - len({port for port in taken if port < 120}) < count
        return

    assert len(set(given.values())) == count
    assert all(100 <= port < 120 and port not in taken for port in given.values())
