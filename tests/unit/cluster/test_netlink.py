"""Messages to the kernel are what the kernel reads, and its answers are read back."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.host.netlink import (
    NetlinkSocket,
    attribute,
    attributes,
    find_link,
    links,
    message,
    messages,
    nested,
    routed,
)
from paceline.host.pod_bridge import missing_rights


@given(st.dictionaries(st.integers(1, 0x3FFF), st.binary(max_size=50), max_size=8))
def test_attributes_are_read_as_they_were_written(values):
    written = b"".join(attribute(kind, value) for kind, value in values.items())

    assert attributes(written) == values
    assert len(written) % 4 == 0


def test_an_attribute_has_its_length_before_it_and_padding_after_it():
    assert attribute(3, b"eth0\0") == struct.pack("=HH", 9, 3) + b"eth0\0\0\0\0"


def test_attributes_lie_within_attributes():
    inner = attributes(attributes(nested(18, attribute(1, b"veth")))[18])

    assert inner == {1: b"veth"}


@given(st.lists(st.tuples(st.integers(16, 99), st.integers(1, 99), st.binary(max_size=50)), max_size=5))
def test_messages_are_read_as_they_were_written(values):
    data = b"".join(message(kind, 5, sequence, body) for kind, sequence, body in values)

    assert list(messages(data)) == values


@pytest.mark.parametrize("cut", range(1, 40))
def test_an_answer_that_was_cut_off_does_no_harm(cut):
    data = message(16, 0, 1, attribute(3, b"name") + attribute(20, b"alias"))[:cut]

    for _, _, body in messages(data):
        attributes(body)


def test_the_kernel_answers_questions_about_this_machine():
    with NetlinkSocket() as line:
        names = {each.name for each in links(line)}
        loopback = find_link(line, "lo")
        assert find_link(line, "no-such-link") is None
        ways = routed(line)

    assert names == {name for _, name in socket.if_nameindex()}
    assert loopback is not None
    assert loopback.index == 1
    assert all(way.prefixlen for way in ways)


@pytest.mark.parametrize(
    ("rights", "is_enough"), [("000001ffffffffff", True), ("0000000000001000", False), ("0", False)]
)
def test_what_is_missing_is_named(tmp_path, rights, is_enough):
    status = tmp_path / "status"
    status.write_text(f"Name:\tx\nCapEff:\t{rights}\n")

    assert (missing_rights(status) == "") is is_enough
    assert is_enough or "CAP_NET_ADMIN" in missing_rights(status)
