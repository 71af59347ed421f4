"""A cluster reached over the network, or over a socket file."""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from paceline.client.http.http1 import Address, Broken, Connection, dial, head_of
from paceline.client.http.transport import Unreachable, tls_context, translate_errors
from paceline.client.requests import Request, Response
from paceline.client.responses import error_of
from paceline.client.rest import OnWarning, Verbs, log_warning
from paceline.client.rest_config import Access
from paceline.client.workqueue import Backoff
from paceline.effects import Random
from paceline.errors import HostError

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


MAX_TRIES = 4
ANSWER_SECONDS = 60.0
AGAIN = Backoff(first_seconds=0.1, most_seconds=1.0)
PORTS = {"http": 80, "https": 443}
# Methods whose empty body is said to be empty.
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})

# Gives the token to send with a request: some are short-lived, and somebody puts a new one in place in time.
Bearer = Callable[[], str]


class HttpTransport:
    """Carries requests by HTTP/1.1 through a pool of connections. Needs a running loop from first use on."""

    def __init__(
        self, access: Access, chance: Random, *, socket: Path | None = None, bearer: Bearer | None = None
    ) -> None:
        self._base = access.server
        self._chance = chance
        self._socket = socket
        self._server_name = access.tls_server_name
        self._bearer = bearer or (lambda: access.token)
        self._tls = tls_context(access)
        self._pool: Pool | None = None
        self._prefix = ""
        self._host = ""

    async def send(self, request: Request) -> Response:
        """Return the whole answer; only reading is tried again when nothing answers."""
        tries = 1
        while True:
            try:
                return await self._send_once(request)
            except Unreachable:
                # A write may have been carried out although its answer got lost: the caller must look.
                if not request.is_safe or tries == MAX_TRIES:
                    raise
            await asyncio.sleep(AGAIN.pause(tries, self._chance))
            tries += 1

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes; a status that says failure is raised."""
        pool, silence = self._pool or self._open(), request.silence_seconds
        exchange = pool.exchange(request.method, self._bytes_of(request), silence_seconds=silence)
        with translate_errors(self._base):
            async with exchange as connection:
                if (await connection.head()).status >= 400:
                    async with asyncio.timeout(silence):
                        answer = await _whole(connection)
                    raise error_of(answer)
                while chunk := await _in_time(connection, silence):
                    yield chunk

    async def close(self) -> None:
        """Hang up all connections."""
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def _send_once(self, request: Request) -> Response:
        pool = self._pool or self._open()
        data = self._bytes_of(request)
        with translate_errors(self._base):
            async with asyncio.timeout(ANSWER_SECONDS), pool.exchange(request.method, data) as connection:
                return await _whole(connection)

    def _bytes_of(self, request: Request) -> bytes:
        # Compressing for a neighbour costs more than it saves.
        headers = [("Host", self._host), ("User-Agent", "paceline"), ("Accept-Encoding", "identity")]
        if token := self._bearer():
            headers.append(("Authorization", f"Bearer {token}"))
        if request.body or request.method in WITH_BODY:
            headers.append(("Content-Length", str(len(request.body))))
        return head_of(request.method, self._prefix + request.target, (*headers, *request.headers)) + request.body

    def _open(self) -> Pool:
        endpoint = endpoint_of(self._base, self._socket)
        self._prefix, self._host = endpoint.prefix, endpoint.host
        self._pool = Pool(endpoint.address, self._tls, self._server_name)
        return self._pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server's URL, taken apart: where to connect, the Host to ask for, and what precedes every path."""

    address: Address
    host: str
    prefix: str = ""


def endpoint_of(server: str, socket: Path | None = None) -> Endpoint:
    """Return the parts of a server's URL; raise HostError if it cannot be reached."""
    try:
        where = urlsplit(server)
        port = where.port or PORTS[where.scheme]
        address = Address(
            socket=socket, address=_host(where.hostname), port=port, is_tls=where.scheme == "https" and not socket
        )
    except KeyError as error:
        raise HostError(f"{server} is not a URL that can be reached: it begins with neither http nor https") from error
    except ValueError as error:
        raise HostError(f"{server} is not a URL that can be reached: {error}") from error
    return Endpoint(address=address, host=where.netloc.rpartition("@")[2], prefix=where.path.rstrip("/"))


class HttpCluster(Verbs):
    """A cluster over HTTP, ours or a real one. Use it as `async with HttpCluster(...) as cluster`."""

    def __init__(
        self, access: Access, chance: Random, *, socket: Path | None = None, on_warning: OnWarning = log_warning
    ) -> None:
        # For requests that no verb spells.
        self.transport = HttpTransport(access, chance, socket=socket)
        super().__init__(self.transport, on_warning=on_warning)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up all connections."""
        await self.transport.close()


def _host(name: str | None) -> str:
    """Return a host as names are resolved; ValueError when it cannot be one."""
    if not name:
        raise ValueError("it names no host")
    return name.encode("idna").decode("ascii")


async def _in_time(connection: Connection, silence_seconds: float | None) -> bytes:
    async with asyncio.timeout(silence_seconds):
        return await connection.piece()


async def _whole(connection: Connection) -> Response:
    head = await connection.head()
    headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in head.headers)
    return Response(status=head.status, headers=headers, body=await connection.body())
