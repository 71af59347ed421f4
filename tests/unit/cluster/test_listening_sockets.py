"""Whose a listening socket is, asked of this very machine."""

import os
import socket
import subprocess
import sys

import pytest

from paceline.effects import ProcessHandle
from paceline.host.proc_stats import are_listening, sockets_at
from paceline.node.runtime.shim import boot_id, start_ticks

LISTENS = """
import socket, sys
sock = socket.create_server((sys.argv[1], 0), reuse_port=True)
print(sock.getsockname()[1], flush=True)
sys.stdin.read()
"""


def identity(pid):
    return ProcessHandle(pid=pid, start_ticks=start_ticks(pid), boot_id=boot_id())


@pytest.fixture
def listener():
    """Start processes below this one that listen; give each one's identity and port."""
    started = []

    def start(address):
        process = subprocess.Popen(
            [sys.executable, "-c", LISTENS, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return identity(process.pid), int(process.stdout.readline())

    yield start
    for process in started:
        process.communicate("")


@pytest.mark.parametrize("address", ["0.0.0.0", "127.200.0.1"])
def test_a_socket_of_ones_own_is_found_at_its_address_and_at_all(listener, address):
    who, port = listener(address)

    assert are_listening((who,), "127.200.0.1", port)


def test_a_socket_at_another_address_is_not_reached(listener):
    who, port = listener("127.200.0.2")

    assert not are_listening((who,), "127.200.0.1", port)


def test_a_socket_of_somebody_else_is_not_theirs(listener):
    one, port = listener("0.0.0.0")
    other, _ = listener("0.0.0.0")

    assert are_listening((one, other), "127.200.0.1", port)
    assert not are_listening((other,), "127.200.0.1", port)


def test_the_nearest_socket_is_the_one_that_counts(listener):
    """A connection reaches the one at the very address, whoever else listens on all."""
    who, port = listener("0.0.0.0")
    with socket.create_server(("127.200.0.1", port), reuse_port=True):
        assert not are_listening((who,), "127.200.0.1", port)
        assert are_listening((who,), "127.200.0.2", port)
    assert are_listening((who,), "127.200.0.1", port)


def test_a_place_that_is_shared_with_a_stranger_is_not_theirs(listener):
    """Either of the two may get the connection."""
    who, port = listener("127.200.0.1")
    with socket.create_server(("127.200.0.1", port), reuse_port=True):
        assert len(sockets_at("127.200.0.1", port)) == 2
        assert not are_listening((who,), "127.200.0.1", port)


def test_what_a_child_listens_on_is_its_parents_too(listener):
    _, port = listener("0.0.0.0")

    assert are_listening((identity(os.getpid()),), "127.200.0.1", port)


def test_a_later_process_with_the_same_pid_is_not_taken_for_it(listener):
    who, port = listener("0.0.0.0")
    before = ProcessHandle(pid=who.pid, start_ticks=who.start_ticks - 1, boot_id=who.boot_id)

    assert not are_listening((before,), "127.200.0.1", port)


def test_a_socket_that_takes_both_sorts_of_addresses_is_found():
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as both:
        assert sockets_at("127.200.0.1", both.getsockname()[1])
