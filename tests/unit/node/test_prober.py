"""Probes over the network: what counts as an answer, and what is said of the others."""

import asyncio
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import pytest

from paceline.node.probes.prober import Prober, ProbeResult
from paceline.node.probes.probes import Probe, probe_of
from paceline.node.runtime.exec_types import ContainerGone, ExecError
from tests.unit.node.pods import container, pod

ASKING = Prober(exec_probe=None)
HERE = "127.0.0.1"


@asynccontextmanager
async def server(answer):
    heard, over = [], asyncio.Event()

    async def serve(reader, writer):
        with suppress(asyncio.IncompleteReadError):
            heard.append(await reader.readuntil(b"\r\n\r\n"))
        if answer is None:
            # Until whoever asked has hung up.
            await reader.read()
        writer.write(answer or b"")
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        over.set()

    async with await asyncio.start_server(serve, HERE, 0) as running:
        yield running.sockets[0].getsockname()[1], heard
        await over.wait()


async def get(answer, **said):
    async with server(answer) as (port, heard):
        probe = probe_of({"livenessProbe": {"httpGet": {"port": port, **said}}}, "livenessProbe")
        found = await ASKING.probe(probe, pod(), container(), HERE)
    return found, heard[0].decode()


ANSWERS = {
    "200 is good": (b"HTTP/1.1 200 OK\r\n\r\n", True, ""),
    "a redirection is good": (b"HTTP/1.1 302 Found\r\n\r\n", True, ""),
    "404 is not": (b"HTTP/1.1 404 Not Found\r\n\r\n", False, "HTTP probe failed with statuscode: 404"),
    "500 is not": (b"HTTP/1.0 500\r\n\r\n", False, "HTTP probe failed with statuscode: 500"),
}


@pytest.mark.parametrize(("answer", "is_good", "text"), ANSWERS.values(), ids=ANSWERS)
async def test_a_status_is_an_answer(answer, is_good, text):
    found, _ = await get(answer)

    assert (found.is_good, found.text) == (is_good, text)


async def test_something_else_than_http_is_no_answer():
    found, _ = await get(b"hello\n")

    assert not found.is_good
    assert found.text.endswith("malformed HTTP response")


async def test_the_request_is_what_the_probe_says_and_no_more():
    _, heard = await get(
        b"HTTP/1.1 200 OK\r\n\r\n", path="ready", httpHeaders=[{"name": "X-A", "value": "1\r\nX-B: 2"}]
    )

    assert heard.startswith("GET /ready HTTP/1.1\r\n")
    assert "\r\nX-A: 1  X-B: 2\r\n" in heard


async def test_who_does_not_answer_in_time_has_failed():
    async with server(None) as (port, _):
        slow = Probe(
            kind="livenessProbe", action="httpGet", settings={"port": port}, timeout=timedelta(milliseconds=20)
        )
        found = await ASKING.probe(slow, pod(), container(), HERE)

    assert not found.is_good
    late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    assert found.text == f'Get "http://{HERE}:{port}/": {late}'


class Inside:
    """Commands that cannot be run, or never end."""

    def __init__(self, error=None):
        self.error = error

    async def run(self, pod, container, argv):
        if self.error:
            raise self.error
        await asyncio.Event().wait()


async def say(inside):
    what = {"command": ["look", "around"]}
    probe = Probe(kind="livenessProbe", action="exec", settings=what, timeout=timedelta(milliseconds=20))
    return await Prober(exec_probe=inside).probe(probe, pod(), container(), HERE)


async def test_a_command_that_takes_too_long_has_failed():
    assert await say(Inside()) == ProbeResult(
        is_good=False, text='command timed out: "look around" timed out after 0.02s'
    )


async def test_a_command_that_cannot_be_run_says_nothing_of_the_container():
    assert await say(Inside(ExecError("no such program"))) == ProbeResult(
        is_good=False, is_unknown=True, text="no such program"
    )
    # Nor is there anything to tell of one that has ended meanwhile.
    assert await say(Inside(ContainerGone("it has ended"))) == ProbeResult(is_good=False, is_unknown=True)


async def test_a_server_without_encryption_is_told_from_one_that_does_not_answer():
    async with server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as (port, _):
        probe = probe_of({"livenessProbe": {"httpGet": {"port": port, "scheme": "HTTPS"}}}, "livenessProbe")
        asking = ASKING.probe(probe, pod(), container(), HERE)
        found = await asking

    assert found.text.startswith(f'Get "https://{HERE}:{port}/": ')
    assert not found.is_good


async def test_an_open_port_is_enough_for_tcp_and_a_closed_one_is_not():
    async with server(b"") as (port, _):
        probe = probe_of({"livenessProbe": {"tcpSocket": {"port": port}}}, "livenessProbe")
        there = await ASKING.probe(probe, pod(), container(), HERE)
    gone = await ASKING.probe(probe, pod(), container(), HERE)

    assert there.is_good
    assert gone.text == f"dial tcp {HERE}:{port}: connect: connection refused"


async def test_a_port_that_has_no_such_name_is_said():
    probe = probe_of({"livenessProbe": {"tcpSocket": {"port": "web"}}}, "livenessProbe")

    found = await ASKING.probe(probe, pod(), container(), HERE)

    assert found.text == "couldn't find port 'web' of container main"


async def test_what_cannot_be_asked_is_said():
    probe = probe_of({"livenessProbe": {"grpc": {"port": 1}}}, "livenessProbe")

    found = await ASKING.probe(probe, pod(), container(), HERE)

    assert found.text == "grpc is not supported by this cluster's node agent"
