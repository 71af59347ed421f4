"""A server on loopback that answers every connection as a test says, however wrong."""

import asyncio
import contextlib

from paceline.client.http.http1 import Address


@contextlib.asynccontextmanager
async def server(answer, tls=None):
    """Gives its place, and an event that is set when a connection is over."""
    finished = asyncio.Event()

    async def meet(reader, writer):
        try:
            # A client may hang up on whatever is said here.
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await answer(reader, writer)
        finally:
            writer.close()
            finished.set()

    listening = await asyncio.start_server(meet, "127.0.0.1", 0, ssl=tls)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        yield Address(address="127.0.0.1", port=port, is_tls=tls is not None), finished
