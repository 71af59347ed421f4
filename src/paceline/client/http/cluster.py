"""A cluster reached over the network, or over a socket file."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from paceline.client.backoff import Backoff
from paceline.client.http.connection_pool import Pool
from paceline.client.http.http1 import Address, Connection, head_of
from paceline.client.http.tls import tls_context
from paceline.client.http.transport import Unreachable, translate_errors
from paceline.client.requests import Request, Response
from paceline.client.responses import error_of
from paceline.client.rest import OnWarning, Verbs, log_warning
from paceline.client.rest_config import Access
from paceline.effects import Random
from paceline.errors import HostError

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
        try:
            where = urlsplit(self._base)
            port = where.port or PORTS[where.scheme]
            place = Address(socket=self._socket, address=_host(where.hostname), port=port)
        except KeyError as error:
            raise HostError(
                f"{self._base} is not a URL that can be reached: it begins with neither http nor https"
            ) from error
        except ValueError as error:
            raise HostError(f"{self._base} is not a URL that can be reached: {error}") from error
        self._prefix = where.path.rstrip("/")
        self._host = where.netloc.rpartition("@")[2]
        self._pool = Pool(place, self._tls, self._server_name)
        return self._pool


class HttpCluster(Verbs):
    """A cluster over HTTP, ours or a real one. Use it as `async with HttpCluster(...) as cluster`."""

    def __init__(
        self, access: Access, chance: Random, *, socket: Path | None = None, on_warning: OnWarning = log_warning
    ) -> None:
        self._http = HttpTransport(access, chance, socket=socket)
        super().__init__(self._http, on_warning=on_warning)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up all connections."""
        await self._http.close()


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
