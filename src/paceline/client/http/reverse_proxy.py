"""Pass a request or a WebSocket on to another server, both ways at once, holding no more than a few pieces of it.

Home of the WebSocket client. In and out are ASGI's `receive` and `send`, so that whoever was asked need not know
how the answer travels.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

# Loads its parts when they are used first, so that no start of a process waits for them; hence annotations as text.
import websockets

from paceline.client.http.http1 import CONNECT_SECONDS, Address, Connection, dial, head_of
from paceline.client.http.transport import Unreachable

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = tuple[tuple[str, str], ...]

CLOSE_SECONDS = 2.0
# One message of a WebSocket is held whole: notebooks send outputs of some megabytes.
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
NORMAL, BROKEN = 1000, 1011
# Codes that a program may not send itself: no code was given, or the line was cut.
UNSENDABLE = {1005: NORMAL, 1006: BROKEN, 1015: BROKEN}
# A pod makes its own certificate, and the way to it does not leave the machine. Made once, and without the authorities
# of the system, which nobody is asked for: reading them takes longer than a request.
ANY_CERTIFICATE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
ANY_CERTIFICATE.check_hostname = False
ANY_CERTIFICATE.verify_mode = ssl.CERT_NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How a server's certificate is verified: by which authorities, and for which name if not that of its address."""

    context: ssl.SSLContext
    name: str = ""


ANY_POD = Tls(context=ANY_CERTIFICATE)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRequest:
    """A request as it is to arrive. The Host is part of the headers."""

    method: str = "GET"
    # Path and query, encoded as they were sent.
    target: str
    headers: Headers
    protocols: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """Return the Host that the server is called by."""
        return next((value for name, value in self.headers if name.lower() == "host"), "localhost")


def kept(headers: Iterable[tuple[str, str]]) -> Headers:
    """Leave out the headers that concern one connection only, those that `Connection` names among them."""
    listed = tuple(headers)
    named = {
        word.strip().lower() for name, value in listed if name.lower() == "connection" for word in value.split(",")
    }
    return tuple((name, value) for name, value in listed if name.lower() not in HOP_BY_HOP | named)


async def pass_on(place: Address, passing: ProxyRequest, receive: Receive, send: Send, tls: Tls | None = None) -> None:
    """Pass one HTTP request on until it is answered or the client is gone; Unreachable when nothing answers.

    Without `tls` any certificate is accepted, as pods have them.
    """
    tls = tls or ANY_POD
    try:
        # A connection each: behind an address that a pod had there may be another one by now.
        connection = await dial(place, tls.context if place.is_tls else None, tls.name)
    except OSError as error:
        raise _unreached(place, error) from error
    try:
        connection.ask(_head(passing), method=passing.method)
        async with asyncio.TaskGroup() as group:
            answering = group.create_task(_pass_back(connection, send))
            asking = group.create_task(_pass_there(connection, passing, receive))
            await asyncio.wait((answering, asking), return_when=asyncio.FIRST_COMPLETED)
            answering.cancel()
            asking.cancel()
    finally:
        connection.abort()
    if not answering.cancelled() and (broken := answering.result()) is not None:
        raise _unreached(place, broken) from broken


async def join(place: Address, passing: ProxyRequest, receive: Receive, send: Send, tls: Tls | None = None) -> None:
    """Pass one WebSocket on, whose `websocket.connect` has been received; a refused one is refused likewise."""
    try:
        other = await _dial(place, passing, tls or ANY_POD)
    except websockets.InvalidStatus as refused:
        answer = refused.response
        await deny(send, answer.status_code, kept(answer.headers.raw_items()), bytes(answer.body or b""))
        return
    except (OSError, websockets.InvalidHandshake) as error:
        raise _unreached(place, error) from error
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


async def _pass_there(connection: Connection, passing: ProxyRequest, receive: Receive) -> None:
    """Pass the body on piece by piece, until the client is gone."""
    is_wanted, is_chunked = _has_body(passing), not _lengths(passing)
    while (message := await receive())["type"] != "http.disconnect":
        if is_wanted and (piece := message.get("body", b"")):
            await connection.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
        if not message.get("more_body", False):
            if is_wanted and is_chunked:
                await connection.write(b"0\r\n\r\n")
            is_wanted = False


async def _pass_back(connection: Connection, send: Send) -> OSError | None:
    """Pass the answer back; give what went wrong, if only to leave the answer unfinished."""
    try:
        head = await connection.head()
        raw = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers)
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in kept(raw)]
        await send({"type": "http.response.start", "status": head.status, "headers": headers})
        while piece := await connection.piece():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except OSError as error:
        return error
    return None


def _head(passing: ProxyRequest) -> bytes:
    headers = [("Connection", "close")]
    if all(name.lower() != "host" for name, _ in passing.headers):
        headers.append(("Host", passing.host))
    if _has_body(passing) and not _lengths(passing):
        headers.append(("Transfer-Encoding", "chunked"))
    return head_of(passing.method, passing.target, (*passing.headers, *headers))


def _lengths(passing: ProxyRequest) -> list[str]:
    return [value for name, value in passing.headers if name.lower() == "content-length"]


def _has_body(passing: ProxyRequest) -> bool:
    lengths = _lengths(passing)
    return lengths != ["0"] and (bool(lengths) or passing.method in {"POST", "PUT", "PATCH"})


def _dial(place: Address, passing: ProxyRequest, tls: Tls) -> "websockets.connect":
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
        return websockets.unix_connect(str(place.socket), uri, **options)
    if place.is_tls:
        options["ssl"] = tls.context
        if tls.name:
            options["server_hostname"] = tls.name
    return websockets.connect(uri, host=place.address, port=place.port, proxy=None, **options)


async def _both_ways(other: "websockets.ClientConnection", receive: Receive, send: Send) -> None:
    async with asyncio.TaskGroup() as group:
        upload = group.create_task(_there(other, receive))
        back = group.create_task(_back(other, send))
        await asyncio.wait((upload, back), return_when=asyncio.FIRST_COMPLETED)
        upload.cancel()
        back.cancel()


async def _there(other: "websockets.ClientConnection", receive: Receive) -> None:
    while (message := await receive())["type"] == "websocket.receive":
        data = message.get("bytes")
        try:
            await other.send(message["text"] if data is None else data)
        except websockets.ConnectionClosed:
            return
    code = int(message.get("code") or NORMAL)
    await other.close(UNSENDABLE.get(code, code), message.get("reason") or "")


async def _back(other: "websockets.ClientConnection", send: Send) -> None:
    try:
        async for data in other:
            await send({"type": "websocket.send", "text" if isinstance(data, str) else "bytes": data})
    except websockets.ConnectionClosed:
        pass  # Cut off; its code is passed on below.
    except OSError:
        return  # The client is gone.
    code = other.close_code or BROKEN
    with suppress(OSError):
        await send({"type": "websocket.close", "code": UNSENDABLE.get(code, code), "reason": other.close_reason or ""})


def _unreached(place: Address, error: Exception) -> Unreachable:
    if isinstance(error, TimeoutError):
        return Unreachable(f"dial tcp {place}: i/o timeout")
    if isinstance(error, ConnectionRefusedError):
        # The event loop has words of its own for it.
        return Unreachable(f"dial tcp {place}: connect: connection refused")
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return Unreachable(f"dial tcp {place}: connect: {str(reason).lower()}")
