"""HTTP/1.1 over one connection, one exchange after the other: the home of httptools.

Everything that goes wrong on a connection is an OSError; whoever asked knows in which words to say it.
"""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from paceline.errors import BadRequest

CONNECT_SECONDS = 10.0
# What may arrive without being part of a body: a head, or what stands between chunks.
MAX_HEAD_BYTES = 64 * 1024
# What is held of a body that nobody reads; the rest waits in the kernel, and then at the server.
MAX_HELD_BYTES = 128 * 1024

_NOT_IN_TARGET = re.compile(r"[^\x21-\x7e\x80-\xff]")
_NOT_IN_VALUE = re.compile(r"[^\x09\x20-\x7e\x80-\xff]")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Broken(ConnectionError):
    """The other side hung up before its answer was whole, or does not speak HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server listens: a socket file, or an address and a port."""

    socket: Path | None = None
    address: str = ""
    port: int = 0
    is_tls: bool = False

    def __str__(self) -> str:
        return str(self.socket) if self.socket else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What comes before the body of an answer."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]


def head_of(method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return the first bytes of a request; BadRequest when a part of it would be read as something else."""
    if not _NAME.fullmatch(method) or not target or _NOT_IN_TARGET.search(target):
        raise BadRequest(f"{method} {target!r} cannot stand in a request: encode what is not part of a URL")
    lines = [f"{method} {target} HTTP/1.1\r\n"]
    for name, value in headers:
        if not _NAME.fullmatch(name) or _NOT_IN_VALUE.search(value):
            # Not its value, which may be a secret.
            raise BadRequest(f"the header {name!r} holds what HTTP cannot carry: a line break, or no Latin-1")
        lines.append(f"{name}: {value}\r\n")
    lines.append("\r\n")
    return "".join(lines).encode("latin-1")


async def dial(place: Address, tls: ssl.SSLContext | None = None, name: str = "") -> "Connection":
    """Connect; `name` is the one that the certificate must carry, if not the address's."""
    loop = asyncio.get_running_loop()
    named = (name or place.address or "localhost") if tls else None
    async with asyncio.timeout(CONNECT_SECONDS):
        if place.socket:
            _, connection = await loop.create_unix_connection(
                Connection, str(place.socket), ssl=tls, server_hostname=named
            )
        else:
            _, connection = await loop.create_connection(
                Connection, place.address, place.port, ssl=tls, server_hostname=named
            )
    return connection


class Connection(asyncio.Protocol):
    """One connection. Ask, read the head, then the pieces to the end; then it may be asked again if it is reusable."""

    # Of the exchange under way.
    _parser: HttpResponseParser
    _is_without_body: bool
    _headers: list[tuple[bytes, bytes]]
    _head: Head | None
    _pieces: deque[bytes]
    _buffered: int
    # How much has come since something of it was of use.
    _idle: int
    _error: Broken | None
    _ends_with_connection: bool
    # Whether anything of the answer has come.
    is_heard: bool

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._waiter: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._is_full = False
        self._is_paused = False
        self._is_lost = False
        # Nothing is asked yet: whatever comes now is no answer.
        self._is_whole = True
        self._is_kept = True
        self._begin(without_body=False)

    @property
    def is_reusable(self) -> bool:
        """Return whether the last answer was read to its end, and another may follow on this connection."""
        return self._is_whole and self._is_kept and not self._pieces and not self._transport.is_closing()

    def ask(self, data: bytes, *, method: str = "GET") -> None:
        """Send a request, or its head."""
        self._begin(without_body=method == "HEAD")
        self._is_whole = False
        if self._is_lost or self._transport.is_closing():
            self._error = Broken("the server has hung up")
        else:
            self._transport.write(data)

    async def write(self, data: bytes) -> None:
        """Send more of a request, as fast as it is taken; whoever reads the answer is told what goes wrong."""
        if not self._is_lost and not self._transport.is_closing():
            self._transport.write(data)
        while self._is_full and not self._is_lost:
            self._room = self._loop.create_future()
            await self._room

    async def head(self) -> Head:
        """Wait for the head of the answer."""
        while self._head is None:
            await self._news()
        return self._head

    async def piece(self) -> bytes:
        """Return what has come of the body, waiting for something; nothing at its end."""
        while not self._pieces:
            if self._is_whole:
                return b""
            await self._news()
        data = b"".join(self._pieces) if len(self._pieces) > 1 else self._pieces[0]
        self._pieces.clear()
        self._buffered = 0
        if self._is_paused:
            self._is_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return data

    async def body(self) -> bytes:
        """Return the whole body."""
        pieces = []
        while piece := await self.piece():
            pieces.append(piece)
        return b"".join(pieces)

    def abort(self) -> None:
        """Hang up at once: a polite end of TLS would wait for a server that may not notice."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        self.is_heard = True
        if self._is_whole:
            # More than was asked for: whatever it is, it must not become the answer to the next request.
            self.abort()
            return
        self._idle += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._break(f"what came is not HTTP/1.1: {error}")
            return
        if self._idle > MAX_HEAD_BYTES:
            self._break(f"a head, or what stands between two chunks, is longer than {MAX_HEAD_BYTES} bytes")
        elif self._buffered > MAX_HELD_BYTES and not self._is_paused and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell whoever waits; an answer without a length ends here."""
        self._is_lost = True
        if self._ends_with_connection and error is None:
            self._is_whole = True
        if not self._is_whole and self._error is None:
            when = "in the middle of its answer" if self.is_heard else "without an answer"
            self._error = Broken(f"the server hung up {when}{f': {error}' if error else ''}")
        self._tell()
        self.resume_writing()

    def pause_writing(self) -> None:
        """Have whoever writes wait."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Let whoever writes go on."""
        self._is_full = False
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def on_message_begin(self) -> None:
        """Notice an answer that nobody asked for."""
        if self._is_whole:
            self._is_kept = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; one behind the body concerns nobody."""
        if self._head is None:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Take the head; one that only says `go on` is not the answer's, and nobody asked for another protocol."""
        status = self._parser.get_status_code()
        if self._is_whole or status < 200:
            return
        self._idle = 0
        self._is_kept = self._parser.should_keep_alive()
        self._ends_with_connection = _ends_with_connection(self._headers)
        self._head = Head(status=status, headers=tuple(self._headers))
        if self._is_without_body:
            self._finish()
        self._tell()

    def on_body(self, body: bytes) -> None:
        """Hold a piece of the body until it is read; where none may be, more of it may follow."""
        if self._is_whole:
            self._is_kept = False
            return
        self._idle = 0
        self._buffered += len(body)
        self._pieces.append(body)
        self._tell()

    def on_message_complete(self) -> None:
        """End the answer."""
        if self._head is None:
            self._headers.clear()
        elif not self._is_whole:
            self._finish()

    def _begin(self, *, without_body: bool) -> None:
        self._parser = HttpResponseParser(self)
        # Programs in pods are anybody's: these two are harmless and seen in the wild.
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True)
        self._is_without_body = without_body
        self._headers = []
        self._head = None
        self._pieces = deque()
        self._buffered = 0
        self._idle = 0
        self._error = None
        self._ends_with_connection = False
        self.is_heard = False

    def _finish(self) -> None:
        self._is_whole = True
        self._ends_with_connection = False
        self._tell()

    def _break(self, reason: str) -> None:
        if self._is_whole:
            self._is_kept = False
        else:
            self._error = Broken(reason)
        self._tell()
        self.abort()

    async def _news(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _tell(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _ends_with_connection(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether only the end of the connection ends a body (RFC 9112, 6.3)."""
    encodings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    if encodings:
        return not encodings[-1].rstrip().endswith(b"chunked")
    return all(name.lower() != b"content-length" for name, _ in headers)
