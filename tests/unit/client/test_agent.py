"""The node agent is asked as a kubelet is."""

import asyncio
import socket
from contextlib import aclosing

import orjson
import pytest

from paceline.client.in_process import AgentSocket
from paceline.errors import BadRequest, NotFound, ServiceUnavailable
from tests.unit.client.wire import Stays, answer, chunked

POD = {"metadata": {"name": "demo-0"}, "spec": {"containers": [{"name": "main"}]}}
TWO = {"metadata": {"name": "demo-0"}, "spec": {"containers": [{"name": "main"}, {"name": "side"}]}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent.sock"


@pytest.fixture
def wire(wires, path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    return wires(listener)


@pytest.fixture
async def agent(path, chance):
    async with aclosing(Closing(AgentSocket(path, chance))) as closing:
        yield closing.agent


class Closing:
    def __init__(self, agent):
        self.agent = agent
        self.aclose = agent.close


async def read(agent, pod=POD, **query):
    return b"".join([chunk async for chunk in agent.logs("team", pod, query)])


async def test_a_log_is_read(agent, wire):
    wire.answers = [chunked(b"one\n", b"two\n")]

    assert await read(agent, follow="true", tailLines="10", container="main") == b"one\ntwo\n"
    (request,) = wire.requests
    assert request.startswith("GET /containerLogs/team/demo-0/main?follow=true&tailLines=10 HTTP/1.1")


async def test_the_only_container_need_not_be_named(agent, wire):
    wire.answers = [chunked(b"one\n")]

    await read(agent)

    assert wire.requests[0].startswith("GET /containerLogs/team/demo-0/main HTTP/1.1")


async def test_of_several_containers_one_must_be_named(agent, wire):
    with pytest.raises(BadRequest, match="name one of: main, side"):
        await read(agent, TWO)
    assert wire.requests == []


async def test_what_the_agent_refuses_is_read(agent, wire):
    status = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "no such container"}
    wire.answers = [answer(orjson.dumps(status), status="404 Not Found")]

    with pytest.raises(NotFound, match="no such container"):
        await read(agent)


async def test_an_agent_that_does_not_run_is_said_so(agent, path):
    with pytest.raises(ServiceUnavailable, match=f"the node agent is not running: nothing answers on {path}"):
        await read(agent)


async def test_who_stops_reading_hangs_up(agent, wire):
    wire.answers = [Stays(chunked(b"one\n", ends=False))]

    async with aclosing(agent.logs("team", POD, {"follow": "true"})) as log:
        assert await anext(log) == b"one\n"

    assert await asyncio.to_thread(wire.hung_up.get, timeout=30)
