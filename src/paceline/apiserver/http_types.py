"""Requests and responses, between ASGI and the handlers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import orjson

from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Lookup, Resource, no_warnings
from paceline.apiserver.status_errors import Status, StatusError
from paceline.errors import PacelineError

JSON = "application/json"
YAML = "application/yaml"
PLAIN = "text/plain; charset=utf-8"
TOO_MANY = 429
# A client that accepts nothing for this long is disconnected; it lists and watches again.
STALL_SECONDS = 30.0
# Limit for all warnings of a response, and for the one that exceeds it.
MAX_WARNING_CHARS, MAX_CUT_WARNING_CHARS = 4096, 256
_DEPRECATED = {("", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}

# The types of ASGI.
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

Write = Callable[[bytes], Awaitable[None]]
Warnings = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The service account of a caller, and the extra claims of its token."""

    namespace: str
    name: str
    uid: str
    may_write: bool = False
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The user of a request; one without an account may do everything."""

    name: str
    account: Account | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    method: str
    path: str
    # Parts of the path, decoded separately, so that an encoded slash stays inside its part.
    parts: tuple[str, ...]
    query: Mapping[str, str]
    # Names in lower case.
    headers: Mapping[str, str]
    caller: Caller
    body: bytes = b""

    def flag(self, name: str) -> bool:
        """Return whether a query parameter is true; as in Kubernetes, everything but 0 and false is."""
        return name in self.query and self.query[name].lower() not in {"0", "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    code: int = 200
    body: bytes
    # Parts after the body, created when they are sent, and their total size.
    tail: Iterable[bytes] = ()
    tail_bytes: int = 0
    content_type: str = JSON
    warnings: Warnings = ()
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def full_body(self) -> bytes:
        return b"".join((self.body, *self.tail))


class ClientStalled(Exception):
    """The client does not read its response: the connection has to be aborted."""


class Stream(Protocol):
    """A response of unknown length."""

    content_type: str

    async def run(self, write: Write) -> None:
        """Write chunks until the end; the first write, even an empty one, sends the head of the response.

        A StatusError or PacelineError before that is answered with a Status. Cancelled when the client disconnects.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedResponse:
    """A response of a pod or node agent, sent straight to the client."""

    run: Callable[[Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    dry_run: bool = False
    # Strict rejects unknown fields, Warn drops them with a warning, Ignore drops them.
    validation: str = "Warn"
    # Apply takes over fields of other managers.
    force: bool = False
    # Size of the request's body, which determines where the work runs.
    size: int = 0
    # The user of the request; None for writes of the server itself.
    caller: Caller | None = None


def object_response(obj: Object, *, code: int = 200, warnings: Warnings = ()) -> HttpResponse:
    return HttpResponse(code=code, body=orjson.dumps(obj, option=orjson.OPT_APPEND_NEWLINE), warnings=warnings)


def success_response(fields: Object, *, code: int = 200) -> HttpResponse:
    return object_response(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"} | fields, code=code
    )


def status_response(status: Status, *, warnings: Warnings = ()) -> HttpResponse:
    if status.plain:
        return HttpResponse(code=status.code, body=status.plain.encode(), content_type=PLAIN, warnings=warnings)
    seconds = (status.details or {}).get("retryAfterSeconds") if status.code == TOO_MANY else None
    headers = () if seconds is None else (("retry-after", str(seconds)),)
    return replace(object_response(status.to_wire(), code=status.code, warnings=warnings), headers=headers)


def error_response(error: StatusError | PacelineError) -> HttpResponse:
    if isinstance(error, StatusError):
        return status_response(error.status, warnings=error.warnings)
    return status_response(Status(code=error.code, reason=error.reason, message=str(error)))


def deprecation_warnings(resource: Resource) -> tuple[str, ...]:
    warning = _DEPRECATED.get((resource.group, resource.kind)) if resource.is_builtin else None
    return () if warning is None else (warning,)


@contextmanager
def attach_warnings(warnings: Sequence[str]) -> Iterator[None]:
    """Add warnings to a StatusError; the sequence may grow in the block."""
    try:
        yield
    except StatusError as error:
        if not warnings:
            raise
        raise StatusError(error.status, warnings=(*warnings, *error.warnings)) from error


def with_warnings(response: HttpResponse | Stream, resource: Resource, lookup: Lookup | None) -> HttpResponse | Stream:
    """Add the warnings of a kind about a written object."""
    if resource.warn is no_warnings or not isinstance(response, HttpResponse):
        return response
    obj = orjson.loads(response.body)
    # Tables and metadata do not contain the fields that the warnings are about.
    if obj.get("kind") != resource.kind:
        return response
    return replace(response, warnings=(*response.warnings, *resource.warn(obj, lookup)))


class ResponseWriter:
    """Sends the response of one request. After its head was sent, a second response only ends it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False
        self._is_proxied = False
        # The code of the response; 0 until its head was sent.
        self.code = 0

    async def send_response(self, response: HttpResponse) -> None:
        """Send a complete response; if a stream has started already, end it."""
        if self._is_proxied:
            return  # Do not finish it: the client must notice that something is missing.
        if self._started:
            await self.end()
            return
        headers = [(b"content-length", str(len(response.body) + response.tail_bytes).encode())]
        headers.extend((b"warning", _warning(text)) for text in _bounded(response.warnings))
        headers.extend((name.encode(), value.encode("latin-1")) for name, value in response.headers)
        await self._head(response.code, response.content_type, headers)
        has_tail = response.tail_bytes > 0
        await self._send({"type": "http.response.body", "body": response.body, "more_body": has_tail})
        if has_tail:
            await self._send_tail(response.tail)

    async def _send_tail(self, parts: Iterable[bytes]) -> None:
        """Send the remaining parts of a large response as fast as the client reads."""
        try:
            for part in parts:
                async with asyncio.timeout(STALL_SECONDS):
                    await self._send({"type": "http.response.body", "body": part, "more_body": True})
        except TimeoutError:
            raise ClientStalled from None
        await self.end()

    async def pass_on(self, message: MutableMapping[str, Any]) -> None:
        self._started = self._is_proxied = True
        self.code = int(message.get("status", self.code))
        await self._send(message)

    async def send_chunk(self, content_type: str, chunk: bytes) -> None:
        if not self._started:
            await self._head(200, content_type, [])
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _head(self, code: int, content_type: str, headers: list[tuple[bytes, bytes]]) -> None:
        self._started, self.code = True, code
        common = [
            (b"content-type", content_type.encode()),
            (b"cache-control", b"no-cache, private"),
            (b"x-content-type-options", b"nosniff"),
        ]
        await self._send({"type": "http.response.start", "status": code, "headers": [*common, *headers]})


class WebSocketRejection:
    """Rejects a WebSocket: with a response before it is accepted, by closing it afterwards."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False

    async def send_response(self, response: HttpResponse) -> None:
        """Send a response, or close the connection if it was accepted; ignore a disconnected client."""
        headers = [(b"content-type", response.content_type.encode()), (b"cache-control", b"no-cache, private")]
        with suppress(OSError):
            if self._started:
                await self._send({"type": "websocket.close", "code": 1011})
                return
            await self._send({"type": "websocket.http.response.start", "status": response.code, "headers": headers})
            await self._send({"type": "websocket.http.response.body", "body": response.body})

    async def pass_on(self, message: MutableMapping[str, Any]) -> None:
        self._started = True
        await self._send(message)


def _bounded(warnings: Iterable[str]) -> Iterator[str]:
    """Yield the first warnings, as Kubernetes does: a body may cause thousands, and headers are limited."""
    room = MAX_WARNING_CHARS
    for text in warnings:
        room -= len(text)
        if room < 0:
            yield text[:MAX_CUT_WARNING_CHARS]
            return
        yield text


def _warning(text: str) -> bytes:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(char if char.isprintable() else "?" for char in escaped)
    return f'299 - "{shown}"'.encode("ascii", "replace")
