"""A cluster reached over the network, or over a socket file: the home of aiohttp."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from yarl import URL

from paceline.client.access import Access
from paceline.client.requests import Pairs, Request, Response
from paceline.client.responses import error_of
from paceline.client.retry import Backoff
from paceline.client.tls import tls_context
from paceline.client.transport import Unreached
from paceline.client.verbs import OnWarning, Verbs, log_warning
from paceline.errors import Unavailable
from paceline.world import Chance

MAX_TRIES = 4
MAX_CONNECTIONS = 256
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
# Shorter than any server's own patience (uvicorn: 5 s), so that a write rarely meets a closed connection.
KEEP_ALIVE_SECONDS = 4.0
AGAIN = Backoff(first_seconds=0.1, most_seconds=1.0)

# Gives the token to send with a request: some are short-lived, and somebody puts a new one in place in time.
Bearer = Callable[[], str]


class HttpTransport:
    """Carries requests by HTTP/1.1 through a pool of connections. Needs a running loop from first use on."""

    def __init__(
        self, access: Access, chance: Chance, *, socket: Path | None = None, bearer: Bearer | None = None
    ) -> None:
        self._base = access.server
        self._chance = chance
        self._socket = socket
        self._server_name = access.tls_server_name or None
        self._bearer = bearer or (lambda: access.token)
        self._tls = tls_context(access)
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request) -> Response:
        """Give the whole answer; only reading is tried again when nothing answers."""
        tries = 1
        while True:
            try:
                return await self._send_once(request)
            except Unreached:
                # A write may have been carried out although its answer got lost: the caller must look.
                if not request.is_safe or tries == MAX_TRIES:
                    raise
            await asyncio.sleep(AGAIN.pause(tries, self._chance))
            tries += 1

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Give the body as it comes; a status that says failure is raised."""
        patience = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=request.silence_seconds)
        async with self._answer(request, patience) as answer:
            if answer.status >= 400:
                raise error_of(await _whole(answer))
            try:
                async for chunk in answer.content.iter_any():
                    yield chunk
            finally:
                _hang_up(answer)

    async def close(self) -> None:
        """Hang up all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _send_once(self, request: Request) -> Response:
        patience = aiohttp.ClientTimeout(total=ANSWER_SECONDS, sock_connect=CONNECT_SECONDS)
        async with self._answer(request, patience) as answer:
            return await _whole(answer)

    @asynccontextmanager
    async def _answer(
        self, request: Request, patience: aiohttp.ClientTimeout
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """Send a request and translate everything that can go wrong on the way."""
        session = self._session = self._session or self._open()
        try:
            # aiohttp itself resends a PUT or DELETE once when a kept connection turns out to be closed.
            # Both are safe: the second of two meets Conflict or Missing. POST and PATCH go out once.
            async with session.request(
                request.method,
                URL(self._base + request.target, encoded=True),
                headers=(*request.headers, *self._authorization()),
                data=request.body or None,
                timeout=patience,
                server_hostname=self._server_name,
                allow_redirects=False,
            ) as answer:
                yield answer
        except (aiohttp.ClientSSLError, ssl.SSLError) as error:
            said = f"{self._base} cannot be trusted: {error}; is this the right kubeconfig?"
            raise Unavailable(said) from error
        except aiohttp.InvalidURL as error:
            raise Unavailable(f"{self._base} is not a URL that can be reached: {error}") from error
        except TimeoutError as error:
            raise Unreached(f"{self._base} does not answer in time") from error
        except aiohttp.ClientError as error:
            raise Unreached(f"{self._base} does not answer: {error}") from error

    def _open(self) -> aiohttp.ClientSession:
        # Compressing for a neighbour costs more than it saves.
        headers = {"User-Agent": "paceline", "Accept-Encoding": "identity"}
        connector = self._unix() if self._socket else self._tcp()
        return aiohttp.ClientSession(connector=connector, headers=headers, auto_decompress=False)

    def _authorization(self) -> Pairs:
        token = self._bearer()
        return (("Authorization", f"Bearer {token}"),) if token else ()

    def _unix(self) -> aiohttp.BaseConnector:
        return aiohttp.UnixConnector(path=str(self._socket), limit=MAX_CONNECTIONS)

    def _tcp(self) -> aiohttp.BaseConnector:
        return aiohttp.TCPConnector(
            ssl=self._tls if self._tls is not None else True,
            limit=MAX_CONNECTIONS,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
        )


class HttpCluster(Verbs):
    """A cluster over HTTP, ours or a real one. Use it as `async with HttpCluster(...) as cluster`."""

    def __init__(self, access: Access, chance: Chance, *, on_warning: OnWarning = log_warning) -> None:
        self._http = HttpTransport(access, chance)
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


def _hang_up(answer: aiohttp.ClientResponse) -> None:
    """Cut a stream that has not ended; a polite end of TLS would wait for a server that may not notice."""
    if answer.connection is not None and answer.connection.transport is not None:
        answer.connection.transport.abort()


async def _whole(answer: aiohttp.ClientResponse) -> Response:
    body = await answer.read()
    headers = tuple((name.lower(), value) for name, value in answer.headers.items())
    return Response(status=answer.status, headers=headers, body=body)
