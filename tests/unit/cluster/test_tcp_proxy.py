"""Ports of the external address, with real sockets on loopback: bytes go both ways, and none is lost."""

import asyncio
import socket
from contextlib import asynccontextmanager

import pytest

from paceline.client.http.http1 import Address
from paceline.errors import HostError
from paceline.host import tcp_proxy
from paceline.host.tcp_proxy import OpenPorts

HERE = "127.0.0.9"
SECONDS = 15


@pytest.fixture
def port():
    """A port that is free now."""
    with socket.socket() as found:
        found.bind((HERE, 0))
        return found.getsockname()[1]


@asynccontextmanager
async def opened(port, lead):
    """Listen while a test looks."""
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
        ports = OpenPorts(address=HERE, group=group)
        ports.open(port, lead)
        yield ports
        if port in ports._tasks:
            await ports.close(port)


@asynccontextmanager
async def pod(answer):
    """A program that answers callers; gives how to lead to it."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        place = Address(address="127.0.0.1", port=server.sockets[0].getsockname()[1])

        async def lead(_peer):
            return place

        yield lead


async def settle():
    """Let everybody do what they can do now."""
    for _ in range(1000):
        await asyncio.sleep(0)


async def echo(reader, writer):
    writer.write(b"<" + await reader.read() + b">")
    await writer.drain()
    writer.close()


async def test_what_a_caller_sends_comes_back_after_it_has_said_that_this_is_all(port):
    async with pod(echo) as lead, opened(port, lead):
        reader, writer = await asyncio.open_connection(HERE, port)
        writer.write(b"hello")
        writer.write_eof()
        assert await reader.read() == b"<hello>"
        writer.close()


async def test_much_is_passed_on_whole_and_not_read_ahead_of_who_takes_it(port):
    sent = []

    async def pour(_reader, writer):
        for _ in range(400):
            writer.write(b"x" * 65536)
            await writer.drain()
            sent.append(65536)
        writer.close()

    async with pod(pour) as lead, opened(port, lead):
        reader, writer = await asyncio.open_connection(HERE, port, limit=65536)
        await reader.readexactly(1)
        before = -1
        while before != sum(sent):
            before = sum(sent)
            await settle()
        assert before < 400 * 65536
        assert len(await reader.read()) == 400 * 65536 - 1
        writer.close()


async def test_a_caller_whom_nobody_answers_is_sent_off_at_once(port):
    async def nobody(_peer):
        return None

    async with opened(port, nobody):
        reader, writer = await asyncio.open_connection(HERE, port)
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
        writer.close()


async def test_a_pod_that_does_not_listen_is_not_waited_for(port):
    with socket.socket() as keeper:
        keeper.bind(("127.0.0.1", 0))
        place = Address(address="127.0.0.1", port=keeper.getsockname()[1])

        async def lead(_peer):
            return place

        async with opened(port, lead):
            reader, writer = await asyncio.open_connection(HERE, port)
            with pytest.raises(ConnectionResetError):
                await reader.readexactly(1)
            writer.close()


async def test_no_more_callers_than_may_be_are_let_in_and_the_next_one_waits(port, monkeypatch):
    monkeypatch.setattr(tcp_proxy, "MAX_CONNECTIONS", 1)
    came = []

    async def greet(reader, writer):
        came.append(writer)
        writer.write(b"hello")
        await reader.read()
        writer.close()

    async with pod(greet) as lead, opened(port, lead):
        first = await asyncio.open_connection(HERE, port)
        assert await first[0].readexactly(5) == b"hello"
        second = await asyncio.open_connection(HERE, port)
        await settle()
        assert len(came) == 1
        first[1].close()
        assert await second[0].readexactly(5) == b"hello"
        second[1].close()


async def test_a_port_is_free_again_and_its_callers_gone_once_it_is_closed(port):
    async def greet(reader, writer):
        writer.write(b"hello")
        await reader.read()
        writer.close()

    async with pod(greet) as lead, opened(port, lead) as ports:
        reader, writer = await asyncio.open_connection(HERE, port)
        assert await reader.readexactly(5) == b"hello"
        await ports.close(port)
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(HERE, port)
        ports.open(port, lead)


async def test_a_port_that_somebody_has_is_told_to_be(port):
    async def nobody(_peer):
        return None

    with socket.create_server((HERE, port)):
        async with asyncio.TaskGroup() as group:
            with pytest.raises(
                HostError, match=f"port {port} of {HERE} cannot be opened: another program listens on it"
            ):
                OpenPorts(address=HERE, group=group).open(port, nobody)


async def test_an_address_that_the_machine_does_not_have_is_told_to_be_none():
    with pytest.raises(HostError, match="choose one with `paceline up --external-address`"):
        tcp_proxy.listen("192.0.2.1", 0)
