"""Pass a request or a WebSocket on to another server, both ways at once, holding no more than a few pieces of it.

Home of the WebSocket client. In and out are ASGI's `receive` and `send`, so that whoever was asked need not know
how the answer travels.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from multidict import CIMultiDict
from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from yarl import URL

from paceline.client.transport import Unreached

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = tuple[tuple[str, str], ...]

CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 2.0
MAX_PIECES = 4
# One message of a WebSocket is held whole: notebooks send outputs of some megabytes.
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
NORMAL, GOING_AWAY, BROKEN = 1000, 1001, 1011
# Codes that a program may not send itself: no code was given, or the line was cut.
UNSENDABLE = {1005: NORMAL, 1006: BROKEN, 1015: BROKEN}

# These concern one connection and not the request.
HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# aiohttp would add these where the caller did not send them.
_NOT_BY_ITSELF = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """A request as it is to arrive. The Host is part of the headers."""

    method: str = "GET"
    # Path and query, encoded as they were sent.
    target: str
    headers: Headers
    protocols: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """Give the Host that the server is called by."""
        return next((value for name, value in self.headers if name.lower() == "host"), "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a server listens: a socket file, or an address and a port."""

    socket: Path | None = None
    address: str = ""
    port: int = 0
    is_tls: bool = False

    def __str__(self) -> str:
        return str(self.socket) if self.socket else f"{self.address}:{self.port}"


def kept(headers: Iterable[tuple[str, str]]) -> Headers:
    """Leave out the headers that concern one connection only, those that `Connection` names among them."""
    listed = tuple(headers)
    named = {
        word.strip().lower() for name, value in listed if name.lower() == "connection" for word in value.split(",")
    }
    return tuple((name, value) for name, value in listed if name.lower() not in HOP_BY_HOP | named)


async def pass_on(place: Place, passing: Passing, receive: Receive, send: Send) -> None:
    """Pass one HTTP request on until it is answered or the client is gone; Unreached when nothing answers."""
    body = _Body(receive)
    async with asyncio.TaskGroup() as group:
        answering = group.create_task(_answer(place, passing, body, send))
        listening = group.create_task(body.listen())
        await asyncio.wait((answering, listening), return_when=asyncio.FIRST_COMPLETED)
        answering.cancel()
        listening.cancel()
    if not answering.cancelled() and (error := answering.result()) is not None:
        raise error


async def join(place: Place, passing: Passing, receive: Receive, send: Send) -> None:
    """Pass one WebSocket on, whose `websocket.connect` has been received; a refused one is refused likewise."""
    try:
        other = await _dial(place, passing)
    except InvalidStatus as refused:
        answer = refused.response
        await deny(send, answer.status_code, kept(answer.headers.raw_items()), bytes(answer.body or b""))
        return
    except TimeoutError as error:
        raise Unreached(f"dial tcp {place}: i/o timeout") from error
    except (OSError, InvalidHandshake) as error:
        raise Unreached(f"dial tcp {place}: connect: {_why(error)}") from error
    async with other:
        # A server refuses to send to a client that has just left; the other side is then only hung up.
        with suppress(OSError):
            await send({"type": "websocket.accept", "subprotocol": other.subprotocol})
            await _both_ways(other, receive, send)


async def deny(send: Send, code: int, headers: Headers, body: bytes) -> None:
    """Answer a WebSocket that is not accepted with a whole HTTP answer."""
    wire = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    with suppress(OSError):
        await send({"type": "websocket.http.response.start", "status": code, "headers": wire})
        await send({"type": "websocket.http.response.body", "body": body})


class _Body:
    """What a client sends, piece by piece, and whether it is still there."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_PIECES)

    async def listen(self) -> None:
        """Take pieces until the client is gone."""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                return
            if piece := message.get("body", b""):
                await self._pieces.put(piece)
            if not message.get("more_body", False):
                await self._pieces.put(None)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Give the pieces to the end of the body."""
        while (piece := await self._pieces.get()) is not None:
            yield piece


async def _answer(place: Place, passing: Passing, body: _Body, send: Send) -> Unreached | None:
    """Send the request, then its answer; give back what went wrong, if only to leave the answer unfinished."""
    patience = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
    async with _session(place) as session:
        try:
            async with session.request(
                passing.method,
                _url(place, passing),
                headers=CIMultiDict(passing.headers),
                data=body.pieces() if _has_body(passing) else None,
                timeout=patience,
                ssl=_trusting() if place.is_tls else True,
                allow_redirects=False,
                skip_auto_headers=_NOT_BY_ITSELF,
            ) as answer:
                await _pass_back(answer, send)
        except TimeoutError:
            return Unreached(f"dial tcp {place}: i/o timeout")
        except (aiohttp.ClientError, OSError) as error:
            return Unreached(f"dial tcp {place}: connect: {_why(error)}")
    return None


async def _pass_back(answer: aiohttp.ClientResponse, send: Send) -> None:
    raw = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.raw_headers)
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in kept(raw)]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    async for chunk in answer.content.iter_any():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _session(place: Place) -> aiohttp.ClientSession:
    # A connection each: behind an address that a pod had there may be another one by now.
    connector: aiohttp.BaseConnector
    if place.socket:
        connector = aiohttp.UnixConnector(path=str(place.socket), force_close=True)
    else:
        connector = aiohttp.TCPConnector(force_close=True)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)


def _url(place: Place, passing: Passing) -> URL:
    scheme = "https" if place.is_tls else "http"
    where = "node-agent" if place.socket else f"{place.address}:{place.port}"
    return URL(f"{scheme}://{where}{passing.target}", encoded=True)


def _has_body(passing: Passing) -> bool:
    lengths = [value for name, value in passing.headers if name.lower() == "content-length"]
    return lengths != ["0"] and (bool(lengths) or passing.method in {"POST", "PUT", "PATCH"})


def _dial(place: Place, passing: Passing) -> connect:
    names = {"host", "content-length", "sec-websocket-protocol"}
    headers = [
        (name, value)
        for name, value in kept(passing.headers)
        if name.lower() not in names and not name.lower().startswith("sec-websocket-")
    ]
    options: dict[str, Any] = {
        "additional_headers": headers,
        "subprotocols": list(passing.protocols) or None,
        "user_agent_header": None,
        "compression": None,
        "max_size": MAX_MESSAGE_BYTES,
        "open_timeout": CONNECT_SECONDS,
        "close_timeout": CLOSE_SECONDS,
        "ping_interval": None,
    }
    scheme = "wss" if place.is_tls else "ws"
    uri = f"{scheme}://{passing.host}{passing.target}"
    if place.socket:
        return unix_connect(str(place.socket), uri, **options)
    if place.is_tls:
        options["ssl"] = _trusting()
    return connect(uri, host=place.address, port=place.port, proxy=None, **options)


async def _both_ways(other: ClientConnection, receive: Receive, send: Send) -> None:
    async with asyncio.TaskGroup() as group:
        there = group.create_task(_there(other, receive))
        back = group.create_task(_back(other, send))
        await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
        there.cancel()
        back.cancel()


async def _there(other: ClientConnection, receive: Receive) -> None:
    while (message := await receive())["type"] == "websocket.receive":
        data = message.get("bytes")
        try:
            await other.send(message["text"] if data is None else data)
        except ConnectionClosed:
            return
    code = int(message.get("code") or NORMAL)
    await other.close(UNSENDABLE.get(code, code), message.get("reason") or "")


async def _back(other: ClientConnection, send: Send) -> None:
    try:
        async for data in other:
            await send({"type": "websocket.send", "text" if isinstance(data, str) else "bytes": data})
    except ConnectionClosed:
        pass  # Cut off; its code is passed on below.
    except OSError:
        return  # The client is gone.
    code = other.close_code or BROKEN
    with suppress(OSError):
        await send({"type": "websocket.close", "code": UNSENDABLE.get(code, code), "reason": other.close_reason or ""})


def _trusting() -> ssl.SSLContext:
    """Take any certificate: a pod makes its own, and the way to it does not leave the machine."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _why(error: Exception) -> str:
    number = getattr(error, "os_error", error)
    if isinstance(number, ConnectionRefusedError):
        # The event loop has words of its own for it.
        return "connection refused"
    said = getattr(number, "strerror", None) or str(error) or type(error).__name__
    return str(said).lower()
