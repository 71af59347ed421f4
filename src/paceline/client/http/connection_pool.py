"""Connections to one server, kept for a moment for whoever asks next."""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from paceline.client.http.http1 import Address, Broken, Connection, dial

MAX_CONNECTIONS = 256
# Shorter than any server's own patience (uvicorn: 5 s), so that a write rarely meets a closed connection.
KEEP_SECONDS = 4.0
# The second of two PUTs or DELETEs meets Conflict or Missing. POST and PATCH go out once.
REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})


class Pool:
    """Needs a running loop. More than MAX_CONNECTIONS exchanges at once wait for each other."""

    def __init__(self, place: Address, tls: ssl.SSLContext | None, name: str) -> None:
        self._place = place
        self._tls = tls
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._used: set[Connection] = set()
        # With the time until which each is kept; the last one used is the first to be used again.
        self._kept: deque[tuple[float, Connection]] = deque()
        self._sweeping: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def exchange(
        self, method: str, data: bytes, *, silence_seconds: float | None = None
    ) -> AsyncGenerator[Connection, None]:
        """Send a request and wait for the head of its answer; an answer that is left unread is hung up on."""
        async with self._slots:
            connection = self._take()
            if connection is None or not await self._was_heard(connection, method, data, silence_seconds):
                connection = await dial(self._place, self._tls, self._name)
                self._used.add(connection)
                await self._ask(connection, method, data, silence_seconds)
            try:
                yield connection
            finally:
                self._put(connection)

    async def close(self) -> None:
        """Hang up all connections."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        for connection in (*self._used, *(idle for _, idle in self._kept)):
            connection.abort()
        self._kept.clear()
        # Once around the loop, in which sockets are closed.
        await asyncio.sleep(0)

    async def _was_heard(self, connection: Connection, method: str, data: bytes, silence_seconds: float | None) -> bool:
        """Ask on a kept connection; it may have been closed meanwhile, which says nothing about the server."""
        try:
            await self._ask(connection, method, data, silence_seconds)
        except Broken:
            if connection.is_heard or method not in REPEATABLE:
                raise
            return False
        return True

    async def _ask(self, connection: Connection, method: str, data: bytes, silence_seconds: float | None) -> None:
        try:
            connection.ask(data, method=method)
            async with asyncio.timeout(silence_seconds):
                await connection.head()
        except BaseException:
            self._put(connection)
            raise

    def _take(self) -> Connection | None:
        now = self._loop.time()
        while self._kept:
            until, connection = self._kept.pop()
            if connection.is_reusable and now < until:
                self._used.add(connection)
                return connection
            connection.abort()
        return None

    def _put(self, connection: Connection) -> None:
        self._used.discard(connection)
        if not connection.is_reusable:
            connection.abort()
            return
        self._kept.append((self._loop.time() + KEEP_SECONDS, connection))
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(KEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Hang up what nobody has asked for long enough."""
        now = self._loop.time()
        while self._kept and self._kept[0][0] <= now:
            self._kept.popleft()[1].abort()
        self._sweeping = self._loop.call_at(self._kept[0][0], self._sweep) if self._kept else None
