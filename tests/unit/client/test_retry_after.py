"""A server that has too much to do says when to ask again, and is not asked before."""

import asyncio
from collections.abc import AsyncGenerator

import orjson
import pytest

from paceline.client.interface import PODS
from paceline.client.requests import Request, Response
from paceline.client.responses import error_of
from paceline.client.rest import MAX_RETRIES, Verbs
from paceline.errors import ServiceUnavailable
from paceline.testing.sim.loop import run_simulated

POD = {"metadata": {"namespace": "team", "name": "a"}}
BUSY = orjson.dumps({"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "too many requests"})


class BusyServer:
    """Answers 429 so many times, and then what it is asked for."""

    def __init__(self, times: int, *headers: tuple[str, str]) -> None:
        self.times = times
        self.headers = headers
        self.asked_at: list[float] = []

    async def send(self, _request: Request) -> Response:
        self.asked_at.append(asyncio.get_running_loop().time())
        if len(self.asked_at) <= self.times:
            return Response(status=429, headers=self.headers, body=BUSY)
        return Response(status=201, body=orjson.dumps(POD))

    async def stream(self, _request: Request) -> AsyncGenerator[bytes, None]:
        yield b""


def create(server: BusyServer) -> object:
    return run_simulated(0, Verbs(server).create(PODS, POD))


def test_a_write_that_was_not_accepted_is_sent_again_when_the_server_wants_it():
    server = BusyServer(3, ("retry-after", "2"))

    assert create(server) == POD
    assert [round(moment - server.asked_at[0], 1) for moment in server.asked_at] == [0.0, 2.0, 4.0, 6.0]


def test_without_a_time_to_come_back_the_error_is_raised_at_once():
    server = BusyServer(3)

    with pytest.raises(ServiceUnavailable, match="too many requests"):
        create(server)
    assert len(server.asked_at) == 1


def test_a_server_that_never_has_time_is_left_alone_in_the_end():
    server = BusyServer(1_000, ("retry-after", "1"))

    with pytest.raises(ServiceUnavailable):
        create(server)
    assert len(server.asked_at) == 1 + MAX_RETRIES


@pytest.mark.parametrize(("text", "seconds"), [("7", 7.0), ("86400", 60.0), ("", 0.0), ("soon", 0.0), ("-1", 0.0)])
def test_the_error_of_a_watch_carries_how_long_to_wait(text, seconds):
    error = error_of(Response(status=429, headers=(("retry-after", text),), body=BUSY))

    assert isinstance(error, ServiceUnavailable)
    assert error.retry_after == seconds
