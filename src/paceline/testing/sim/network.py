"""The network of a simulated cluster: late, lossy, and dead while the server is."""

import asyncio
import random
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from paceline.client.http.transport import Unreachable
from paceline.client.in_process import App, LocalTransport
from paceline.client.requests import Request, Response


@dataclass(slots=True, kw_only=True)
class Weather:
    """What the network does today: chances from 0 to 1, and how late things may be."""

    lost_request: float = 0.0
    lost_reply: float = 0.0
    cut_stream: float = 0.0
    # A chunk of a stream comes once more, as after a reconnection that went a little back.
    repeated: float = 0.0
    late_seconds: float = 0.0
    # How much later still the node is.
    node_late_seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class Network:
    """Leads to the server, while there is one."""

    dice: random.Random
    weather: Weather = field(default_factory=Weather)
    app: App | None = None
    # Where the server's handlers run: they die with it.
    group: asyncio.TaskGroup | None = None


def _begin(group: asyncio.TaskGroup, call: Coroutine[Any, Any, Response]) -> asyncio.Task[Response]:
    try:
        return group.create_task(call)
    except RuntimeError:
        # The group is being cancelled: the server dies at this very moment.
        call.close()
        raise Unreachable("the simulated server died over a request") from None


class Wire:
    """One client's way to the server."""

    def __init__(self, network: Network, *, token: str, is_node: bool = False) -> None:
        self._network = network
        self._token = token
        self._is_node = is_node

    async def send(self, request: Request) -> Response:
        """Carry one request there and its answer back, or lose either."""
        network = self._network
        await self._travel()
        transport = self._reach()
        if network.dice.random() < network.weather.lost_request:
            raise Unreachable("the simulated network lost a request")
        group = network.group
        if group is None:
            raise Unreachable("the simulated server is down")
        handler = _begin(group, transport.send(request))
        await asyncio.wait([handler])
        if handler.cancelled():
            raise Unreachable("the simulated server died over a request")
        response = handler.result()
        await self._travel()
        if network.dice.random() < network.weather.lost_reply:
            raise Unreachable("the simulated network lost an answer")
        return response

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Carry a stream, until it ends, the server dies or the network cuts it."""
        network = self._network
        is_watch = ("watch", "true") in request.query
        await self._travel()
        async with aclosing(self._reach().stream(request)) as chunks:
            async for chunk in chunks:
                await self._travel()
                yield chunk
                if is_watch and network.dice.random() < network.weather.repeated:
                    yield chunk
                if network.dice.random() < network.weather.cut_stream:
                    raise Unreachable("the simulated network cut a stream")

    async def _travel(self) -> None:
        weather = self._network.weather
        late = weather.late_seconds + (weather.node_late_seconds if self._is_node else 0)
        await asyncio.sleep(self._network.dice.random() * late if late else 0)

    def _reach(self) -> LocalTransport:
        app, group = self._network.app, self._network.group
        if app is None or group is None:
            raise Unreachable("the simulated server is down")
        return LocalTransport(app, group, token=self._token)
