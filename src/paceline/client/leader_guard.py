"""A fence before a cluster: reads pass, writes only while somebody says that they may."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from paceline.client.http.transport import Transport
from paceline.client.requests import Request, Response
from paceline.errors import ServiceUnavailable


class LeaderGuard:
    """A transport that asks before every write; the last thing a request passes before it goes out."""

    def __init__(self, transport: Transport, may_write: Callable[[], bool]) -> None:
        self._transport = transport
        self._may_write = may_write

    async def send(self, request: Request) -> Response:
        """Carry a request, unless it writes and may not."""
        if not request.is_safe and not self._may_write():
            raise ServiceUnavailable("another controller leads now; this one writes nothing more")
        return await self._transport.send(request)

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Carry a stream; those only read."""
        async with aclosing(self._transport.stream(request)) as chunks:
            async for chunk in chunks:
                yield chunk
